"""An uploaded file as samples, a second at a time: whatever it claims, memory stays small."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import soundfile
from numpy.typing import NDArray

from nearfuture.audio import AudioError, read
from nearfuture.audio.wav import mended

__all__ = ["Recording", "recording"]


@dataclass(frozen=True)
class Recording:
    """A file that is being decoded.

    Attributes:
        rate: samples per second.
        blocks: (n,) float32 each, one channel, about a second; `AudioError` where it is damaged.
    """

    rate: int
    blocks: Iterator[NDArray[np.float32]]


def recording(data: bytes) -> Recording:
    """Begin to decode a file: what soundfile reads, and what av reads where it is installed.

    Decoding takes time: call this, and take the blocks, outside of the event loop.

    Args:
        data: the whole file.

    Raises:
        AudioError: naming what it is, where it cannot be read.

    >>> file = io.BytesIO()
    >>> soundfile.write(file, np.zeros((20_000, 2)), 8000, format="FLAC")
    >>> opened = recording(file.getvalue())
    >>> opened.rate, [len(block) for block in opened.blocks]
    (8000, [8000, 8000, 4000])
    """
    try:
        file = _Forward(io.BytesIO(mended(data)))
    except soundfile.LibsndfileError:
        return _with_av(data)
    return Recording(int(file.samplerate), _blocks(file))


class _Forward(soundfile.SoundFile):  # type: ignore[misc]  # soundfile has no types
    """A file read from begin to end: soundfile's seeking after each read fails on FLAC streams."""

    def seekable(self) -> bool:
        return False


def _blocks(file: _Forward) -> Iterator[NDArray[np.float32]]:
    with file:
        try:
            while len(block := file.read(file.samplerate, dtype="float32", always_2d=True)):
                yield block.mean(axis=1, dtype=np.float32)
        except soundfile.LibsndfileError as error:
            raise AudioError(
                f"the recording cannot be decoded to its end ({error.error_string}): it is damaged "
                f"or was cut off"
            ) from error


def _with_av(data: bytes) -> Recording:
    try:
        import av
    except ImportError:
        raise _unreadable(data, " (or install nearfuture[media] here)") from None
    try:
        container = av.open(io.BytesIO(data))
        rate = int(container.streams.audio[0].rate or 0)
    except (av.FFmpegError, ValueError, IndexError, AttributeError):  # no decoder, no `rate`
        raise _unreadable(data) from None
    return Recording(rate, _av_blocks(av, container, rate))


def _unreadable(data: bytes, advice: str = "") -> AudioError:
    """What it is, and that it cannot be read."""
    try:
        read(data)
    except AudioError as error:
        return AudioError(f"{error}{advice}")
    return AudioError(f"the recording has no sound{advice}")


def _av_blocks(av: Any, container: Any, rate: int) -> Iterator[NDArray[np.float32]]:
    resampler = av.AudioResampler(format="flt", layout="mono", rate=rate)
    with container:
        try:
            for frame in container.decode(audio=0):
                for mono in resampler.resample(frame):
                    yield mono.to_ndarray()[0].astype(np.float32)
            for mono in resampler.resample(None):
                yield mono.to_ndarray()[0].astype(np.float32)
        except av.FFmpegError as error:
            raise AudioError(
                f"the recording cannot be decoded to its end ({error}): it is damaged or was cut "
                f"off"
            ) from error
