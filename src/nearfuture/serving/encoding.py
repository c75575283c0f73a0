"""How samples are written in bytes: PCM of any width, float, and G.711."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["ENCODINGS", "WIDTHS", "Samples", "decoded", "scaled"]

ENCODINGS = {"int16": 2, "float32": 4, "mulaw": 1, "alaw": 1}
"""What raw audio may be, little-endian, one channel, and how many bytes a sample takes."""

WIDTHS = {**ENCODINGS, "uint8": 1, "int24": 3, "int32": 4}
"""What a WAV may have, likewise."""

Samples: TypeAlias = NDArray[np.float32] | NDArray[np.int16]


def decoded(data: bytes, encoding: str) -> Samples:
    """The samples of one channel or of several in turn, whole ones: (n,) int16 or float32."""
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


def scaled(samples: Samples) -> NDArray[np.float32]:
    """The same as float32 in [-1, 1]."""
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
