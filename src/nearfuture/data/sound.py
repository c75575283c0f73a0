"""What happens to a recording before a model hears it: level, noise, room, speed.

Shapes: samples are (n,) float32 in [-1, 1].
"""

from __future__ import annotations

from typing import Any

import numpy as np
import soxr
from numpy.typing import NDArray

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
    heard = float(np.mean(np.square(piece, dtype=np.float64)))
    if heard <= 0:  # a piece of silence
        return samples
    power = float(np.mean(np.square(samples, dtype=np.float64)))
    piece *= np.float32(np.sqrt(power / heard) * 10 ** (-snr_db / 20))
    return np.asarray(np.clip(samples + piece, -1.0, 1.0), np.float32)


def in_room(samples: Samples, response: Samples) -> Samples:
    """What a microphone across a room hears: y = h ∗ x, cut to the length of x.

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


def simulated_room(rate: int, rt60_s: float, direct_db: float, rng: np.random.Generator) -> Samples:
    """The impulse response of a made-up room: a direct path, then noise that dies away.

    h[0] = 1, h[t] = g · n[t] · 10^(−3 t / RT60) with n Gaussian, which is 60 dB lower after RT60
    (Moorer 1979, "About this reverberation business", whose noise this is); the first reflections
    arrive after 2.5 ms.

    Args:
        rate: samples per second.
        rt60_s: the time in which the sound in the room falls by 60 dB.
        direct_db: energy of the direct path over that of all the rest.
        rng: the reflections.

    >>> room = simulated_room(8000, 0.3, 6.0, np.random.default_rng(0))
    >>> float(room[0]), room.size, round(10 * float(np.log10(np.sum(room[1:] ** 2))), 3)
    (1.0, 2400, -6.0)
    """
    room = rng.standard_normal(max(2, round(rt60_s * rate)), np.float32)
    room *= 10 ** (np.arange(room.size, dtype=np.float32) * np.float32(-3 / (rt60_s * rate)))
    room[: min(room.size - 1, round(0.0025 * rate))] = 0.0
    room *= np.float32(10 ** (-direct_db / 20) / np.sqrt(np.sum(room**2)))
    room[0] = 1.0
    return room


def without_silent_ends(
    samples: Samples, rate: int, *, begin: bool = True, end: bool = True, floor_db: float = -40.0
) -> Samples:
    """Cut the silence before and after what is said, in steps of 10 ms.

    Silence is what stays `floor_db` below the loudest 10 ms; a recording whose background is louder
    than that is left as it is.

    >>> said = np.array([0.0] * 100 + [0.5] * 80 + [0.0] * 90, np.float32)
    >>> without_silent_ends(said, 1000).tolist() == [0.5] * 80
    True
    """
    hop = max(1, rate // 100)
    frames = samples[: samples.size // hop * hop].reshape(-1, hop)
    power = np.einsum("th,th->t", frames, frames)
    if power.size == 0 or power.max() <= 0:
        return samples
    (loud,) = np.nonzero(power > power.max() * 10 ** (floor_db / 10))
    first = int(loud[0]) * hop if begin else 0
    # Less than 10 ms at the very end have not been looked at: they go only with a silent frame.
    last = int(loud[-1] + 1) * hop if end and loud[-1] + 1 < power.size else samples.size
    return samples[first:last]


def at_speed(samples: Samples, factor: float) -> Samples:
    """Play faster (factor > 1) or slower, pitch and all: (⌊n / factor + ½⌋,).

    By soxr's polyphase filters in medium quality, which cost as much as linear interpolation and
    leave 1e-6 of the power of a tone of 0.375 times the rate as distortion, where that left 14 %
    and took another 3.7 dB away.

    >>> at_speed(np.ones(600, np.float32), 1.2).size
    500
    """
    if factor == 1.0 or samples.size == 0:
        return samples
    played = soxr.resample(samples, factor * 1000.0, 1000.0, quality="MQ")
    return np.clip(np.asarray(played, np.float32), -1.0, 1.0)


def _fast(size: int) -> int:
    """A size that an FFT is quick at, at least so great: 2^k times 1, 9/8, 5/4, 3/2 or 27/16."""
    power = 1 << max(4, (size - 1).bit_length())
    return min(n for n in (power * part // 32 for part in (16, 18, 20, 24, 27, 32)) if n >= size)
