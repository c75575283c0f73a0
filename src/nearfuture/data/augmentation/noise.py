"""Noise at a stated ratio below a recording: synthetic, or recorded.

Shapes: samples are (n,) float32 in [-1, 1].
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.float32]


def add_noise(samples: Samples, snr_db: float, tilt: float, rng: np.random.Generator) -> Samples:
    """Add Gaussian noise whose power falls as 1 / f^tilt, `snr_db` below the signal.

    >>> rng = np.random.default_rng(0)
    >>> noisy = add_noise(np.full(8000, 0.5, np.float32), 20.0, 0.0, rng)
    >>> round(float(np.std(noisy)), 3)
    0.05
    """
    if samples.size == 0:
        return samples
    size = 1 << (samples.size - 1).bit_length()
    spectrum = np.fft.rfft(rng.standard_normal(size, np.float32))
    frequency = np.arange(spectrum.size, dtype=np.float32)
    spectrum *= np.maximum(frequency, 1) ** np.float32(-tilt / 2)
    spectrum[0] = 0.0
    noise = np.fft.irfft(spectrum, size)[: samples.size]
    power = float(np.mean(np.square(samples, dtype=np.float64)))
    scale = np.sqrt(power / max(float(np.mean(noise**2)), 1e-20)) * 10 ** (-snr_db / 20)
    return np.clip(samples + (np.float32(scale) * noise), -1.0, 1.0)


def mix(samples: Samples, noise: NDArray[Any], snr_db: float, rng: np.random.Generator) -> Samples:
    """Add a recording of noise, `snr_db` below the signal, from a random place on, looped.

    Args:
        samples: (n,) the signal.
        noise: (m,) at the same rate, at any level and in any type of number.
        snr_db: mean power of the signal over that of the piece of noise.
        rng: chooses the place.

    >>> noisy = mix(np.full(4, 0.5, np.float32), np.array([1, -1]), 20.0, np.random.default_rng(0))
    >>> np.abs(noisy - 0.5).round(3)
    array([0.05, 0.05, 0.05, 0.05], dtype=float32)
    """
    if samples.size == 0 or noise.size == 0:
        return samples
    begin = int(rng.integers(noise.size))
    end = begin + samples.size
    if end <= noise.size:
        piece = noise[begin:end].astype(np.float32)
    else:
        piece = np.resize(np.roll(noise, -begin), samples.size).astype(np.float32)
    noise_power = float(np.mean(np.square(piece, dtype=np.float64)))
    if noise_power <= 0:  # a piece of silence
        return samples
    power = float(np.mean(np.square(samples, dtype=np.float64)))
    piece *= np.float32(np.sqrt(power / noise_power) * 10 ** (-snr_db / 20))
    return np.asarray(np.clip(samples + piece, -1.0, 1.0), np.float32)
