"""An uploaded file as samples, about a second at a time: whatever it claims, memory stays small."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from nearfuture.audio import AudioReader, open_audio


@dataclass(frozen=True)
class Recording:
    """A file that is being decoded.

    Attributes:
        rate: samples per second.
        seconds: how long it says it is; None where only decoding can tell.
        blocks: (n,) float32 each, one channel, a second at most; `AudioError` where it is damaged.
            Whoever begins them closes the recording by their end.
        close: lets go of the file and of the process that decodes it, before the first block.
    """

    rate: int
    seconds: float | None
    blocks: Iterator[NDArray[np.float32]]
    close: Callable[[], None]


def recording(data: bytes | BinaryIO) -> Recording:
    """Begin to decode a file, as `nearfuture.audio.open_audio` does.

    Decoding takes time: call this, and take the blocks, outside of the event loop.

    Args:
        data: the whole file, or an open one.

    Raises:
        AudioError: naming what it is, where it cannot be read.

    >>> import io, soundfile
    >>> file = io.BytesIO()
    >>> soundfile.write(file, np.zeros((20_000, 2)), 8000, format="FLAC")
    >>> opened = recording(file.getvalue())
    >>> opened.rate, [len(block) for block in opened.blocks]
    (8000, [8000, 8000, 4000])
    """
    reader = open_audio(data)
    seconds = None if reader.frames is None else reader.frames / reader.rate
    return Recording(reader.rate, seconds, _blocks(reader), reader.close)


def _blocks(reader: AudioReader) -> Iterator[NDArray[np.float32]]:
    with reader:
        yield from reader.blocks(reader.rate)
        reader.check()
