"""Measure a recording by its header and its end, and read parts of it; refuse damaged files."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np

from nearfuture.audio.decode import Audio, read_rest
from nearfuture.audio.error import AudioError, TruncatedAudioError
from nearfuture.audio.mixdown import Mixdown
from nearfuture.audio.reader import AudioReader, open_audio

SHORT_S = 0.05
"""How much earlier than listed a recording may end: lists round."""


@dataclass(frozen=True, kw_only=True)
class Probe:
    """A recording's `frames` (samples of each channel), `rate` in Hz and number of `channels`.

    >>> Probe(frames=4000, rate=8000, channels=1).seconds
    0.5
    """

    frames: int
    rate: int
    channels: int

    @property
    def seconds(self) -> float:
        """Duration in seconds."""
        return self.frames / self.rate


def probe(path: str | os.PathLike[str]) -> Probe:
    """Read a file's header, and check that its end is there and its levels are sound.

    MP3 and Ogg are walked frame by frame and page by page; the last sample of other compressed
    files is decoded, and all of what is stored as floats, or read by another process, or does not
    say how long it is. Damage in the middle of a FLAC file is found by reading it only.

    Raises:
        AudioError: if there is no such file, if it is no audio, or has absurd levels.
        TruncatedAudioError: if its end is missing, or it is known to be damaged.
    """
    with open_audio(path) as reader:
        reader.check()
        frames = reader.frames
        if frames is None or reader.floats:
            for _ in reader.channel_blocks():
                pass
            frames = reader.at
        elif frames:
            reader.seek(frames - 1)
            for _ in reader.channel_blocks(1):
                pass
        reader.check()
        return Probe(frames=frames, rate=reader.rate, channels=reader.channels)


def first_sound(path: str | os.PathLike[str]) -> Mixdown:
    """Decide how the channels of a recording are mixed, from its first second of sound.

    Raises:
        AudioError: as `probe`.
    """
    with open_audio(path) as reader:
        mixdown = Mixdown(reader.channels, reader.rate)
        for block in reader.channel_blocks(reader.rate):
            mixdown.step(block)
            if mixdown.decided:
                break
        mixdown.finish()
        return mixdown


def read_part(
    path: str | os.PathLike[str],
    *,
    start_s: float = 0.0,
    duration_s: float | None = None,
    channel: int | None = None,
) -> Audio:
    """Read a part of a recording: the samples of the whole (of MP3 to rounding), never of damage.

    Decoding begins there and not at the beginning, but for Opus, Speex, and what needs the extra
    `media`: what they decode depends on all that came before.

    Args:
        path: The file.
        start_s: Where the part begins, in seconds.
        duration_s: How long it is; by default it lasts to the end. The file may end up to 50 ms
            earlier, since lists round.
        channel: Which channel, from 0; by default all are mixed as in the whole recording.

    Raises:
        AudioError: as `probe`, if the file ends before the part does, or lacks the channel.
    """
    with open_audio(path) as reader:
        reader.check()
        if reader.frames is None:
            whole = read_rest(reader, channel=channel)
            reader.check()
            begin, end = _range(reader, len(whole.samples), start_s, duration_s)
            return Audio(np.array(whole.samples[begin:end]), whole.rate)
        begin, end = _range(reader, reader.frames, start_s, duration_s)
        if begin and channel is None and reader.channels > 1:
            reader.mixdown = first_sound(path)
        reader.seek(begin)
        audio = read_rest(reader, samples=end - begin, channel=channel)
        reader.check()
        if len(audio.samples) < end - begin:
            raise TruncatedAudioError(
                f"{reader.name} cannot be decoded to its end: it is damaged or was cut off"
            )
        return audio


def _range(
    reader: AudioReader, frames: int, start_s: float, duration_s: float | None
) -> tuple[int, int]:
    rate = reader.rate
    begin = round(start_s * rate)
    end = frames if duration_s is None else round((start_s + duration_s) * rate)
    if begin < 0 or end < begin or max(begin, end) > frames + SHORT_S * rate:
        until = "the end" if duration_s is None else f"{start_s + duration_s:.3f} s"
        raise AudioError(
            f"{reader.name} lasts {frames / rate:.3f} s: there is no part from "
            f"{start_s:.3f} s to {until}; was the file cut off, or does the list mean another?",
            code="out_of_range",
            parameter="start_s",
        )
    return min(begin, frames), min(end, frames)
