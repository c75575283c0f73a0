"""One stretch of a file as samples: raw, through libsndfile, or from another process."""

from __future__ import annotations

from typing import BinaryIO, Protocol, cast

import numpy as np
import soundfile
from numpy.typing import NDArray

from nearfuture.audio.container import Container
from nearfuture.audio.error import Damage
from nearfuture.audio.pcm import as_float, decode_pcm
from nearfuture.audio.stretch import Stretch
from nearfuture.audio.wav import WavHeader
from nearfuture.audio.window import Window

_ENDLESS = 1 << 62  # libsndfile's word for a length that the file does not tell

Block = NDArray[np.float32]


class Decoder(Protocol):
    """What every one of them can.

    Attributes:
        rate: samples per second.
        channels: of each sample.
        frames: samples of each channel; None where only reading can tell.
        floats: whether samples are stored as floats, so that they may be anything.
        damage: why something is missing behind what was read.
    """

    rate: int
    channels: int
    frames: int | None
    floats: bool
    damage: Damage | None

    def read(self, frames: int) -> Block:
        """At most so many samples, (n, channels); n = 0 at the end."""

    def seek(self, frame: int) -> bool:
        """Go to a sample; False where only reading leads there."""

    def close(self) -> None:
        """Let go of what it holds, before its first sample or behind its last."""


class PcmDecoder:
    """Raw samples behind a WAV header, of a file or a pipe."""

    def __init__(self, file: BinaryIO, header: WavHeader, size: int | None) -> None:
        self.rate, self.channels = header.rate, header.channels
        self.floats = header.encoding in ("float32", "float64")
        self.damage: Damage | None = None
        self._file, self._header = file, header
        self._left = size
        self._size = size
        self._held = b""
        self.frames = None if size is None else size // header.frame_bytes
        self._read = getattr(file, "read1", file.read)  # of a pipe: what is there

    def read(self, frames: int) -> Block:
        """At most so many samples."""
        width = self._header.frame_bytes
        while True:
            wanted = frames * width - len(self._held)
            if self._left is not None:
                wanted = min(wanted, self._left)
            data = self._read(wanted) if wanted > 0 else b""
            if self._left is not None:
                self._left -= len(data)
            held = self._held + data
            whole = len(held) - len(held) % width
            self._held = held[whole:]
            if whole or not data:
                break
        assert self._header.encoding is not None
        samples = as_float(decode_pcm(held[:whole], self._header.encoding))
        return samples.reshape(-1, self.channels)

    @property
    def missing(self) -> int:
        """Bytes that were announced and have not come."""
        return self._left or 0

    def seek(self, frame: int) -> bool:
        """Go to a sample."""
        at = frame * self._header.frame_bytes
        self._file.seek(at)
        self._left = None if self._size is None else self._size - at
        self._held = b""
        return True

    def close(self) -> None:
        """Nothing is held."""


class SndfileDecoder:
    """What libsndfile reads: FLAC, Ogg, MP3, AIFF and many others.

    One that was closed before its first sample opens again when it is read: of many behind one
    another, only one takes memory.
    """

    def __init__(self, file: BinaryIO, stretch: Stretch) -> None:
        self._window = Window(file, stretch.begin, stretch.end, stretch.prefix)
        self._inexact, self._preroll = stretch.inexact, stretch.preroll
        self._opened: _Forward | None = None
        self.rate, self.channels = int(self._file.samplerate), int(self._file.channels)
        frames = int(self._file.frames)
        self.frames = frames if 0 < frames < _ENDLESS else None
        self.floats = self._file.subtype in ("FLOAT", "DOUBLE")
        self.damage: Damage | None = None
        self._at = 0

    @property
    def _file(self) -> _Forward:
        if self._opened is None:
            self._window.seek(0)
            self._opened = _Forward(self._window)
        return self._opened

    def read(self, frames: int) -> Block:
        """At most so many samples."""
        if self.frames is not None:
            frames = min(frames, self.frames - self._at)
        try:
            block = self._file.read(frames, dtype="float32", always_2d=True)
        except soundfile.LibsndfileError as error:
            self.damage = Damage(f"cannot be decoded ({_plain(error)}): {_BROKEN}")
            return np.zeros((0, self.channels), np.float32)
        if self.frames is not None and len(block) < frames:
            self.damage = Damage(f"cannot be decoded to its end: {_BROKEN}")
        self._at += len(block)
        return cast("Block", block)

    def seek(self, frame: int) -> bool:
        """Go to a sample, by way of one where decoding gives the same samples."""
        if self.frames is None or self._inexact is None:
            return False
        at = max(0, min(frame - self._preroll, self.frames - self._inexact))
        try:
            self._file.seek(at)
            self._at = at
            while self._at < frame and len(self.read(min(1 << 14, frame - self._at))):
                pass
        except soundfile.LibsndfileError as error:
            self.damage = Damage(f"cannot be decoded ({_plain(error)}): {_BROKEN}")
            self.frames = self._at
        return True

    def close(self) -> None:
        """Close libsndfile's side; the file itself stays open."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None


_BROKEN = "it is damaged or was cut off"


def _plain(error: soundfile.LibsndfileError) -> str:
    return " ".join(error.error_string.removeprefix("Error : ").split()).rstrip(".")


class _Forward(soundfile.SoundFile):  # type: ignore[misc]  # soundfile has no types
    """A file read from begin to end: soundfile's seeking after each read fails on FLAC streams."""

    def seekable(self) -> bool:
        return False


class ContainerDecoder:
    """What libavformat reads, in a process of its own."""

    def __init__(self, source: str | bytes, *, demuxer: str, name: str) -> None:
        self._container = Container(source, demuxer=demuxer, name=name)
        self.rate, self.channels = self._container.rate, self._container.channels
        self.frames: int | None = None
        self.floats = True
        self.damage: Damage | None = None
        self._held = np.zeros((0, self.channels), np.float32)

    def read(self, frames: int) -> Block:
        """At most so many samples."""
        if len(self._held) == 0:
            self._held = self._container.read()
            self.damage = self._container.damage
        block, self._held = self._held[:frames], self._held[frames:]
        return block

    def seek(self, frame: int) -> bool:
        """Only reading leads there."""
        return frame == 0

    def close(self) -> None:
        """End the process, unless it has finished."""
        self._container.close()
