"""Bytes as they come over a wire, as samples: any cut, with or without a WAV header in front."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearfuture.serving.limits import Refused, shown

__all__ = ["ENCODINGS", "HIGHEST_RATE", "LOWEST_RATE", "PcmReader", "as_rate"]

LOWEST_RATE, HIGHEST_RATE = 4000, 192_000

ENCODINGS = {"int16": 2, "float32": 4, "mulaw": 1, "alaw": 1}
"""What raw audio may be, little-endian, one channel, and how many bytes a sample takes."""

_SIGNATURE = 12  # bytes that tell a WAV
_LARGEST_HEADER = 1 << 16
_ENDLESS = 0x7FFFFF00  # a length that a program wrote before it knew
_EXTENSIBLE = 0xFFFE
_WAV_ENCODINGS = {
    (1, 16): "int16",
    (1, 8): "uint8",
    (1, 24): "int24",
    (1, 32): "int32",
    (3, 32): "float32",
    (6, 8): "alaw",
    (7, 8): "mulaw",
}
_WIDTHS = {**ENCODINGS, "uint8": 1, "int24": 3, "int32": 4}
_CONTAINERS = (
    (0, b"fLaC", "FLAC"),
    (0, b"OggS", "Ogg"),
    (0, b"ID3", "MP3"),
    (4, b"ftyp", "MPEG-4 (m4a, mp4)"),
    (0, b"\x1aE\xdf\xa3", "WebM or Matroska"),
)

_Samples = NDArray[np.float32] | NDArray[np.int16]


def as_rate(value: Any) -> int:
    """A sample rate as a client names it.

    Raises:
        Refused: unless it is a whole number from 4000 to 192000.

    >>> as_rate(8000), as_rate(44100.0)
    (8000, 44100)
    """
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    if isinstance(value, bool) or not whole or not LOWEST_RATE <= value <= HIGHEST_RATE:
        raise Refused(
            "bad_request",
            f"rate is {shown(value)}: a whole number of samples per second from {LOWEST_RATE} "
            f"to {HIGHEST_RATE} is wanted",
        )
    return int(value)


@dataclass(frozen=True)
class _Format:
    """`encoding`, `rate` and `channels` of a WAV, and how many bytes of samples it has, if told."""

    encoding: str
    rate: int
    channels: int
    size: int | None


class PcmReader:
    r"""Turns messages of audio into samples, whatever their borders.

    What does not begin with a WAV header is raw, one channel, little-endian, in `encoding`. A
    header, which may be cut anywhere too, says all that itself; several channels are averaged, and
    what a WAV has behind its samples is left out. At most a header and one sample are held.

    Args:
        encoding: of raw audio, one of `ENCODINGS`.
        rate: of raw audio, in samples per second.

    Attributes:
        rate: that of the header, once one has been read.
        encoding: likewise.

    Raises:
        Refused: for another encoding.

    >>> reader = PcmReader("int16", rate=8000)
    >>> [reader.read(part).tolist() for part in (b"\x01", b"\x00\x02", b"\x00")]
    [[], [1], [2]]
    """

    def __init__(self, encoding: str = "int16", *, rate: int) -> None:
        if encoding not in ENCODINGS:
            raise Refused(
                "bad_request",
                f"encoding is {shown(encoding)}: raw audio is {', '.join(ENCODINGS)}, one channel, "
                f"little-endian; a WAV header says its own",
            )
        self.encoding, self.rate = encoding, rate
        self._channels = 1
        self._held = b""
        self._begun = False
        self._left: int | None = None  # bytes of samples of a WAV

    def read(self, data: bytes) -> _Samples:
        """The samples that these bytes complete: (n,) int16 or float32, n ≥ 0.

        Raises:
            Refused: for a container that is no WAV, and a WAV that is none of the usual kinds.
        """
        self._held += data
        if not self._begun:
            if self._undecided():
                return np.zeros(0, np.int16)
            self._begun = True
        if self._left is not None:
            self._held = self._held[: self._left]
        width = _WIDTHS[self.encoding] * self._channels
        whole = len(self._held) - len(self._held) % width
        ready, self._held = self._held[:whole], self._held[whole:]
        if self._left is not None:
            self._left -= whole
        samples = _decoded(ready, self.encoding)
        if self._channels > 1:
            samples = _scaled(samples).reshape(-1, self._channels).mean(axis=1, dtype=np.float32)
        return samples

    def finish(self) -> _Samples:
        """The samples of a few last bytes that could have begun a header, and do not."""
        if self._begun or len(self._held) >= _SIGNATURE:
            return np.zeros(0, np.int16)
        self._begun = True
        return self.read(b"")

    def _undecided(self) -> bool:
        """Whether what is held may still become a header; takes a whole one off."""
        for offset, signature, kind in _CONTAINERS:
            if self._held[offset:].startswith(signature):
                raise Refused(
                    "bad_audio",
                    f"this audio is {kind}, which cannot be read as it comes: send raw samples or "
                    f"WAV, or the whole file to /v1/audio/transcriptions",
                )
        riff, wave = self._held[:4], self._held[8:12]
        if riff != b"RIFF"[: len(riff)] or wave != b"WAVE"[: len(wave)]:
            return False
        header = _header(self._held)
        if header is None:
            if len(self._held) > _LARGEST_HEADER:
                raise Refused(
                    "bad_audio",
                    f"the WAV header has {_LARGEST_HEADER} bytes and no samples behind it: send "
                    f"the samples alone",
                )
            return True
        form, begin = header
        self.encoding, self.rate, self._channels = form.encoding, form.rate, form.channels
        self._left = form.size
        self._held = self._held[begin:]
        return False


def _header(data: bytes) -> tuple[_Format, int] | None:
    """What a WAV header says, and where its samples begin; None while it is incomplete."""
    at, form = 12, None
    while at + 8 <= len(data):
        name, size = data[at : at + 4], int.from_bytes(data[at + 4 : at + 8], "little")
        if name == b"data":
            if form is None:
                raise Refused("bad_audio", "the WAV header has no fmt chunk before its samples")
            endless = size == 0 or size >= _ENDLESS
            return _Format(*form, None if endless else size), at + 8
        if name == b"fmt ":
            if size < 16 or size > _LARGEST_HEADER:
                raise Refused("bad_audio", f"the fmt chunk of the WAV header has {size} bytes")
            if at + 8 + size > len(data):
                return None
            form = _format(data[at + 8 : at + 8 + size])
        at += 8 + size + size % 2
        if at > _LARGEST_HEADER:
            raise Refused("bad_audio", f"the WAV header has a chunk of {size} bytes")
    return None


def _format(chunk: bytes) -> tuple[str, int, int]:
    tag, channels, rate, _, _, bits = struct.unpack("<HHIIHH", chunk[:16])
    if tag == _EXTENSIBLE and len(chunk) >= 26:
        tag = int.from_bytes(chunk[24:26], "little")
    encoding = _WAV_ENCODINGS.get((tag, bits))
    if encoding is None or not 1 <= channels <= 16:
        raise Refused(
            "bad_audio",
            f"the WAV has format {tag} with {bits} bits and {channels} channels: PCM of 8 to 32 "
            f"bits, 32-bit float, A-law or mu-law of 1 to 16 channels is wanted",
        )
    return encoding, as_rate(rate), channels


def _decoded(data: bytes, encoding: str) -> _Samples:
    if encoding == "int16":
        return np.frombuffer(data, "<i2").astype(np.int16, copy=False)
    if encoding == "float32":
        return np.frombuffer(data, "<f4").astype(np.float32, copy=False)
    if encoding == "mulaw":
        return _MULAW[np.frombuffer(data, np.uint8)]
    if encoding == "alaw":
        return _ALAW[np.frombuffer(data, np.uint8)]
    if encoding == "uint8":
        return ((np.frombuffer(data, np.uint8).astype(np.int16) - 128) * 256).astype(np.int16)
    if encoding == "int24":
        wide = np.zeros((len(data) // 3, 4), np.uint8)
        wide[:, 1:] = np.frombuffer(data, np.uint8).reshape(-1, 3)
        data = wide.tobytes()
    return (np.frombuffer(data, "<i4") / 2**31).astype(np.float32)


def _scaled(samples: _Samples) -> NDArray[np.float32]:
    if samples.dtype == np.int16:
        return samples.astype(np.float32) / np.float32(32768)
    return samples.astype(np.float32, copy=False)


def _mulaw() -> NDArray[np.int16]:
    code = ~np.arange(256, dtype=np.int64) & 0xFF
    magnitude = (((code & 0x0F) << 3) + 0x84 << ((code & 0x70) >> 4)) - 0x84
    return np.where(code & 0x80, -magnitude, magnitude).astype(np.int16)


def _alaw() -> NDArray[np.int16]:
    code = np.arange(256, dtype=np.int64) ^ 0x55
    exponent, mantissa = (code & 0x70) >> 4, (code & 0x0F) << 4
    raised = (mantissa + 0x108) << (np.maximum(exponent, 1) - 1)
    magnitude = np.where(exponent == 0, mantissa + 8, raised)
    return np.where(code & 0x80, magnitude, -magnitude).astype(np.int16)


# ITU-T G.711: what each of the 256 codes stands for.
_MULAW, _ALAW = _mulaw(), _alaw()
