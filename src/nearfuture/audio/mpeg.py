"""MP3 files frame by frame: how many there are, where one file ends and the next begins.

libsndfile takes the number of frames from a note in the first one (Xing's or Fraunhofer's), or
estimates it from the first bitrate, and stops there. Here every frame is counted; where the note is
not there or says less, one that says the truth is put in front.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace

from nearfuture.audio.error import Damage
from nearfuture.audio.mpeg_header import MpegHeader, mpeg_header
from nearfuture.audio.stretch import MOST_STRETCHES, TOO_MANY, Stretch
from nearfuture.audio.window import Bytes

_MOST_TAGS = 64  # in a row
_NOTE_BITRATE = 14  # index of the largest: its frame has room for a note at any rate
_VBRI_AT = 36
_PREROLL = 16 * 1152
_DECODER_DELAY = 529
_PIECE = 1 << 16


@dataclass(frozen=True)
class _Note:
    """How many `frames` and `size` in bytes the first `frame` notes of its file, where it does."""

    frame: bytes
    frames: int | None = None
    size: int | None = None
    place: int = 0

    def corrected(self, frames: int) -> bytes:
        """The note with another number of frames, the last of which is wanted whole; if it can be.

        What encoders note beside it, by how much they are late, stays.
        """
        if not self.place:
            return b""
        flags = self.frame[self.place - 1]
        lame = self.place + 4 * bool(flags & 1) + 4 * bool(flags & 2) + 100 * bool(flags & 4)
        at = lame + 4 * bool(flags & 8) + 21
        frame = bytearray(self.frame)
        frame[self.place : self.place + 4] = struct.pack(">I", frames)
        if at + 3 <= len(frame):
            delay = int.from_bytes(frame[at : at + 3], "big") >> 12
            frame[at : at + 3] = (delay << 12 | _DECODER_DELAY).to_bytes(3, "big")
        return bytes(frame)


@dataclass
class _Run:
    """Frames that belong together, while they are counted."""

    begin: int
    header: MpegHeader
    head: bytes
    note: _Note | None
    frames: int = 0

    def full(self) -> bool:
        """Whether there are as many as the note says."""
        return self.note is not None and self.note.frames == self.frames

    def stretch(self, end: int) -> Stretch:
        """The run as a file that says how long it is."""
        begin, prefix = self.begin, b""
        true = self.note is not None and self.note.frames in (self.frames, self.frames + 1)
        if not true and self.header.layer == 3:
            if self.note is not None:  # one is enough
                begin += self.header.length
            prefix = self.note.corrected(self.frames) if self.note is not None else b""
            prefix = prefix or _noted(self.header, self.head, self.frames)
        return Stretch(begin=begin, end=end, prefix=prefix, preroll=_PREROLL)


def mpeg_stretches(data: Bytes) -> list[Stretch]:
    """The recordings of a file of MPEG audio, each with a note of its true length.

    A new one begins where an encoder has put a note, where a note says that its own file has ended,
    and where the kind of frames changes. Tags are left out. What else stands between frames is
    damage, and ends the last stretch. No frames at all: an empty list.
    """
    found: list[Stretch] = []
    run: _Run | None = None
    at, seconds, damage = _first_frame(data), 0.0, None
    while 0 <= at < data.size:
        header = mpeg_header(head := data.at(at, 4))
        if header is None:
            behind = behind_tags(data, at)
            if behind == at or run is None:  # tags without end are nothing known, either
                damage = _gap(data, at, seconds)
                break
            if run is not None:
                found.append(run.stretch(at))
                run = None
            at = behind
            continue
        if at + header.length > data.size:
            damage = Damage("was cut off: its last frame is not complete", seconds)
            break
        note = _note(data.at(at, header.length), header)
        if run is not None and (note is not None or run.full() or header.kind != run.header.kind):
            found.append(run.stretch(at))
            run = None
        if run is None:
            if len(found) == MOST_STRETCHES:
                damage = replace(TOO_MANY, at_s=seconds)
                break
            run = _Run(at, header, head, note)
        if note is None:
            run.frames += 1
            seconds += header.samples / header.rate
        at += header.length
    if run is not None:
        found.append(run.stretch(at))
        promised = run.note.size if run.note is not None else None
        if damage is None and promised is not None and data.size - run.begin < promised:
            damage = Damage(
                f"was cut off: {data.size - run.begin} of {promised} bytes are there", seconds
            )
    if found and damage is not None:
        found[-1] = replace(found[-1], damage=damage)
    return found


def _first_frame(data: Bytes) -> int:
    """Where frames begin: behind tags, and behind what some programs leave before the first."""
    at = behind_tags(data, 0)
    head = data.at(at, 1 << 16)
    for skipped in range(len(head)):
        if head[skipped] == 0xFF and _twice(data, at + skipped):
            return at + skipped
    return -1


def _twice(data: Bytes, at: int) -> bool:
    """Whether a frame begins here, and another behind it, or the file ends there."""
    first = mpeg_header(data.at(at, 4))
    if first is None:
        return False
    end = at + first.length
    second = mpeg_header(data.at(end, 4))
    return end >= data.size or (second is not None and second.kind == first.kind)


def _gap(data: Bytes, at: int, seconds: float) -> Damage | None:
    """What is between frames and no tag; zeros and the like at the very end are nothing."""
    pieces = (data.at(begin, _PIECE) for begin in range(at, data.size, _PIECE))
    if all(not piece.strip(b"\0 ") for piece in pieces):
        return None
    return Damage("is damaged: what follows is no frame of MPEG audio", seconds)


def behind_tags(data: Bytes, at: int) -> int:
    """Where the tags end that begin here, if any do: ID3, APE."""
    for _ in range(_MOST_TAGS):
        length = _tag_length(data.at(at, 32))
        if length == 0:
            break
        at += length
    return at


def _tag_length(head: bytes) -> int:
    """How long a tag is that begins so: ID3v2, ID3v1, APE; 0 where none does."""
    if head[:3] == b"ID3" and len(head) >= 10:  # its length has 7 bits in each byte
        length = sum(
            (byte & 127) << shift for byte, shift in zip(head[6:10], (21, 14, 7, 0), strict=True)
        )
        return 10 + length + (10 if head[5] & 0x10 else 0)
    if head[:3] == b"TAG":
        return 128
    if head[:8] == b"APETAGEX" and len(head) == 32:
        length = int.from_bytes(head[12:16], "little")
        return length + (32 if head[23] & 0x20 else 0) if head[23] & 0xA0 == 0xA0 else 32
    return 0


def _note(frame: bytes, header: MpegHeader) -> _Note | None:
    at = 4 + header.side_bytes
    if frame[at : at + 4] in (b"Xing", b"Info"):
        flags = frame[at + 7] if len(frame) > at + 7 else 0
        frames = size = None
        field = at + 8
        if flags & 1:
            frames, field = int.from_bytes(frame[field : field + 4], "big"), field + 4
        if flags & 2:
            size = int.from_bytes(frame[field : field + 4], "big")
        return _Note(frame, frames, size, at + 8 if flags & 1 else 0)
    if frame[_VBRI_AT : _VBRI_AT + 4] == b"VBRI":
        size, frames = struct.unpack(">II", frame[_VBRI_AT + 10 : _VBRI_AT + 18].ljust(8, b"\0"))
        return _Note(frame, frames or None, size or None)
    return None


def _noted(header: MpegHeader, head: bytes, frames: int) -> bytes:
    """What says that so many frames of layer III follow, all of whose samples are wanted.

    Behind a note libmpg123 leaves out the samples by which a decoder is late, 529, and as many more
    as the note says. A frame of silence makes up for them.
    """
    common = (0xFF, head[1] | 1)
    rate, mode = head[2] & 0x0C, head[3] & 0xF0
    first = bytes((*common, _NOTE_BITRATE << 4 | rate, mode))
    left_out = header.samples - _DECODER_DELAY
    note = bytes(header.side_bytes) + b"Xing\0\0\0\1" + struct.pack(">I", frames + 1)
    note += b"LAME3.100" + bytes(12) + (left_out << 12 | _DECODER_DELAY).to_bytes(3, "big")
    silence = bytes((*common, 1 << 4 | rate, mode))
    return _filled(first + note) + _filled(silence)


def _filled(frame: bytes) -> bytes:
    header = mpeg_header(frame[:4])
    assert header is not None
    return frame.ljust(header.length, b"\0")
