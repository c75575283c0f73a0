"""The one thing in WAV headers that libsndfile does not forgive, mended in memory.

Programs that write to a pipe cannot go back to fill in the length of the samples. Those that wrote
0xFFFFFFFF, or anything too large, are read to their end by libsndfile as they are; those that
wrote 0 would be taken for empty.
"""

from __future__ import annotations

import struct

__all__ = ["mended"]


def mended(data: bytes) -> bytes:
    r"""The file with the true length of its samples, if it is a WAV that says 0 and has some.

    Other chunks behind a truly empty `data` chunk are told from samples by their form: names in
    ASCII, and lengths that lead exactly to the end of the file.

    >>> header = b"RIFF____WAVEfmt " + struct.pack("<I", 16) + bytes(16) + b"data"
    >>> mended(header + struct.pack("<I", 0) + b"123456")[-10:]
    b'\x06\x00\x00\x00123456'
    >>> empty = header + struct.pack("<I", 0) + b"LIST" + struct.pack("<I", 2) + b"ab"
    >>> mended(empty) == empty
    True
    """
    if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        return data
    at = 12
    while at + 8 <= len(data):
        name, length = data[at : at + 4], _length(data, at)
        if name == b"data":
            begin = at + 8
            if length == 0 and not _is_chunks(data, begin):
                size = min(len(data) - begin, 0xFFFFFFFF)
                return data[: at + 4] + struct.pack("<I", size) + data[begin:]
            return data
        at = _next(at, length)
    return data


def _is_chunks(data: bytes, at: int) -> bool:
    while at + 8 <= len(data):
        if not all(32 <= byte < 127 for byte in data[at : at + 4]):
            return False
        at = _next(at, _length(data, at))
    return len(data) <= at <= len(data) + 1  # the last byte of padding may be missing


def _length(data: bytes, at: int) -> int:
    return int.from_bytes(data[at + 4 : at + 8], "little")


def _next(at: int, length: int) -> int:
    return at + 8 + length + length % 2
