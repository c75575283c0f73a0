"""The four bytes that begin each frame of MPEG audio (MP3), and the seven of ADTS (AAC)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

_V1_KBPS = {
    1: (0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448),
    2: (0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384),
    3: (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
}
_V2_KBPS = {
    1: (0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256),
    2: (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
    3: (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
}
_RATES = (44_100, 48_000, 32_000)
_ADTS_HEADER = 7
_ADTS_RATES = 13  # entries of the table of rates that mean something


@dataclass(frozen=True)
class MpegHeader:
    """The header of one MPEG audio frame.

    Attributes:
        length: Bytes of the frame, its header included.
        samples: Samples of each channel in the frame.
        rate: Samples per second.
        side_bytes: Length of the side information behind the header (layer III).
        layer: 1, 2 or 3.
        kind: The bits that are the same in every frame of one stream: version, layer and rate.
    """

    length: int
    samples: int
    rate: int
    side_bytes: int
    layer: int
    kind: tuple[int, int, int]


@lru_cache(maxsize=4096)
def mpeg_header(data: bytes) -> MpegHeader | None:
    r"""Read the header of a frame; None where these bytes are no header, or state no length.

    Source: ISO 11172-3 and 13818-3, section 2.4.1.3; MPEG 2.5 is Fraunhofer's extension.

    >>> header = mpeg_header(b"\xff\xfb\x90\x64")
    >>> header.length, header.samples, header.rate
    (417, 1152, 44100)
    >>> mpeg_header(b"RIFF") is None
    True
    """
    if len(data) < 4 or data[0] != 0xFF or data[1] & 0xE0 != 0xE0:
        return None
    version, layer = data[1] >> 3 & 3, 4 - (data[1] >> 1 & 3)
    bitrate, rate_index, padding = data[2] >> 4, data[2] >> 2 & 3, data[2] >> 1 & 1
    if version == 1 or layer == 4 or bitrate in (0, 15) or rate_index == 3 or data[3] & 3 == 2:
        return None
    first = version == 3
    kbps = (_V1_KBPS if first else _V2_KBPS)[layer][bitrate]
    rate = _RATES[rate_index] >> {3: 0, 2: 1, 0: 2}[version]
    samples = 384 if layer == 1 else 576 if layer == 3 and not first else 1152
    if layer == 1:
        length = (12_000 * kbps // rate + padding) * 4
    else:
        length = samples // 8 * 1000 * kbps // rate + padding
    mono = data[3] >> 6 == 3
    side = (17 if mono else 32) if first else (9 if mono else 17)
    return MpegHeader(length, samples, rate, side, layer, (version, layer, rate_index))


def adts_length(data: bytes) -> int:
    r"""Read the length in bytes of a frame of AAC in ADTS; 0 where these bytes are no header.

    Source: ISO 13818-7, section 6.2.

    >>> adts_length(b"\xff\xf1\x50\x80\x2e\x7f\xfc"), adts_length(b"fLaC\0\0\0")
    (371, 0)
    """
    if len(data) < _ADTS_HEADER or data[0] != 0xFF or data[1] & 0xF6 != 0xF0:
        return 0
    length = (data[3] & 3) << 11 | data[4] << 3 | data[5] >> 5
    return length if data[2] >> 2 & 15 < _ADTS_RATES and length > _ADTS_HEADER else 0
