"""MP3 files frame by frame: how many there are, where one file ends and the next begins.

libsndfile takes the number of frames from the first one, the info frame (Xing's, LAME's or
Fraunhofer's), or estimates it from the first bitrate, and stops there. Here every frame is counted;
where the info frame is missing or wrong, a true one is put in front.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from nearfuture.audio.error import Damage
from nearfuture.audio.member import Member
from nearfuture.audio.mpeg_header import MpegHeader, mpeg_header
from nearfuture.audio.window import Bytes

_MAX_TAGS = 64  # in a row
_INFO_BITRATE = 14  # index of the largest: its frame has room for the information at any rate
_VBRI_AT = 36
_PREROLL = 16 * 1152
_DECODER_DELAY = 529
_PIECE = 1 << 16


@dataclass(frozen=True)
class _InfoFrame:
    """The first frame of a file, in which an encoder writes how long the file is.

    Attributes:
        frame: Its bytes.
        frames: How many frames follow.
        size: How many bytes the file has.
        count_at: Where in a Xing or Info header the number of frames stands; 0 where it is absent.
    """

    frame: bytes
    frames: int | None = None
    size: int | None = None
    count_at: int = 0

    def corrected(self, frames: int) -> bytes:
        """Return it with another number of frames, none of which is trimmed; empty if it cannot be.

        The delay of the encoder, which stands beside it, stays.
        """
        if not self.count_at:
            return b""
        flags = self.frame[self.count_at - 1]
        lame = self.count_at + 4 * bool(flags & 1) + 4 * bool(flags & 2) + 100 * bool(flags & 4)
        at = lame + 4 * bool(flags & 8) + 21
        frame = bytearray(self.frame)
        frame[self.count_at : self.count_at + 4] = struct.pack(">I", frames)
        if at + 3 <= len(frame):
            delay = int.from_bytes(frame[at : at + 3], "big") >> 12
            frame[at : at + 3] = (delay << 12 | _DECODER_DELAY).to_bytes(3, "big")
        return bytes(frame)


@dataclass
class _OpenMember:
    """Frames that belong together, while they are counted."""

    begin: int
    header: MpegHeader
    head: bytes
    info: _InfoFrame | None
    frames: int = 0

    @property
    def full(self) -> bool:
        """Whether there are as many frames as the info frame announces."""
        return self.info is not None and self.info.frames == self.frames

    def closed(self, end: int) -> Member:
        """The frames up to `end` as a file that states its length."""
        begin, prefix = self.begin, b""
        announced = None if self.info is None else self.info.frames
        if announced not in (self.frames, self.frames + 1) and self.header.layer == 3:
            if self.info is not None:  # the prefix takes its place
                begin += self.header.length
                prefix = self.info.corrected(self.frames)
            prefix = prefix or _info_prefix(self.header, self.head, self.frames)
        return Member(begin=begin, end=end, prefix=prefix, preroll_frames=_PREROLL)


def mpeg_members(data: Bytes) -> Iterator[Member | Damage]:
    """Yield the recordings of a file of MPEG audio, and then what is wrong behind the last.

    Each gets an info frame with its true length. A new one begins at an info frame, where an info
    frame says that its own file has ended, and where the kind of frames changes. Tags are left out.
    What else stands between frames is damage, and ends the last recording. Nothing is yielded where
    there are no frames at all.
    """
    member: _OpenMember | None = None
    at, seconds, damage = _first_frame(data), 0.0, None
    while 0 <= at < data.size:
        header = mpeg_header(head := data.at(at, 4))
        if header is None:
            end = behind_tags(data, at)
            if end == at or member is None:  # tags without end are nothing known, either
                damage = _not_a_frame(data, at, seconds)
                break
            yield member.closed(at)
            member, at = None, end
            continue
        if at + header.length > data.size:
            damage = Damage("was cut off: its last frame is not complete", seconds)
            break
        info = _info_frame(data.at(at, header.length), header)
        if member is not None and (info or member.full or header.kind != member.header.kind):
            yield member.closed(at)
            member = None
        if member is None:
            member = _OpenMember(at, header, head, info)
        if info is None:
            member.frames += 1
            seconds += header.samples / header.rate
        at += header.length
    if member is not None:
        yield member.closed(at)
        promised = 0 if member.info is None else member.info.size or 0
        size = data.size - member.begin
        if damage is None and size < promised:
            damage = Damage(f"was cut off: {size} of {promised} bytes are there", seconds)
    if damage is not None:
        yield damage


def _first_frame(data: Bytes) -> int:
    """Find where frames begin: behind tags, and behind what some programs leave before them."""
    at = behind_tags(data, 0)
    head = data.at(at, 1 << 16)
    for skipped in range(len(head)):
        if head[skipped] == 0xFF and _two_frames(data, at + skipped):
            return at + skipped
    return -1


def _two_frames(data: Bytes, at: int) -> bool:
    """Tell whether a frame begins here, with another or the end of the file behind it."""
    first = mpeg_header(data.at(at, 4))
    if first is None:
        return False
    end = at + first.length
    second = mpeg_header(data.at(end, 4))
    return end >= data.size or (second is not None and second.kind == first.kind)


def _not_a_frame(data: Bytes, at: int, seconds: float) -> Damage | None:
    """Tell what stands between frames and is no tag; zeros and spaces at the end are nothing."""
    pieces = (data.at(begin, _PIECE) for begin in range(at, data.size, _PIECE))
    if all(not piece.strip(b"\0 ") for piece in pieces):
        return None
    return Damage("is damaged: what follows is no frame of MPEG audio", seconds)


def behind_tags(data: Bytes, at: int) -> int:
    """Skip the ID3 and APE tags that begin here, if any do."""
    for _ in range(_MAX_TAGS):
        length = _tag_length(data.at(at, 32))
        if length == 0:
            break
        at += length
    return at


def _tag_length(head: bytes) -> int:
    """Read the length of an ID3v2, ID3v1 or APE tag; 0 where none begins so."""
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


def _info_frame(frame: bytes, header: MpegHeader) -> _InfoFrame | None:
    at = 4 + header.side_bytes
    if frame[at : at + 4] in (b"Xing", b"Info"):
        flags = frame[at + 7] if len(frame) > at + 7 else 0
        frames = size = None
        field = at + 8
        if flags & 1:
            frames, field = int.from_bytes(frame[field : field + 4], "big"), field + 4
        if flags & 2:
            size = int.from_bytes(frame[field : field + 4], "big")
        return _InfoFrame(frame, frames, size, at + 8 if flags & 1 else 0)
    if frame[_VBRI_AT : _VBRI_AT + 4] == b"VBRI":
        size, frames = struct.unpack(">II", frame[_VBRI_AT + 10 : _VBRI_AT + 18].ljust(8, b"\0"))
        return _InfoFrame(frame, frames or None, size or None)
    return None


def _info_prefix(header: MpegHeader, head: bytes, frames: int) -> bytes:
    """Make the info frame of so many frames of layer III, none of which is trimmed.

    Behind an info frame libmpg123 leaves out the delay of a decoder, 529 samples, and as many more
    as it says that the encoder added. A frame of silence makes up for them.
    """
    common = (0xFF, head[1] | 1)
    rate, mode = head[2] & 0x0C, head[3] & 0xF0
    first = bytes((*common, _INFO_BITRATE << 4 | rate, mode))
    delay = header.samples - _DECODER_DELAY
    info = bytes(header.side_bytes) + b"Xing\0\0\0\1" + struct.pack(">I", frames + 1)
    info += b"LAME3.100" + bytes(12) + (delay << 12 | _DECODER_DELAY).to_bytes(3, "big")
    silence = bytes((*common, 1 << 4 | rate, mode))
    return _filled(first + info) + _filled(silence)


def _filled(frame: bytes) -> bytes:
    header = mpeg_header(frame[:4])
    assert header is not None
    return frame.ljust(header.length, b"\0")
