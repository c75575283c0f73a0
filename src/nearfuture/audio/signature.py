"""The format of a file or a stream by its first bytes: one table for the reader and the server.

A signature at the start of a file is enough. MPEG audio and AAC have none: any sample may look like
the start of a frame. They are recognised where a second frame follows the first exactly where its
length says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nearfuture.audio.mpeg_header import adts_length, mpeg_header

DECIDED_BYTES = 16
"""So many bytes decide, unless they look like the first frame of MPEG audio or AAC."""

LONGEST = 8192 + 7
"""More bytes than this never say more: the longest frame of AAC, and the header of the next."""

# Offset, bytes, and name. The first that fits counts.
_SIGNATURES = (
    (0, b"fLaC", "FLAC"),
    (0, b"OggS", "Ogg"),
    (0, b"riff\x2e\x91\xcf\x11", "Wave64 (w64)"),
    (0, b".snd", "AU"),
    (0, b"dns.", "AU"),
    (0, b"caff", "CAF"),
    (4, b"ftyp", "MPEG-4 (m4a, mp4)"),
    (4, b"moov", "QuickTime"),
    (4, b"mdat", "QuickTime"),
    (4, b"wide", "QuickTime"),
    (0, b"\x1aE\xdf\xa3", "WebM or Matroska"),
    (0, b"0&\xb2u\x8ef\xcf\x11", "Windows Media"),
    (0, b"#!AMR", "AMR"),
    (0, b"#!SILK", "SILK"),
    (0, b"\x02#!SILK", "SILK"),
    (0, b"ADIF", "AAC"),
    (0, b"wvpk", "WavPack"),
    (0, b"MAC ", "Monkey's Audio"),
    (0, b"TTA1", "TTA"),
    (0, b"MPCK", "Musepack"),
    (0, b"MP+", "Musepack"),
    (0, b"Creative Voice F", "VOC"),
    (0, b"NIST_1A\n", "NIST SPHERE"),
    (0, b"FLV\x01", "Flash video"),
    (0, b".RMF\0", "RealMedia"),
    (0, b".ra\xfd", "RealAudio"),
    (0, b"DSD \x1c", "DSD"),
    (0, b"MThd\0\0\0\x06", "MIDI"),
    (0, b"\0\0\x01\xba", "an MPEG program stream"),
    (0, b"PK\x03\x04", "a ZIP archive"),
    (0, b"\x1f\x8b\x08", "a gzip archive"),
    (0, b"%PDF-", "PDF"),
    (0, b"version https://", "a Git LFS pointer, not the file itself"),
)
# The first four bytes and those at 8, with a length between them.
_FORMS = {
    (b"RIFF", b"WAVE"): "WAV",
    (b"RIFX", b"WAVE"): "big-endian WAV (RIFX)",
    (b"RF64", b"WAVE"): "RF64",
    (b"BW64", b"WAVE"): "BW64",
    (b"RIFF", b"AVI "): "AVI",
    (b"RIFF", b"XWMA"): "Windows Media (xWMA)",
    (b"FORM", b"AIFF"): "AIFF",
    (b"FORM", b"AIFC"): "AIFF-C",
    (b"FORM", b"8SVX"): "8SVX",
    (b"FORM", b"16SV"): "16SV",
}


def kind(head: bytes) -> str | None:
    r"""Name the format of a file that begins with these bytes; None where it is unknown.

    Args:
        head: The first `LONGEST` bytes of a file, or as many as there are. With fewer a format may
            not be recognised, see `undecided`; what is recognised stays so.

    >>> kind(b"fLaC\0\0\0\x22"), kind(b"#!AMR-WB\n"), kind(bytes(4000))
    ('FLAC', 'AMR', None)
    >>> frame = b"\xff\xf3\x84\xc4" + bytes(188)  # 64 kbit/s at 24 kHz: 192 bytes
    >>> kind(frame * 2), kind(frame + bytes(4)), kind(frame)
    ('MP3', None, None)
    """
    if form := _FORMS.get((head[:4], head[8:12])):
        return form
    if head[:3] == b"ID3" and 2 <= int.from_bytes(head[3:4]) <= 4:
        return "MP3"
    for offset, signature, name in _SIGNATURES:
        if head[offset:].startswith(signature):
            return name
    return next((frames.name for frames in _FRAMES if frames.fit(head)), None)


def undecided(head: bytes) -> bool:
    r"""Tell whether more bytes behind these may still show a format.

    >>> undecided(b"fL"), undecided(bytes(16)), undecided(b"\xff\xf3\x84\xc4" + bytes(100))
    (True, False, True)
    """
    if kind(head) is not None:
        return False
    return len(head) < DECIDED_BYTES or any(frames.fit(head) is None for frames in _FRAMES)


@dataclass(frozen=True)
class _Frames:
    """A format of frames that have their length in their header.

    Attributes:
        name: The name of the format.
        header: How many bytes a header has.
        length: Read the length of a frame from its header, in bytes; 0 where it is no header.
        mask: The bits of a header that are the same in every frame.
    """

    name: str
    header: int
    length: Callable[[bytes], int]
    mask: bytes

    def fit(self, head: bytes) -> bool | None:
        """Decide whether frames begin here; None while there are too few bytes."""
        at, first = 0, self._fixed(head)
        for _ in range(2):  # two in a row are no coincidence: one in 10¹⁰ of random bytes
            header = head[at : at + self.header]
            if len(header) < self.header:
                return None
            length = self.length(header)
            if not length or self._fixed(header) != first:
                return False
            at += length
        return True

    def _fixed(self, header: bytes) -> bytes:
        return bytes(a & b for a, b in zip(header, self.mask, strict=False))


def _mpeg(layer: int) -> Callable[[bytes], int]:
    """Read the length of a frame, for frames of this layer of MPEG audio."""

    def length(data: bytes) -> int:
        header = mpeg_header(data)
        return header.length if header and header.layer == layer else 0

    return length


_FRAMES = (
    _Frames("MP3", 4, _mpeg(3), b"\xff\xff\x0c\0"),
    _Frames("MPEG audio, layer II", 4, _mpeg(2), b"\xff\xff\x0c\0"),
    _Frames("MPEG audio, layer I", 4, _mpeg(1), b"\xff\xff\x0c\0"),
    _Frames("AAC", 7, adts_length, b"\xff\xff\xff\xf0\0\0\0"),
)
