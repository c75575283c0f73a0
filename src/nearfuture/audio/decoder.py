"""Decode one member of a file: raw samples, or those that libsndfile reads."""

from __future__ import annotations

from typing import BinaryIO, Protocol, cast

import numpy as np
import soundfile
from numpy.typing import NDArray

from nearfuture.audio.error import Damage
from nearfuture.audio.member import Member
from nearfuture.audio.pcm import as_float, decode_pcm
from nearfuture.audio.wav import WavHeader
from nearfuture.audio.window import Window

_ENDLESS = 1 << 62  # libsndfile's value for a length that the file does not state
_BROKEN = "it is damaged or was cut off"

Block = NDArray[np.float32]


class Decoder(Protocol):
    """The samples of one recording, in order.

    Attributes:
        rate: Samples per second.
        channels: Number of channels.
        frames: Samples of each channel; None where only reading shows it.
        floats: Whether samples are stored as floats, so that they may be anything.
        damage: Why samples are missing behind those that were read.
    """

    rate: int
    channels: int
    frames: int | None
    floats: bool
    damage: Damage | None

    def read(self, frames: int) -> Block:
        """Read at most so many samples, (n, channels); n = 0 at the end."""

    def seek(self, frame: int) -> bool:
        """Go to a sample; False where only reading leads there."""

    def close(self) -> None:
        """Free its memory, before the first sample or behind the last."""


class PcmDecoder:
    """Raw samples behind a WAV header, of a file or a pipe.

    Args:
        file: Stands at the first sample.
        header: The header before it.
        size: How many bytes of samples follow; None: all there are.

    Attributes:
        missing: How many of those bytes have not been read.
    """

    def __init__(self, file: BinaryIO, header: WavHeader, size: int | None) -> None:
        self.rate, self.channels = header.rate, header.channels
        self.floats = header.encoding in ("float32", "float64")
        self.damage: Damage | None = None
        self.frames = None if size is None else size // header.frame_bytes
        self.missing = self._size = size
        self._file, self._header = file, header
        self._partial = b""  # the first bytes of a sample
        self._read = getattr(file, "read1", file.read)  # of a pipe: what is there

    def read(self, frames: int) -> Block:
        """Read at most so many samples; of a pipe, as soon as there is one."""
        width = self._header.frame_bytes
        while True:
            count = frames * width - len(self._partial)
            if self.missing is not None:
                count = min(count, self.missing)
            data = self._read(count) if count > 0 else b""
            if self.missing is not None:
                self.missing -= len(data)
            samples = self._partial + data
            whole = len(samples) - len(samples) % width
            self._partial = samples[whole:]
            if whole or not data:
                break
        assert self._header.encoding is not None
        decoded = decode_pcm(samples[:whole], self._header.encoding)
        return as_float(decoded).reshape(-1, self.channels)

    def seek(self, frame: int) -> bool:
        """Go to a sample."""
        at = frame * self._header.frame_bytes
        self._file.seek(at)
        self.missing = None if self._size is None else self._size - at
        self._partial = b""
        return True

    def close(self) -> None:
        """Do nothing: the file is closed by whoever opened it."""


class SndfileDecoder:
    """FLAC, Ogg, MP3, AIFF and many others, decoded by libsndfile.

    One that was closed before its first sample opens again when it is read: of many behind one
    another, only one takes memory.
    """

    def __init__(self, file: BinaryIO, member: Member) -> None:
        self._window = Window(file, member.begin, member.end, member.prefix)
        self._member = member
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
        """Read at most so many samples."""
        if self.frames is not None:
            frames = min(frames, self.frames - self._at)
        try:
            block = self._file.read(frames, dtype="float32", always_2d=True)
        except soundfile.LibsndfileError as error:
            self.damage = undecodable(error)
            return np.zeros((0, self.channels), np.float32)
        if self.frames is not None and len(block) < frames:
            self.damage = Damage(f"cannot be decoded to its end: {_BROKEN}")
        self._at += len(block)
        return cast("Block", block)

    def seek(self, frame: int) -> bool:
        """Go to a sample, by way of one where decoding gives the same samples."""
        if self.frames is None or self._member.unseekable_frames is None:
            return False
        last = self.frames - self._member.unseekable_frames
        at = max(0, min(frame - self._member.preroll_frames, last))
        try:
            self._file.seek(at)
            self._at = at
            while self._at < frame and len(self.read(min(1 << 14, frame - self._at))):
                pass
        except soundfile.LibsndfileError as error:
            self.damage = undecodable(error)
            self.frames = self._at
        return True

    def close(self) -> None:
        """Close libsndfile's side; the file itself stays open."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None


def undecodable(error: soundfile.LibsndfileError) -> Damage:
    """Put libsndfile's reason into a sentence."""
    reason = " ".join(error.error_string.removeprefix("Error : ").split()).rstrip(".")
    return Damage(f"cannot be decoded ({reason}): {_BROKEN}")


class _Forward(soundfile.SoundFile):  # type: ignore[misc]  # soundfile has no types
    """A file that is read forwards: soundfile's seeking after each read fails on FLAC streams."""

    def seekable(self) -> bool:
        return False
