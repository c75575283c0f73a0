"""What a recording is, from its header and its end, without decoding all of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile
from numpy.typing import NDArray

from nearfuture.audio.decode import Audio, AudioError, read
from nearfuture.audio.truncation import cut_off

__all__ = ["SHORT_S", "CutOff", "Probe", "probe", "read_part"]

_ENDLESS = 1 << 62  # libsndfile's word for a length that the file does not tell
SHORT_S = 0.05
"""How much earlier than listed a recording may end: lists round."""


class CutOff(AudioError):  # noqa: N818 - what it says, not that it failed
    """A recording whose end is missing."""


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
    """What a file's header says, once its end is known to be there.

    Cut off files are told where they can be (see `cut_off`); a FLAC file whose last sample cannot
    be decoded counts as cut off, too. What is damaged in the middle is found by reading only.

    Raises:
        AudioError: if there is no such file, or if it is no audio.
        CutOff: if its end is missing.
    """
    with _opened(path) as file:
        frames = int(file.frames)
        if frames == 0 or frames >= _ENDLESS:
            audio = read(path)  # a streamed header: only decoding can tell
            return Probe(frames=len(audio.samples), rate=audio.rate, channels=int(file.channels))
        if file.format == "FLAC":
            _reach(file, path, frames - 1)
        return Probe(frames=frames, rate=int(file.samplerate), channels=int(file.channels))


def read_part(
    path: str | os.PathLike[str],
    *,
    start_s: float = 0.0,
    duration_s: float | None = None,
    channel: int | None = None,
) -> Audio:
    """A part of a recording, read from there and not from its beginning; never of a cut off file.

    Args:
        path: the file.
        start_s: where the part begins, in seconds.
        duration_s: how long it is; to the end unless given. The file may end up to 50 ms earlier,
            since lists round.
        channel: which channel, from 0; the mean of all unless given.

    Raises:
        AudioError: as `probe`, if the file ends before the part does, or lacks the channel.
    """
    with _opened(path) as file:
        rate, frames, channels = int(file.samplerate), int(file.frames), int(file.channels)
        if channel is not None and not 0 <= channel < channels:
            raise AudioError(
                f"{os.fspath(path)} has {channels} channels, numbered from 0: there is no "
                f"channel {channel}"
            )
        whole = start_s == 0 and duration_s is None
        if frames == 0 or frames >= _ENDLESS or (whole and channel is None):
            audio = read(path)
            if channels > 1 and channel is not None:
                raise AudioError(
                    f"{os.fspath(path)} does not say how long it is, so that its channel {channel} "
                    f"cannot be read alone: write the file again with a proper header"
                )
            begin, end = _range(path, len(audio.samples), audio.rate, start_s, duration_s)
            return Audio(audio.samples[begin:end], audio.rate)
        begin, end = _range(path, frames, rate, start_s, duration_s)
        samples = np.zeros(0, np.float32)
        if end > begin:
            _reach(file, path, begin)
            samples = _decoded(file, path, end - begin, channel)
    return Audio(samples, rate)


def _range(
    path: str | os.PathLike[str], frames: int, rate: int, start_s: float, duration_s: float | None
) -> tuple[int, int]:
    begin = round(start_s * rate)
    end = frames if duration_s is None else round((start_s + duration_s) * rate)
    if begin < 0 or end < begin or max(begin, end) > frames + SHORT_S * rate:
        until = "the end" if duration_s is None else f"{start_s + duration_s:.3f} s"
        raise AudioError(
            f"{os.fspath(path)} lasts {frames / rate:.3f} s: there is no part from "
            f"{start_s:.3f} s to {until}; was the file cut off, or does the list mean another?"
        )
    return min(begin, frames), min(end, frames)


class _Forward(soundfile.SoundFile):  # type: ignore[misc]  # soundfile has no types
    """A file that soundfile does not seek in by itself after each read."""

    def seekable(self) -> bool:
        return False


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[_Forward]:
    """An open file that has its end; whatever is wrong with it is told as `read` tells it."""
    name = os.fspath(path)
    try:
        with Path(path).open("rb") as raw:
            reason = cut_off(raw)
    except OSError:
        read(path)  # knows how to say it
        raise
    if reason is not None:
        raise CutOff(f"{name} was cut off: {reason}; copy or record it again")
    try:
        file = _Forward(name)
    except soundfile.LibsndfileError:
        read(path)
        raise
    with file:
        yield file


def _reach(file: _Forward, path: str | os.PathLike[str], frame: int) -> None:
    """Seek to a frame; that of FLAC decodes it, and fails where it is not there."""
    try:
        file.seek(frame)
    except soundfile.LibsndfileError as error:
        raise CutOff(_broken(path)) from error


def _decoded(
    file: _Forward, path: str | os.PathLike[str], count: int, channel: int | None
) -> NDArray[np.float32]:
    try:
        block = file.read(count, dtype="float32", always_2d=True)
    except soundfile.LibsndfileError as error:
        raise CutOff(_broken(path)) from error
    if len(block) < count:
        raise CutOff(_broken(path))
    if not np.isfinite(block).all():
        raise AudioError(
            f"{os.fspath(path)} has samples that are not finite numbers: write it again without "
            f"them"
        )
    samples: NDArray[np.float32]
    samples = block.mean(axis=1, dtype=np.float32) if channel is None else block[:, channel].copy()
    return samples


def _broken(path: str | os.PathLike[str]) -> str:
    return (
        f"{os.fspath(path)} cannot be decoded to its end: it is damaged or was cut off; copy or "
        f"record it again"
    )
