"""How many recordings a file is, and whether their ends are there; by the kind of file.

libsndfile reads a truncated WAV, AIFF, AU, Ogg or MP3 file without a word, as if it were shorter,
and of several files behind one another it reads the first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import BinaryIO, cast

from nearfuture.audio.error import AudioError, Damage
from nearfuture.audio.mpeg import mpeg_stretches
from nearfuture.audio.ogg import ogg_stretches
from nearfuture.audio.stretch import MOST_STRETCHES, TOO_MANY, Stretch
from nearfuture.audio.wav import (
    MOST_CHUNKS,
    UNKNOWN_LENGTH,
    WavHeader,
    ends_with_chunks,
    is_wav,
    riff_chunks,
    wav_header,
)
from nearfuture.audio.window import Bytes, Window

_FLAC = b"fLaC\0\0\0\x22"  # the first block is always of this length
_FILE_PROPERTIES = bytes.fromhex("a1dcab8c47a9cf118ee400c00c205365")
_ASF_HEADER = 1 << 20
_TRAILERS = (b"TAG", b"ID3", b"APET")


def stretches(file: BinaryIO, kind: str | None) -> list[Stretch]:
    """The recordings of a file one behind the other; one, of all of it, where nothing is known.

    Args:
        file: seekable.
        kind: as `nearfuture.audio.signature.kind` calls it.
    """
    data = Bytes(file)
    found: list[Stretch] = []
    if is_wav(data.at(0, 12)):
        found = _wav(file, data)
    elif kind == "Ogg":
        found = ogg_stretches(data)
    elif kind is not None and (kind == "MP3" or kind.startswith("MPEG audio")):
        found = mpeg_stretches(data)
    elif kind == "FLAC":
        found = _flac(data)
    elif kind in ("AIFF", "AIFF-C"):
        found = _announced(data, b"FORM", _aiff_end)
    elif kind == "AU" and data.at(0, 4) == b".snd":
        found = _announced(data, b".snd", _au_end)
    return found or [Stretch(begin=0, end=data.size)]


def cut_off_media(file: BinaryIO) -> Damage | None:
    """Why a Windows Media file is known to be cut off: its demuxer estimates, and does not say."""
    data = Bytes(file)
    at = data.find(_FILE_PROPERTIES, 0)
    if not 0 <= at < _ASF_HEADER or data.at(at + 88, 1)[0] & 1:  # a live stream knows no size
        return None
    return _fewer(data.size, int.from_bytes(data.at(at + 40, 8), "little"), "bytes")


def _fewer(there: int, promised: int, what: str) -> Damage | None:
    if there >= promised:
        return None
    return Damage(f"was cut off: {max(0, there)} of {promised} {what} are there")


def _wav(file: BinaryIO, data: Bytes) -> list[Stretch]:
    found: list[Stretch] = []
    begin: int | None = 0
    while begin is not None:
        if len(found) == MOST_STRETCHES:
            found[-1] = replace(found[-1], damage=TOO_MANY)
            return found
        part = cast(BinaryIO, Window(file, begin, data.size))
        try:
            header = wav_header(part)
            cut = Damage("was cut off: it ends before its samples begin")
        except AudioError as error:
            header, cut = None, Damage(f"is damaged: {error}")
        if header is None:
            if found:
                found[-1] = replace(found[-1], damage=cut)
                return found
            return [Stretch(begin=0, end=data.size, damage=cut)]
        stretch, begin = _one_wav(part, header, begin, data.size)
        found.append(stretch)
    return found


def _one_wav(
    part: BinaryIO, header: WavHeader, begin: int, size: int
) -> tuple[Stretch, int | None]:
    """One recording, and where the next begins."""
    there = size - begin - header.begin
    damage, after = None, None
    if header.announced is not None:
        damage = _fewer(there, header.announced, "bytes of samples")
        end = begin + header.begin + min(there, header.announced)
        if damage is None:
            after, damage = _behind(part, header.begin + header.announced, size - begin)
    elif header.says_zero and ends_with_chunks(part, header.begin, size - begin):
        end = begin + header.begin
    else:
        end = size
    if damage is not None and header.encoding and header.rate and header.channels:
        frames = (end - begin - header.begin) // header.frame_bytes
        damage = replace(damage, at_s=frames / header.rate)
    after = None if after is None else begin + after
    if header.encoding is not None and header.rate and header.channels:
        return Stretch(begin=begin + header.begin, end=end, wav=header, damage=damage), after
    if header.says_zero and end > begin + header.begin:
        damage = Damage("says that it has 0 bytes of samples, which is not true; write it again")
    return Stretch(begin=begin, end=size if after is None else after, damage=damage), after


def _behind(part: BinaryIO, at: int, size: int) -> tuple[int | None, Damage | None]:
    """What stands behind the samples of a WAV: other chunks, another WAV, or what nobody knows."""
    at += at % 2
    for number, chunk in enumerate(riff_chunks(part, at)):
        if number == MOST_CHUNKS:
            return None, Damage(f"has more than {MOST_CHUNKS} chunks behind its samples")
        part.seek(chunk.begin - 8)
        head = part.read(1 << 12)
        if is_wav(head):
            return chunk.begin - 8, None
        if not head.strip(b"\0") or head.startswith(_TRAILERS):
            break
        if not all(32 <= byte < 127 for byte in chunk.name):
            left = size - chunk.begin + 8
            return None, Damage(
                f"has {left} bytes behind the samples that its header announces, which are nothing "
                f"known: samples, if it was not closed properly"
            )
    return None, None


def _flac(data: Bytes) -> list[Stretch]:
    begins = [0]
    while (at := data.find(_FLAC, begins[-1] + 1)) >= 0 and len(begins) <= MOST_STRETCHES:
        begins.append(at)
    found = [Stretch(begin=begin, end=end) for begin, end in pairwise((*begins, data.size))]
    if len(found) > MOST_STRETCHES:
        found = [*found[: MOST_STRETCHES - 1], replace(found[MOST_STRETCHES - 1], damage=TOO_MANY)]
    return found


def _aiff_end(data: Bytes, begin: int) -> tuple[int, int]:
    return begin + 8, int.from_bytes(data.at(begin + 4, 4), "big")


def _au_end(data: Bytes, begin: int) -> tuple[int, int]:
    at, length = (int.from_bytes(data.at(begin + place, 4), "big") for place in (4, 8))
    return begin + at, length


def _announced(
    data: Bytes, mark: bytes, end_of: Callable[[Bytes, int], tuple[int, int]]
) -> list[Stretch]:
    found: list[Stretch] = []
    begin = 0
    while True:
        at, length = end_of(data, begin)
        if length == 0 or length >= UNKNOWN_LENGTH:
            return [*found, Stretch(begin=begin, end=data.size)]
        end = min(at + length + (length % 2 if mark == b"FORM" else 0), data.size)
        what = "bytes" if mark == b"FORM" else "bytes of samples"
        damage = _fewer(data.size - at, length, what)
        more = data.at(end, 4) == mark
        if more and len(found) == MOST_STRETCHES - 1:
            return [*found, Stretch(begin=begin, end=end, damage=TOO_MANY)]
        found.append(Stretch(begin=begin, end=end if more else data.size, damage=damage))
        if not more:
            return found
        begin = end
