"""Ogg files page by page: chained recordings, lost pages, and ends that are not there.

libsndfile reads the first link of a chain and stops without a word at a page that is damaged.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

from nearfuture.audio.error import Damage
from nearfuture.audio.member import Member
from nearfuture.audio.window import Bytes

_HEADER = 27
_BEGINS, _ENDS = 2, 4
_EXACT_PAGES = 4
_REVERSED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


@dataclass(frozen=True)
class _Page:
    """One page: its flags, its place in time, its stream, its number there, and its bytes."""

    flags: int
    granule: int
    serial: int
    number: int
    length: int
    content: int
    whole: bool


def ogg_members(data: Bytes) -> Iterator[Member | Damage]:
    """Yield the links of a chain, each a file of its own, and then what is damaged or missing.

    Nothing is yielded where no page is at the beginning.
    """
    at, begin, seconds = 0, 0, 0.0
    link: _Link | None = None
    damage: Damage | None = None
    while at < data.size and damage is None:
        page = _page(data, at)
        if page is None:
            damage = _no_page(data, at, link is None or link.ended)
            break
        if page.flags & _BEGINS and (link is None or link.has_audio):
            if link is not None:
                yield link.member(begin, at)
                seconds += link.seconds
                if not link.ended:
                    yield Damage("is damaged: the end of its first part is missing", seconds)
                    return
            link, begin = _Link(), at
        if link is None:
            return
        packet = data.at(at + page.content, 64) if page.flags & _BEGINS else b""
        if reason := link.add(page, packet):
            damage = Damage(f"is damaged: {reason}")
        else:
            at += page.length
    if link is None:
        return
    yield link.member(begin, at)
    if damage is None and not link.ended:
        damage = Damage(
            "was cut off: its last page, marked as the last, is not there or not complete"
        )
    if damage is not None:
        yield replace(damage, at_s=seconds + link.seconds)


class _Link:
    """The pages of one link so far; only its first stream counts."""

    def __init__(self) -> None:
        self.has_audio = self.ended = False
        self.seconds = 0.0
        self._rate, self._skip = 0, 0
        self._serial: int | None = None
        self._next = 0
        self._codec = b""
        self._granules: list[int] = []

    def member(self, begin: int, end: int) -> Member:
        """The link as a file of its own.

        libvorbisfile takes a place on the last page for another. What Opus and Speex decode depends
        on what came before, for longer than they say.
        """
        unseekable = None
        if self._codec == b"FLAC":
            unseekable = 0
        elif self._codec == b"vorbis" and len(self._granules) >= _EXACT_PAGES:
            unseekable = self._granules[-1] - self._granules[-_EXACT_PAGES]
        return Member(begin=begin, end=end, unseekable_frames=unseekable)

    def add(self, page: _Page, packet: bytes) -> str | None:
        """Count a page, whose first packet begins so; return what is wrong with it."""
        if not page.whole:
            return "the checksum of a page does not match"
        if page.flags & _BEGINS:
            if self._serial is None:
                self._serial = page.serial
                self._codec, self._rate, self._skip = _clock(packet)
                self._next = page.number + 1
            return None
        self.has_audio = True
        if page.serial != self._serial:
            return None
        if page.number != self._next & 0xFFFFFFFF:
            return "pages are missing"
        self._next = page.number + 1
        if page.granule >= 0:
            self._granules = [*self._granules[-_EXACT_PAGES:], page.granule]
            if self._rate:
                self.seconds = max(self.seconds, (page.granule - self._skip) / self._rate)
        self.ended = self.ended or bool(page.flags & _ENDS)
        return None


def _clock(first: bytes) -> tuple[bytes, int, int]:
    """Read the codec from a stream's first packet, its ticks per second, and those to skip."""
    if first[:7] == b"\x01vorbis":
        return b"vorbis", int.from_bytes(first[12:16], "little"), 0
    if first[:8] == b"OpusHead":
        return b"opus", 48_000, int.from_bytes(first[10:12], "little")
    if first[:5] == b"\x7fFLAC":
        return b"FLAC", int.from_bytes(first[27:30], "big") >> 4, 0
    if first[:8] == b"Speex   ":
        return b"speex", int.from_bytes(first[36:40], "little"), 0
    return b"", 0, 0


def _page(data: Bytes, at: int) -> _Page | None:
    """The page that begins here; None where none does, or where not all of it is there."""
    head = data.at(at, _HEADER)
    if len(head) < _HEADER or head[:5] != b"OggS\0":
        return None
    flags, granule, serial, number, checksum, count = struct.unpack("<BqIIIB", head[5:])
    segments = data.at(at + _HEADER, count)
    content = _HEADER + count
    length = content + sum(segments)
    page = data.at(at, length)
    if len(segments) < count or len(page) < length:
        return None
    return _Page(flags, granule, serial, number, length, content, _checksum(page) == checksum)


def _checksum(page: bytes) -> int:
    """The checksum of a page: the polynomial of zlib's, with the bits in the other order."""
    content = page[:22] + bytes(4) + page[26:]
    reflected = zlib.crc32(content.translate(_REVERSED), 0xFFFFFFFF) ^ 0xFFFFFFFF
    return int(f"{reflected:032b}"[::-1], 2)


def _no_page(data: Bytes, at: int, ended: bool) -> Damage | None:
    """Tell what is wrong where no page begins; None for padding and tags behind the end."""
    if data.find(b"OggS\0", at + 1) >= 0:
        return Damage("is damaged: what follows is no page of Ogg")
    rest = data.at(at, 1 << 16)
    if not ended or not rest.strip(b"\0") or rest[:3] == b"TAG":
        return None
    if rest[:4] == b"OggS":
        return Damage("was cut off: its last page is not complete")
    return Damage("is damaged: what follows its last page is no page of Ogg")
