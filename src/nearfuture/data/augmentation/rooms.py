"""Rooms: reverberation by an impulse response, measured or simulated.

Shapes: samples are (n,) float32 in [-1, 1].
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.float32]


def in_room(samples: Samples, response: Samples) -> Samples:
    """Simulate a microphone across a room: y = h ∗ x, cut to the length of x.

    The response is used from its direct path, its greatest value, on, so that words stay where
    they are in time; it is scaled to an energy Σ h² of 1, so that the level stays about the same.

    Args:
        samples: (n,).
        response: (m,) impulse response h of the room, at the same rate.

    >>> in_room(np.array([1, 0, 0], np.float32), np.array([0, 0, 4, 3], np.float32)).round(6)
    array([0.8, 0.6, 0. ], dtype=float32)
    """
    response = (
        response[int(np.abs(response).argmax()) :][: samples.size] if response.size else response
    )
    energy = float(np.sum(np.square(response, dtype=np.float64)))
    if energy <= 0:
        return samples
    size = _fast(samples.size + response.size - 1)
    spectrum = np.fft.rfft(samples, size)
    spectrum *= np.fft.rfft(response * np.float32(energy**-0.5), size)
    return np.asarray(np.fft.irfft(spectrum, size)[: samples.size], np.float32)


def simulated_room(rate: int, rt60_s: float, drr_db: float, rng: np.random.Generator) -> Samples:
    """The impulse response of a made-up room: a direct path, then noise that dies away.

    h[0] = 1, h[t] = g · n[t] · 10^(−3 t / RT60) with n Gaussian, which is 60 dB lower after RT60
    (Moorer 1979, "About this reverberation business", whose noise this is); the first reflections
    arrive after 2.5 ms.

    Args:
        rate: samples per second.
        rt60_s: the time in which the sound in the room falls by 60 dB.
        drr_db: energy of the direct path over that of all reflections (direct-to-reverberant).
        rng: the reflections.

    >>> room = simulated_room(8000, 0.3, 6.0, np.random.default_rng(0))
    >>> float(room[0]), room.size, round(10 * float(np.log10(np.sum(room[1:] ** 2))), 3)
    (1.0, 2400, -6.0)
    """
    room = rng.standard_normal(max(2, round(rt60_s * rate)), np.float32)
    room *= 10 ** (np.arange(room.size, dtype=np.float32) * np.float32(-3 / (rt60_s * rate)))
    room[: min(room.size - 1, round(0.0025 * rate))] = 0.0
    room *= np.float32(10 ** (-drr_db / 20) / np.sqrt(np.sum(room**2)))
    room[0] = 1.0
    return room


def _fast(size: int) -> int:
    """A size that an FFT is quick at, at least so great: 2^k times 1, 9/8, 5/4, 3/2 or 27/16."""
    power = 1 << max(4, (size - 1).bit_length())
    return min(n for n in (power * part // 32 for part in (16, 18, 20, 24, 27, 32)) if n >= size)
