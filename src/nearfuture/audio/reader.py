"""The one reader of recordings: files, bytes, open files and pipes, block by block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from types import TracebackType
from typing import Self

import numpy as np

from nearfuture.audio.decoder import Block
from nearfuture.audio.decoder_chain import ChainedDecoder, open_decoders
from nearfuture.audio.error import AudioError, Damage, TruncatedAudioError
from nearfuture.audio.input import AudioSource, open_input
from nearfuture.audio.limits import BLOCK_SAMPLES, check_levels
from nearfuture.audio.mixdown import Mixdown


def open_audio(source: AudioSource) -> AudioReader:
    """Open a recording to read it block by block, in memory that does not grow with it.

    WAV (8 to 32 bit, float, A-law, µ-law, extensible, streamed headers with lengths of 0 or
    0xFFFFFFFF), FLAC, Ogg Vorbis and Opus, MP3, and what else libsndfile reads; with the extra
    `media` MPEG-4 (m4a, mp4, 3gp), WebM, Matroska, Windows Media (wma), AAC and AMR. Files that
    stand behind one another in one are read all. A WAV comes out of a pipe as it arrives; a pipe
    with anything else is copied to the disk first.

    Args:
        source: A path, the bytes of a file, or an open binary file or pipe, which is read from its
            position on and not closed.

    Raises:
        AudioError: if there is no such file or it may not be read, if it is empty or no audio, or
            has more channels or another rate than can be read.

    >>> import io, soundfile
    >>> file = io.BytesIO()
    >>> soundfile.write(file, np.zeros((20_000, 2)), 8000, format="FLAC")
    >>> with open_audio(file.getvalue()) as reader:
    ...     print(reader.rate, reader.channels, [len(block) for block in reader.blocks(8000)])
    ...     print(reader.damage)
    8000 2 [8000, 8000, 4000]
    None
    """
    with ExitStack() as stack:
        opened = open_input(source, stack)
        chain = open_decoders(opened, stack)
        return AudioReader(opened.name, chain, stack.pop_all())


class AudioReader:
    """A recording that is being read; made by `open_audio`, and a context manager.

    Attributes:
        name: The name of the recording in messages.
        rate: Samples per second.
        channels: Number of channels.
        frames: Samples of each channel; None where only reading shows it, and in a pipe.
        floats: Whether samples are stored as floats, so that levels may be anything.
        at: How many samples of each channel have been read.
        damage: Why samples are missing, where that is known; all is known once all is read.
        mixdown: How the channels are mixed; None before the first block.
    """

    def __init__(self, name: str, chain: list[ChainedDecoder], stack: ExitStack) -> None:
        self.name = name
        self._chain, self._stack = chain, stack
        decoders = [link.decoder for link in chain]
        self.rate, self.channels = decoders[0].rate, decoders[0].channels
        self.floats = any(decoder.floats for decoder in decoders)
        counts = [decoder.frames for decoder in decoders]
        known = [count for count in counts if count is not None]
        self.frames = sum(known) if len(known) == len(counts) else None
        self.at = 0
        self.damage: Damage | None = next((link.damage for link in chain if link.damage), None)
        self.mixdown: Mixdown | None = None
        self._index = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close what was opened for the recording."""
        self._stack.close()

    def blocks(self, frames: int | None = None, *, channel: int | None = None) -> Iterator[Block]:
        """Yield the samples in order, (n,) float32 with full scale [-1, 1].

        Args:
            frames: The most samples of a block; it has fewer where there are many channels.
            channel: Which channel, from 0; by default the mean of all, or the loudest where they
                cancel each other: see `Mixdown`, whose second is held back.

        Raises:
            AudioError: where a sample is no finite number or absurdly large (see `check_levels`);
                for a channel that is not there.
        """
        if channel is not None and not 0 <= channel < self.channels:
            raise AudioError(
                f"{self.name} has {self.channels} channels, numbered from 0: there is no channel "
                f"{channel}",
                code="out_of_range",
                parameter="channel",
            )
        if channel is not None or self.channels == 1:
            for block in self.channel_blocks(frames):
                yield block[:, channel or 0].copy()
            return
        mixdown = Mixdown(self.channels, self.rate) if self.mixdown is None else self.mixdown
        self.mixdown = mixdown
        for block in self.channel_blocks(frames):
            yield from _cut(mixdown.step(block), frames)
        yield from _cut(mixdown.finish(), frames)

    def channel_blocks(self, frames: int | None = None) -> Iterator[Block]:
        """Yield the samples of every channel in order: (n, channels) float32."""
        most = max(1, BLOCK_SAMPLES // self.channels)
        count = most if frames is None else max(1, min(frames, most))
        while self._index < len(self._chain):
            link = self._chain[self._index]
            decoder = link.decoder
            block = decoder.read(count)
            check_levels(block, self.name, first=self.at)
            self.at += len(block)
            if len(block):
                yield _with_channels(block, self.channels)
            if decoder.damage is not None:
                self._stop(decoder.damage)
            elif len(block) == 0:
                decoder.close()
                if link.damage is not None:
                    self._stop(link.damage)
                self._index += 1

    def seek(self, frame: int) -> None:
        """Go to a sample, before the first block; where decoding cannot begin there, by reading."""
        begin = 0
        for index, link in enumerate(self._chain):
            decoder = link.decoder
            if decoder.frames is None or frame < begin + decoder.frames:
                break
            begin += decoder.frames
            self._index = index + 1
        else:
            self.at = begin
            return
        if decoder.seek(frame - begin):
            self.at = frame
            return
        self.at = begin
        while self.at < frame:
            block = decoder.read(min(frame - self.at, BLOCK_SAMPLES // decoder.channels))
            self.at += len(block)
            if len(block) == 0:
                return

    def check(self) -> None:
        """Refuse a recording that is known to be damaged.

        Raises:
            TruncatedAudioError: which says how and where.
        """
        if self.damage is not None:
            raise TruncatedAudioError(self.damage.sentence(self.name))

    def _stop(self, damage: Damage) -> None:
        self.damage = Damage(damage.reason, self.at / self.rate)
        self._index = len(self._chain)


def _cut(samples: Block, most: int | None) -> Iterator[Block]:
    """Cut samples into blocks of at most so many."""
    size = max(1, len(samples) if most is None else most)
    for begin in range(0, len(samples), size):
        yield samples[begin : begin + size]


def _with_channels(block: Block, channels: int) -> Block:
    """Give the mean to each channel, where a later file has another number of channels."""
    if block.shape[1] == channels:
        return block
    return np.repeat(block.mean(axis=1, keepdims=True, dtype=np.float32), channels, axis=1)
