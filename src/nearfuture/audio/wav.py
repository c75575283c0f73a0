"""RIFF: the chunks of a WAV file and its header, for files and for streams."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from nearfuture.audio.error import AudioError
from nearfuture.audio.pcm import WIDTHS

# Programs that write to a pipe cannot know the length; they write 0, or (nearly) the largest there
# is: 0xFFFFFFFF (ffmpeg), 0x7FFFF000 and a little (sox), 0x7FFFFF00 and a little (others).
UNKNOWN_LENGTH = 0x7FFFF000
_EXTENSIBLE = 0xFFFE
_ENCODINGS = {
    (1, 8): "uint8",
    (1, 16): "int16",
    (1, 24): "int24",
    (1, 32): "int32",
    (3, 32): "float32",
    (3, 64): "float64",
    (6, 8): "alaw",
    (7, 8): "mulaw",
}
_LARGEST_FORM = 1 << 12
MAX_CHUNKS = 256


@dataclass(frozen=True)
class Chunk:
    """A chunk's name, the offset where its content begins, and the length that it announces."""

    name: bytes
    begin: int
    length: int

    @property
    def end(self) -> int:
        """Where the next chunk begins."""
        return self.begin + self.length + self.length % 2

    @property
    def is_named(self) -> bool:
        """Whether the chunk's name is ASCII, as all names are and samples seldom."""
        return all(32 <= byte < 127 for byte in self.name)


@dataclass(frozen=True)
class WavHeader:
    """The header of a WAV.

    Attributes:
        begin: Offset of the first sample.
        announced: Bytes of samples; None where the writer did not know.
        length_is_zero: Whether that is because it wrote 0.
        encoding: One of `nearfuture.audio.pcm.WIDTHS`; None for any other encoding.
        tag: The format tag, 1 for PCM.
        bits: Bits per sample.
        channels: Samples of each frame.
        rate: Samples per second of each channel.
    """

    begin: int
    announced: int | None
    length_is_zero: bool
    encoding: str | None
    tag: int
    bits: int
    channels: int
    rate: int

    @property
    def frame_bytes(self) -> int:
        """Bytes of one sample of every channel."""
        return self.channels * WIDTHS[self.encoding or "uint8"]

    @property
    def readable(self) -> bool:
        """Whether the samples are PCM that needs no decoder."""
        return self.encoding is not None and self.rate > 0 and self.channels > 0


def is_wav(head: bytes) -> bool:
    """Tell whether a file that begins so is a WAV: RIFF, RF64, BW64, or big-endian RIFX."""
    return head[:4] in (b"RIFF", b"RF64", b"BW64", b"RIFX") and head[8:12] == b"WAVE"


def riff_chunks(file: BinaryIO, at: int = 12) -> Iterator[Chunk]:
    r"""Yield the chunks of a RIFF file in order, as far as their headers are there.

    Args:
        file: Seekable; or the beginning of a file in an `io.BytesIO`.
        at: Where the first chunk begins.

    >>> import io
    >>> list(riff_chunks(io.BytesIO(b"RIFF\0\0\0\0WAVEdata\2\0\0\0abLIST")))
    [Chunk(name=b'data', begin=20, length=2)]
    """
    file.seek(0)
    order: str = "big" if file.read(4) == b"RIFX" else "little"
    while True:
        file.seek(at)
        head = file.read(8)
        if len(head) < 8:
            return
        chunk = Chunk(head[:4], at + 8, int.from_bytes(head[4:], order))  # type: ignore[arg-type]
        yield chunk
        at = chunk.end


def wav_header(file: BinaryIO, *, longest: int | None = None) -> WavHeader | None:
    r"""Read the header of a WAV; None where it is not complete, or not yet.

    Args:
        file: As for `riff_chunks`.
        longest: How many bytes may stand before the samples, where all are held in memory.

    Raises:
        AudioError: where the header makes no sense.

    >>> import io
    >>> form = struct.pack("<IHHIIHH", 16, 1, 1, 8000, 16000, 2, 16)
    >>> head = b"RIFF\0\0\0\0WAVEfmt " + form + b"data\4\0\0\0"
    >>> header = wav_header(io.BytesIO(head))
    >>> header.encoding, header.rate, header.begin, header.announced
    ('int16', 8000, 44, 4)
    >>> wav_header(io.BytesIO(head[:-1])) is None
    True
    """
    form, long_length, little = None, 0, _at(file, 0, 4) != b"RIFX"
    for number, chunk in enumerate(riff_chunks(file)):
        if number == MAX_CHUNKS:
            raise AudioError(f"the WAV header has {number} chunks before its samples")
        if longest is not None and chunk.name != b"data" and chunk.end > longest:
            raise AudioError(f"the WAV header has a chunk of {chunk.length} bytes")
        if chunk.name == b"ds64":  # RF64 keeps its 64-bit lengths here
            long_length = int.from_bytes(_at(file, chunk.begin + 8, 8), "little")
        elif chunk.name == b"fmt ":
            if not 16 <= chunk.length <= _LARGEST_FORM:
                raise AudioError(f"the fmt chunk of the WAV header has {chunk.length} bytes")
            form = _at(file, chunk.begin, chunk.length)
        elif chunk.name == b"data":
            length: int | None = chunk.length
            if length == 0xFFFFFFFF and long_length:
                length = long_length
            if form is None:
                raise AudioError("the WAV header has no fmt chunk before its samples")
            length_is_zero = length == 0
            unknown = length is not None and (
                length_is_zero or UNKNOWN_LENGTH <= length <= 0xFFFFFFFF
            )
            return _header(form, chunk.begin, None if unknown else length, length_is_zero, little)
    return None


def _header(
    form: bytes, begin: int, announced: int | None, length_is_zero: bool, little: bool
) -> WavHeader:
    tag, channels, rate, _, align, bits = struct.unpack(
        "<HHIIHH" if little else ">HHIIHH", form[:16]
    )
    if tag == _EXTENSIBLE and len(form) >= 26:
        tag = int.from_bytes(form[24:26], "little")
    encoding = _ENCODINGS.get((tag, bits)) if little else None
    if encoding is not None and align not in (0, channels * WIDTHS[encoding]):
        encoding = None  # padded samples
    return WavHeader(begin, announced, length_is_zero, encoding, tag, bits, channels, rate)


def ends_with_chunks(file: BinaryIO, at: int, size: int) -> bool:
    r"""Tell whether chunks follow one another from here exactly to the end of the file.

    Their names are ASCII; this distinguishes them from samples behind a false length.

    >>> import io
    >>> ends_with_chunks(io.BytesIO(b"LIST\2\0\0\0ab"), 0, 10)
    True
    """
    end = at
    for number, chunk in enumerate(riff_chunks(file, at)):
        if number == MAX_CHUNKS or not chunk.is_named:
            return False
        end = chunk.end
    return size <= end <= size + 1  # the last byte of padding may be missing


def _at(file: BinaryIO, offset: int, count: int) -> bytes:
    file.seek(offset)
    return file.read(count)
