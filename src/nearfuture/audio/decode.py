"""Recordings of any kind as mono samples; whatever cannot be read is told in one line."""

from __future__ import annotations

import io
import os
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import soundfile
from numpy.typing import NDArray

from nearfuture.audio.signature import LONGEST, kind
from nearfuture.audio.wav import mended
from nearfuture.error import NearfutureError

__all__ = ["Audio", "AudioError", "read"]

BLOCK = 1 << 18  # frames decoded at once


class AudioError(NearfutureError):
    """A recording that cannot be read: which, why, and what was found instead."""


@dataclass(frozen=True, eq=False)
class Audio:
    """A recording as one channel of samples.

    Args:
        samples: (n,) float32; full scale is [-1, 1].
        rate: samples per second.

    >>> Audio(np.zeros(4000, np.float32), 8000).seconds
    0.5
    """

    samples: NDArray[np.float32]
    rate: int

    @property
    def seconds(self) -> float:
        """Duration in seconds."""
        return len(self.samples) / self.rate


def read(source: str | os.PathLike[str] | bytes | BinaryIO) -> Audio:
    """A recording of any rate, width and number of channels, as the mean of its channels.

    WAV (8 to 32 bit, float, A-law, µ-law, extensible, streamed headers with lengths of 0 or
    0xFFFFFFFF), FLAC, Ogg Vorbis and Opus, MP3, and what else libsndfile knows. Half a sample at
    the end is dropped. Samples of a float file beyond [-1, 1] are kept as they are. A file that has
    a header and no samples is a recording of no samples.

    File and samples are held in memory, the samples with 4 bytes each: an hour of 16 kHz takes
    230 MB; cut longer recordings into files first.

    Args:
        source: a path, the bytes of a file, or an open binary file (read to its end, not closed).

    Raises:
        AudioError: if there is no such file or it may not be read, if it is empty or no audio, if
            it breaks off in a way that cannot be decoded, or if a sample is not a number.

    >>> file = io.BytesIO()
    >>> soundfile.write(file, np.array([[0.5, 0.0], [0.25, -0.25]]), 44100, format="WAV")
    >>> audio = read(file.getvalue())
    >>> audio.samples.tolist(), audio.rate
    ([0.25, 0.0], 44100)
    """
    name, data = _load(source)
    if not data:
        raise AudioError(f"{name} is empty (0 bytes): a WAV, FLAC, Ogg or MP3 file is wanted")
    try:
        with _Forward(io.BytesIO(mended(data))) as file:
            blocks = []
            while len(block := file.read(BLOCK, dtype="float32", always_2d=True)):
                blocks.append(block.mean(axis=1, dtype=np.float32))
            rate = int(file.samplerate)
    except soundfile.LibsndfileError as error:
        raise AudioError(_reason(name, data, error.error_string)) from error
    samples = np.concatenate(blocks) if blocks else np.zeros(0, np.float32)
    finite = np.isfinite(samples)
    if not finite.all():
        raise AudioError(
            f"{name} has {np.count_nonzero(~finite)} samples that are not finite numbers, the "
            f"first at {int(finite.argmin())}: write the file again without them"
        )
    return Audio(samples, rate)


class _Forward(soundfile.SoundFile):  # type: ignore[misc]  # soundfile has no types
    """A file read from begin to end: soundfile's seeking after each read fails on FLAC streams."""

    def seekable(self) -> bool:
        return False


def _load(source: str | os.PathLike[str] | bytes | BinaryIO) -> tuple[str, bytes]:
    if isinstance(source, (bytes, bytearray, memoryview)):
        return "the recording", bytes(source)
    try:
        if isinstance(source, (str, os.PathLike)):
            return os.fspath(source), Path(source).read_bytes()
        name, data = str(getattr(source, "name", "the recording")), source.read()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise AudioError(f"cannot read {source}: {reason[:1].lower()}{reason[1:]}") from error
    if not isinstance(data, bytes):
        raise AudioError(f"{name} is open as text: open it in binary mode, open(path, 'rb')")
    return name, data


def _reason(name: str, data: bytes, reason: str) -> str:
    if not reason.startswith("Format not recognised"):
        reason = " ".join(reason.removeprefix("Error : ").split()).rstrip(".")
        return f"{name} cannot be decoded ({reason}): it is damaged or was cut off"
    if (found := kind(data[:LONGEST])) is not None:
        return f"{name} is {found}: convert it to WAV, FLAC, Ogg or MP3 first"
    begin = data[:24]
    if all(32 <= byte < 127 or byte in b"\t\r\n" for byte in begin):
        found = f"text, {begin.decode('ascii')!r}…"
    else:
        found = f"bytes {begin[:8].hex(' ')}…"
    return f"{name} is no audio that can be read: found {found}, not WAV, FLAC, Ogg or MP3"
