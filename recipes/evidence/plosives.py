"""/t/ and /d/ with a vowel, synthesised: nothing moves but the onset of voicing.

A cascade of resonators with two sources, after Klatt's synthesiser: noise from the burst until the
voice sets in, then pulses of the glottis. Formants glide from the place of /t/ and /d/, which they
share, to those of the vowel, whenever the voice sets in. With recordings, or a synthesiser of text,
the pitch, the burst and the vowel would move along with the voice onset time (VOT); here it is
exact and the only difference.

Source: Klatt, "Software for a cascade/parallel formant synthesizer", 1980; vowels of Peterson and
Barney, 1952; the place of alveolar plosives of Delattre, Liberman and Cooper, 1955.

Shapes: `B` tokens, `N` samples.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

RATE = 8000
BEFORE_MS = 60
"""The closure, silent but for the room; then the burst."""
AFTER_MS = 240
"""From the burst to the end of the vowel."""
VOTS_MS = tuple(range(0, 101, 5))
VOWELS = ("i", "ɛ", "ɑ", "ɔ", "u")

_Array = NDArray[np.float64]

# Hz, of a man; a voice multiplies them by the scale of its vocal tract.
_FORMANTS = np.array(
    [[270, 2290, 3010], [530, 1840, 2480], [730, 1090, 2440], [570, 840, 2410], [300, 870, 2240]]
)
_LOCUS = np.array([200.0, 1800.0, 2700.0])
_FOURTH, _HIGHEST = 3350.0, 3750.0
_BANDWIDTHS = (70.0, 100.0, 140.0, 250.0)
_ASPIRATED_BANDWIDTH = 350.0  # the open glottis damps the first formant
_GLIDE_MS, _BURST_MS, _BURST_HZ, _BURST_BANDWIDTH = 22.0, 4.0, 3300.0, 900.0
_RISE_MS, _FALL_MS = 8.0, 40.0
_STEADY_MS = (120.0, 200.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class Voices:
    """What differs from token to token beside the onset of voicing; arrays (B,).

    Args:
        pitch_hz: fundamental frequency at the onset of voicing; it falls by a tenth.
        tract: factor of all formants, 0.95 to 1.15.
        vowel: index into `VOWELS`.
        burst: level of the burst, as a factor.
        aspiration: level of the noise between burst and voice, as a factor.
        room_db: level of the noise under everything, below the vowel.
        gain_db: level of all.
    """

    pitch_hz: _Array
    tract: _Array
    vowel: NDArray[np.int64]
    burst: _Array
    aspiration: _Array
    room_db: _Array
    gain_db: _Array

    @classmethod
    def draw(cls, count: int, rng: np.random.Generator) -> Voices:
        """So many voices of men and women, all independent of the onset."""
        return cls(
            pitch_hz=rng.uniform(90.0, 230.0, count),
            tract=rng.uniform(0.95, 1.15, count),
            vowel=rng.integers(0, len(VOWELS), count),
            burst=rng.uniform(0.5, 1.5, count),
            aspiration=rng.uniform(0.6, 1.4, count),
            room_db=rng.uniform(-45.0, -25.0, count),
            gain_db=rng.uniform(-6.0, 6.0, count),
        )

    def repeat(self, count: int) -> Voices:
        """Every voice so many times in a row."""
        return Voices(**{name: np.repeat(value, count) for name, value in vars(self).items()})


def synthesise(
    vot_ms: _Array | NDArray[np.int64], voices: Voices, rng: np.random.Generator
) -> NDArray[np.float32]:
    """Speak a plosive and a vowel with each voice: (B, N) in [-1, 1] at 8 kHz.

    Args:
        vot_ms: (B,) from the burst to the first pulse of the voice.
        voices: B of them.
        rng: of the noises.

    >>> rng = np.random.default_rng(0)
    >>> synthesise(np.array([0, 80]), Voices.draw(2, rng), rng).shape
    (2, 2400)
    """
    B, N = len(vot_ms), RATE * (BEFORE_MS + AFTER_MS) // 1000
    burst_at = RATE * BEFORE_MS // 1000
    ms = 1000 * (np.arange(N) - burst_at) / RATE  # since the burst
    voiced = ms >= np.asarray(vot_ms, np.float64)[:, None]
    ending = np.clip((AFTER_MS - ms) / _FALL_MS, 0.0, 1.0)

    rising = np.clip((ms - np.asarray(vot_ms)[:, None]) / _RISE_MS, 0.0, 1.0)
    pulses = _glottis(np.asarray(vot_ms, np.float64), voices.pitch_hz, ms) * (0.5 + 0.5 * rising)
    breath = rng.standard_normal((B, N)) * ((ms >= 0) & ~voiced)
    source = pulses + 0.055 * voices.aspiration[:, None] * breath

    glide = np.exp(-np.maximum(ms, 0.0) / _GLIDE_MS)
    y = source
    for number, bandwidth in enumerate(_BANDWIDTHS):
        if number < 3:
            target = _FORMANTS[voices.vowel, number][:, None]
            hertz = target + (_LOCUS[number] - target) * glide
        else:
            hertz = np.full((1, N), _FOURTH)
        hertz = np.minimum(hertz * voices.tract[:, None], _HIGHEST)
        widths = np.full((B, N), bandwidth)
        if number == 0:
            widths = np.where(voiced, bandwidth, _ASPIRATED_BANDWIDTH)
        y = _resonate(y, hertz, widths)
    y = np.diff(y, axis=1, prepend=0.0) * ending  # radiation at the lips

    noise = rng.standard_normal((B, N)) * np.where(ms >= 0, np.exp(-ms / _BURST_MS), 0.0)
    tract = np.broadcast_to(voices.tract[:, None], (B, N))
    burst = _resonate(
        noise, np.minimum(_BURST_HZ * tract, _HIGHEST), np.full((B, N), _BURST_BANDWIDTH)
    )
    # The level is that of the vowel where it is voiced at any onset: a mean over the whole token
    # would let the level before the onset tell how late the onset is going to be.
    steady = y[:, (ms >= _STEADY_MS[0]) & (ms < _STEADY_MS[1])]
    y = (
        y / np.sqrt(np.mean(np.square(steady), axis=1, keepdims=True))
        + 0.6 * voices.burst[:, None] * burst
    )
    room = 10 ** (voices.room_db[:, None] / 20) * rng.standard_normal((B, N))
    level = 0.06 * 10 ** (voices.gain_db[:, None] / 20)
    return np.asarray(np.clip(level * (y + room), -1.0, 1.0), np.float32)


def _glottis(vot_ms: _Array, pitch_hz: _Array, ms: _Array) -> _Array:
    """Pulses from the onset of voicing on, the pitch falling by a tenth; without steps of a sample.

    The rounded pulse (Rosenberg 1971) opens for 40 % of a period and closes in 16 %.
    """
    since = (ms - vot_ms[:, None]) / 1000
    turns = pitch_hz[:, None] * (since - 0.1 * since**2 / (2 * AFTER_MS / 1000))
    phase = np.where(since >= 0, turns % 1.0, 1.0)
    opening = 0.5 * (1 - np.cos(np.pi * phase / 0.4))
    closing = np.cos(0.5 * np.pi * (phase - 0.4) / 0.16)
    return np.where(phase < 0.4, opening, np.where(phase < 0.56, closing, 0.0))


def _resonate(x: _Array, hertz: _Array, bandwidth: _Array) -> _Array:
    """Klatt's resonator, `y_n = A x_n + B y_{n-1} + C y_{n-2}`, with a pole that moves.

    All tokens at once: a step of the loop is a few operations on (B,).
    """
    C = -np.exp(-2 * np.pi * bandwidth / RATE)
    B = 2 * np.exp(-np.pi * bandwidth / RATE) * np.cos(2 * np.pi * hertz / RATE)
    driven = ((1 - B - C) * x).T.copy()
    B, C = B.T.copy(), C.T.copy()
    y = np.zeros((x.shape[1] + 2, x.shape[0]))
    for n in range(x.shape[1]):
        y[n + 2] = driven[n] + B[n] * y[n + 1] + C[n] * y[n]
    return y[2:].T
