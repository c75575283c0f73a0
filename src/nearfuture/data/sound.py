"""What happens to a recording before a model hears it: level, noise, speed.

Shapes: samples are (n,) float32 in [-1, 1].
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["add_noise", "at_level", "at_speed"]

Samples = NDArray[np.float32]


def at_level(samples: Samples, dbfs: float) -> Samples:
    """Scale to a root mean square of `dbfs` (below 0), less where it would clip.

    >>> loud = at_level(np.full(4, 0.5, np.float32), -20.0)
    >>> round(float(loud[0]), 3)
    0.1
    """
    rms = float(np.sqrt(np.mean(np.square(samples, dtype=np.float64)))) if samples.size else 0.0
    if rms < 1e-10:  # silence, for which the gain would be beyond float32
        return samples
    gain = 10 ** (dbfs / 20) / rms
    peak = float(np.abs(samples).max())
    return samples * np.float32(min(gain, 1.0 / peak))


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


def at_speed(samples: Samples, factor: float) -> Samples:
    """Play faster (factor > 1) or slower, pitch and all, by linear interpolation.

    >>> at_speed(np.arange(6, dtype=np.float32), 2.0).tolist()
    [0.0, 2.0, 4.0]
    """
    if samples.size == 0:
        return samples
    count = int(samples.size / factor)
    at = np.arange(count) * factor
    return np.asarray(np.interp(at, np.arange(samples.size), samples), np.float32)
