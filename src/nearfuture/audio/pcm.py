"""Raw samples in bytes, little-endian: every width and law that a WAV usually has."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Samples: TypeAlias = NDArray[np.float32] | NDArray[np.int16]

WIDTHS = {
    "int16": 2,
    "float32": 4,
    "mulaw": 1,
    "alaw": 1,
    "uint8": 1,
    "int24": 3,
    "int32": 4,
    "float64": 8,
}
"""How many bytes a sample takes, by its encoding."""


def decode_pcm(data: bytes, encoding: str) -> Samples:
    r"""Decode samples: to int16 where that holds them exactly, else to float32.

    Args:
        data: The bytes of a whole number of samples.
        encoding: One of `WIDTHS`.

    >>> decode_pcm(b"\x00\x40", "int16"), decode_pcm(b"\x80\xff", "uint8")
    (array([16384], dtype=int16), array([    0, 32512], dtype=int16))
    """
    if encoding == "int16":
        return np.frombuffer(data, "<i2").astype(np.int16, copy=False)
    if encoding == "mulaw":
        return _MULAW[np.frombuffer(data, np.uint8)]
    if encoding == "alaw":
        return _ALAW[np.frombuffer(data, np.uint8)]
    if encoding == "uint8":
        return ((np.frombuffer(data, np.uint8).astype(np.int16) - 128) * 256).astype(np.int16)
    if encoding == "float32":
        return np.frombuffer(data, "<f4").astype(np.float32, copy=False)
    if encoding == "float64":
        # Beyond float32 is infinite: the rule for levels refuses it, without a warning of numpy's.
        with np.errstate(over="ignore"):
            return np.frombuffer(data, "<f8").astype(np.float32)
    if encoding == "int24":
        wide = np.zeros((len(data) // 3, 4), np.uint8)
        wide[:, 1:] = np.frombuffer(data, np.uint8).reshape(-1, 3)
        data = wide.tobytes()
    return (np.frombuffer(data, "<i4") / 2**31).astype(np.float32)


def as_float(samples: Samples) -> NDArray[np.float32]:
    """Convert samples to float32 with a full scale of [-1, 1]."""
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
