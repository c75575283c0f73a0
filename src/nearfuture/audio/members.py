"""How many recordings a file holds, and whether their ends are there; a walk for each format.

libsndfile reads a truncated WAV, AIFF, AU, Ogg or MP3 file without a word, as if it were shorter,
and of several files behind one another it reads the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import BinaryIO, cast

from nearfuture.audio.error import AudioError, Damage
from nearfuture.audio.member import Member
from nearfuture.audio.mpeg import mpeg_members
from nearfuture.audio.ogg import ogg_members
from nearfuture.audio.wav import (
    MAX_CHUNKS,
    UNKNOWN_LENGTH,
    WavHeader,
    ends_with_chunks,
    is_wav,
    riff_chunks,
    wav_header,
)
from nearfuture.audio.window import Bytes, Window

MAX_MEMBERS = 1000
"""Recordings that are read of one file: each costs time and memory before the first is decoded."""

_FLAC = b"fLaC\0\0\0\x22"  # the first block is always of this length
_FILE_PROPERTIES = bytes.fromhex("a1dcab8c47a9cf118ee400c00c205365")
_ASF_HEADER = 1 << 20
_TRAILERS = (b"TAG", b"ID3", b"APET")


def members(file: BinaryIO, kind: str | None) -> list[Member]:
    """List the recordings of a file; where its format is unknown, the file is one recording.

    Args:
        file: Seekable.
        kind: The format, as `nearfuture.audio.signature.kind` calls it.
    """
    data = Bytes(file)
    listed: list[Member] = []
    for item in _walk(file, data, kind):
        if isinstance(item, Member) and len(listed) < MAX_MEMBERS:
            listed.append(item)
            continue
        damage = item if isinstance(item, Damage) else _too_many()
        last = listed.pop() if listed else Member(begin=0, end=data.size)
        return [*listed, replace(last, damage=damage)]
    return listed or [Member(begin=0, end=data.size)]


def cut_off_media(file: BinaryIO) -> Damage | None:
    """Explain why a Windows Media file is cut off: its demuxer only estimates the end."""
    data = Bytes(file)
    at = data.find(_FILE_PROPERTIES, 0)
    if not 0 <= at < _ASF_HEADER or data.at(at + 88, 1)[0] & 1:  # a live stream has no size
        return None
    return _shorter(data.size, int.from_bytes(data.at(at + 40, 8), "little"), "bytes")


def _too_many() -> Damage:
    return Damage(
        f"holds more than {MAX_MEMBERS} recordings one behind another: what follows is not read; "
        f"split it first"
    )


def _shorter(size: int, promised: int, unit: str) -> Damage | None:
    if size >= promised:
        return None
    return Damage(f"was cut off: {max(0, size)} of {promised} {unit} are there")


def _walk(file: BinaryIO, data: Bytes, kind: str | None) -> Iterator[Member | Damage]:
    """Yield the members, and then what is wrong behind the last, if anything is."""
    if is_wav(data.at(0, 12)):
        return _wav(file, data)
    if kind == "Ogg":
        return ogg_members(data)
    if kind is not None and (kind == "MP3" or kind.startswith("MPEG audio")):
        return mpeg_members(data)
    if kind == "FLAC":
        return _flac(data)
    if kind in ("AIFF", "AIFF-C"):
        return _announced(data, b"FORM", "bytes", _aiff_length)
    if kind == "AU" and data.at(0, 4) == b".snd":
        return _announced(data, b".snd", "bytes of samples", _au_length)
    return iter(())


def _wav(file: BinaryIO, data: Bytes) -> Iterator[Member | Damage]:
    begin: int | None = 0
    while begin is not None:
        part = cast(BinaryIO, Window(file, begin, data.size))
        try:
            header = wav_header(part)
        except AudioError as error:
            yield Damage(f"is damaged: {error}")
            return
        if header is None:
            yield Damage("was cut off: it ends before its samples begin")
            return
        member, begin = _wav_member(part, header, begin, data.size)
        yield member


def _wav_member(
    part: BinaryIO, header: WavHeader, begin: int, size: int
) -> tuple[Member, int | None]:
    """One recording, and where the next begins."""
    first_sample = begin + header.begin
    end, after, damage = size, None, None
    if header.announced is not None:
        damage = _shorter(size - first_sample, header.announced, "bytes of samples")
        end = min(size, first_sample + header.announced)
        if damage is None:
            after, damage = _after_samples(part, header.begin + header.announced, size - begin)
            after = None if after is None else begin + after
    elif header.length_is_zero and ends_with_chunks(part, header.begin, size - begin):
        end = first_sample
    if header.readable:
        if damage is not None:
            frames = (end - first_sample) // header.frame_bytes
            damage = replace(damage, at_s=frames / header.rate)
        return Member(begin=first_sample, end=end, wav=header, damage=damage), after
    if header.length_is_zero and end > first_sample:
        damage = Damage("states that it has 0 bytes of samples, which is not true; write it again")
    return Member(begin=begin, end=size if after is None else after, damage=damage), after


def _after_samples(part: BinaryIO, at: int, size: int) -> tuple[int | None, Damage | None]:
    """Where another WAV begins behind the samples, or which unknown bytes stand there."""
    at += at % 2
    for number, chunk in enumerate(riff_chunks(part, at)):
        if number == MAX_CHUNKS:
            return None, Damage(f"has more than {MAX_CHUNKS} chunks behind its samples")
        part.seek(chunk.begin - 8)
        head = part.read(1 << 12)
        if is_wav(head):
            return chunk.begin - 8, None
        if not head.strip(b"\0") or head.startswith(_TRAILERS):
            break
        if not chunk.is_named:
            return None, Damage(
                f"has {size - chunk.begin + 8} bytes behind the samples that its header announces, "
                f"which are nothing known: samples, if it was not closed properly"
            )
    return None, None


def _flac(data: Bytes) -> Iterator[Member]:
    begin = 0
    while begin >= 0:
        following = data.find(_FLAC, begin + 1)
        yield Member(begin=begin, end=data.size if following < 0 else following)
        begin = following


def _aiff_length(data: Bytes, begin: int) -> tuple[int, int, int]:
    length = int.from_bytes(data.at(begin + 4, 4), "big")
    return begin + 8, length, length % 2


def _au_length(data: Bytes, begin: int) -> tuple[int, int, int]:
    offset, length = (int.from_bytes(data.at(begin + place, 4), "big") for place in (4, 8))
    return begin + offset, length, 0


def _announced(
    data: Bytes, mark: bytes, unit: str, length_of: Callable[[Bytes, int], tuple[int, int, int]]
) -> Iterator[Member]:
    """Walk over files whose header states where the content begins, its length and padding."""
    begin = 0
    while True:
        at, length, padding = length_of(data, begin)
        if length == 0 or length >= UNKNOWN_LENGTH:
            yield Member(begin=begin, end=data.size)
            return
        end = min(at + length + padding, data.size)
        damage = _shorter(data.size - at, length, unit)
        if data.at(end, 4) != mark:
            yield Member(begin=begin, end=data.size, damage=damage)
            return
        yield Member(begin=begin, end=end, damage=damage)
        begin = end
