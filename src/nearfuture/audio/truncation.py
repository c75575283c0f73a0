"""Files that were cut off: what the container promised against what is there.

libsndfile reads a truncated WAV, AIFF, AU, Ogg or MP3 file without a word, as if it were shorter.
"""

from __future__ import annotations

import os
from typing import BinaryIO

__all__ = ["cut_off"]

# Programs that write to a pipe cannot know the length; they write 0, or (nearly) the largest there
# is: 0xFFFFFFFF (ffmpeg), 0x7FFFF000 and a little (sox).
_UNKNOWN = 0x7FFFF000
_LARGEST_OGG_PAGE = 27 + 255 + 255 * 255
_XING_WITHIN = 2048  # the first frame of an MP3 stream, where encoders note its size


def cut_off(file: BinaryIO) -> str | None:
    r"""How a file shows that its end is missing; None where it does not.

    WAV (RF64, too), AIFF and AU say how many bytes of samples follow; Ogg (Vorbis, Opus) marks its
    last page; MP3 files mostly note their size in the first frame. Where that is missing, and in
    W64, CAF and other kinds, nothing can be told. FLAC is told by decoding: `audio.probe` does. A
    live recorder that was stopped the hard way leaves such marks out, too.

    Args:
        file: open at any place, in binary mode; it must be possible to seek in it.

    >>> import io
    >>> header = b"RIFF____WAVEdata" + (100).to_bytes(4, "little")
    >>> cut_off(io.BytesIO(header + bytes(60)))
    '60 of 100 bytes of samples are there'
    >>> cut_off(io.BytesIO(header + bytes(100))) is None
    True
    """
    size = file.seek(0, os.SEEK_END)
    head = _at(file, 0, 12)
    if head[8:] == b"WAVE" and head[:4] in (b"RIFF", b"RF64", b"BW64"):
        return _wav(file, size)
    if head[:4] == b"FORM" and head[8:] in (b"AIFF", b"AIFC"):
        return _fewer(size, 8 + int.from_bytes(head[4:8], "big"), "bytes")
    if head[:4] == b".snd":
        begin, length = int.from_bytes(head[4:8], "big"), int.from_bytes(head[8:12], "big")
        known = length < _UNKNOWN
        return _fewer(size - begin, length, "bytes of samples") if known else None
    if head[:4] == b"OggS":
        return _ogg(file, size)
    return _mp3(file, size)


def _fewer(there: int, promised: int, what: str) -> str | None:
    return f"{max(0, there)} of {promised} {what} are there" if there < promised else None


def _wav(file: BinaryIO, size: int) -> str | None:
    at, long_length = 12, 0
    while len(chunk := _at(file, at, 16)) >= 8:
        name, length = chunk[:4], int.from_bytes(chunk[4:8], "little")
        if name == b"ds64":  # RF64 keeps its 64-bit lengths here
            long_length = int.from_bytes(_at(file, at + 16, 8), "little")
        if name == b"data":
            if length == 0xFFFFFFFF and long_length:
                length = long_length
            elif length >= _UNKNOWN:
                return None
            return _fewer(size - at - 8, length, "bytes of samples")
        at += 8 + length + length % 2
    return "it ends before its samples begin"


def _ogg(file: BinaryIO, size: int) -> str | None:
    tail = _at(file, max(0, size - _LARGEST_OGG_PAGE), _LARGEST_OGG_PAGE)
    at = tail.rfind(b"OggS\0")
    while at >= 0:  # samples may hold these letters by chance: only the last page ends the file
        head = tail[at : at + 27]
        segments = tail[at + 27 : at + 27 + head[26]] if len(head) == 27 else b""
        if head[5:6] and head[5] & 4 and at + 27 + len(segments) + sum(segments) == len(tail):
            return None
        at = tail.rfind(b"OggS\0", 0, at)
    return "its last page, which says that it is the last, is not there or not complete"


def _mp3(file: BinaryIO, size: int) -> str | None:
    head = _at(file, 0, 10)
    begin = 0
    if head[:3] == b"ID3":  # a tag before the first frame; its length has 7 bits in each byte
        begin = 10 + sum(
            byte << shift for byte, shift in zip(head[6:10], (21, 14, 7, 0), strict=True)
        )
    frame = _at(file, begin, _XING_WITHIN)
    if frame[:1] != b"\xff":
        return None
    at = max(frame.find(b"Xing"), frame.find(b"Info"))
    if at < 0 or at + 16 > len(frame):
        return None
    flags = frame[at + 7]
    if not flags & 2:
        return None
    field = at + 8 + (4 if flags & 1 else 0)  # behind the number of frames, if that is there
    promised = int.from_bytes(frame[field : field + 4], "big")
    return _fewer(size - begin, promised, "bytes")


def _at(file: BinaryIO, offset: int, count: int) -> bytes:
    file.seek(offset)
    return file.read(count)
