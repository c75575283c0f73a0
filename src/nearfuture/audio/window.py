"""Random access to a file in pieces, and a part of a file as a file of its own."""

from __future__ import annotations

import io
import os
from typing import BinaryIO

_PIECE = 1 << 18
_BACK = 1 << 12  # a walk that goes back a little, as from a frame to its header, reads once


class Bytes:
    """Random access to a file for walks over its headers: it is read in pieces.

    Args:
        file: Seekable.

    Attributes:
        size: The size of the file in bytes.

    >>> data = Bytes(io.BytesIO(b"abcdef"))
    >>> data.at(2, 3), data.at(5, 9), data.find(b"de", 1)
    (b'cde', b'f', 3)
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.size = file.seek(0, os.SEEK_END)
        self._begin, self._piece = 0, b""

    def at(self, offset: int, count: int) -> bytes:
        """Read so many bytes from an offset, or as many as there are."""
        count = min(count, self.size - offset)
        if count <= 0:
            return b""
        begin = offset - self._begin
        if not 0 <= begin <= begin + count <= len(self._piece):
            self._begin = max(0, offset - _BACK)
            begin = offset - self._begin
            self._file.seek(self._begin)
            self._piece = self._file.read(begin + max(count, _PIECE))
        return self._piece[begin : begin + count]

    def find(self, mark: bytes, offset: int) -> int:
        """Find where these bytes come next; -1 if nowhere."""
        while len(self.at(offset, len(mark))) == len(mark):  # its piece is there now
            if (at := self._piece.find(mark, offset - self._begin)) >= 0:
                return self._begin + at
            offset = self._begin + len(self._piece) - len(mark) + 1
        return -1


class Window(io.RawIOBase):
    """The bytes from `begin` to `end` of a file, behind a prefix, as a file that can be read.

    Args:
        file: Seekable; nobody else may read it meanwhile. It is not closed with the window.
        begin: Offset of the first byte.
        end: Offset behind the last byte.
        prefix: Bytes in front of them.

    >>> Window(io.BytesIO(b"abcdef"), 2, 4, b"xy").read()
    b'xycd'
    """

    def __init__(self, file: BinaryIO, begin: int, end: int, prefix: bytes = b"") -> None:
        super().__init__()
        self._file, self._begin, self._prefix = file, begin, prefix
        self._size = len(prefix) + max(0, end - begin)
        self._at = 0

    def readable(self) -> bool:
        """Tell that it can be read."""
        return True

    def seekable(self) -> bool:
        """Tell that it can be read from any offset."""
        return True

    def tell(self) -> int:
        """Return the offset of the next byte."""
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to another offset."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Read into a buffer, and return how many bytes."""
        count = max(0, min(len(buffer), self._size - self._at))
        data = self._prefix[self._at : self._at + count]
        if len(data) < count:
            self._file.seek(self._begin + self._at + len(data) - len(self._prefix))
            data += self._file.read(count - len(data))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)
