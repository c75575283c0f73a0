"""A stretch of a file as a file of its own, and random access in pieces."""

from __future__ import annotations

import io
import os
from typing import BinaryIO

_PIECE = 1 << 18
_BACK = 1 << 12  # what is looked up to and fro, such as a frame and the next, is read once


class Bytes:
    """Random access to a file for walks over its headers: it is read in pieces.

    Args:
        file: seekable.

    Attributes:
        size: of the file, in bytes.

    >>> data = Bytes(io.BytesIO(b"abcdef"))
    >>> data.at(2, 3), data.at(5, 9), data.find(b"de", 1)
    (b'cde', b'f', 3)
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.size = file.seek(0, os.SEEK_END)
        self._begin, self._piece = 0, b""

    def at(self, offset: int, count: int) -> bytes:
        """As many bytes from there as are there."""
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
        """Where these bytes come next; -1 if nowhere."""
        while len(self.at(offset, len(mark))) == len(mark):  # its piece is there now
            if (at := self._piece.find(mark, offset - self._begin)) >= 0:
                return self._begin + at
            offset = self._begin + len(self._piece) - len(mark) + 1
        return -1


class Window(io.RawIOBase):
    """The bytes from `begin` to `end` of a file, behind a prefix, as a file that can be read.

    Args:
        file: seekable; nobody else may read it meanwhile. It is not closed with the window.
        begin: the first byte.
        end: behind the last byte.
        prefix: bytes that stand before them.

    >>> Window(io.BytesIO(b"abcdef"), 2, 4, b"xy").read()
    b'xycd'
    """

    def __init__(self, file: BinaryIO, begin: int, end: int, prefix: bytes = b"") -> None:
        super().__init__()
        self._file, self._begin, self._prefix = file, begin, prefix
        self._size = len(prefix) + max(0, end - begin)
        self._at = 0

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def tell(self) -> int:
        """Where the next byte is read."""
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to another place."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Read into a buffer."""
        count = max(0, min(len(buffer), self._size - self._at))
        head = self._prefix[self._at : self._at + count]
        buffer[: len(head)] = head
        there = len(head)
        if there < count:
            self._file.seek(self._begin + self._at + there - len(self._prefix))
            data = self._file.read(count - there)
            buffer[there : there + len(data)] = data
            there += len(data)
        self._at += there
        return there
