"""Live audio at another sample rate, with a short right context that counts in the budget.

Letters: `L / M` the ratio of the rates in lowest terms, `R` the reach in input samples to either
side, `P` the phases of which a filter is kept, `N` outputs of one step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike, NDArray

from nearfuture.audio.resampling import as_mono, check_rate, resampled_length

RIGHT_MS = 5
STOPBAND_DB = 66.0
LARGEST_TABLE = 1 << 17  # filter taps, 8 bytes each: 1 MB
MAX_TABLES = 32
PHASES = 400  # kept of a ratio of large numbers, for each cycle of the highest tone that passes
BLOCK = 1 << 14  # products computed at once: they stay in the processor's cache


@dataclass(frozen=True, eq=False)
class ResamplerState:
    """The state of a live resampler between two chunks; it does not grow with the stream.

    Args:
        samples: (≥ 2R,) float32, read-only: the input from the first sample the next output needs.
        phase: position of the next output between two input samples, in units of 1 / L.
    """

    samples: NDArray[np.float32]
    phase: int


class LiveResampler:
    """Sample rate conversion for live audio: a short symmetric polyphase filter.

        y_m = Σ_k x_k · h(k - m · M / L),    |k - m · M / L| ≤ R,    L / M = to / rate

    `h` is a sinc in a Kaiser window, cut off so that everything from half the lower rate upwards is
    at least 60 dB down; the band that passes ends about 0.4 kHz below. Each phase sums to one, so a
    constant stays exactly what it is. Silence is taken for what lies beyond either end.

    An output appears with the last input sample it needs, `R` samples (at most 5 ms) behind its own
    time: after `n` inputs there are `emitted(n)`, at the end `total(n)`. Every output is computed
    in the same order of operations whatever the chunks, so any partition gives the same bits. With
    equal rates samples pass through, and `R` is 0.

    The filters of all L phases are kept where they take up to 1 MB, as for all usual rates. Of a
    ratio of larger numbers, such as 16000 : 48001, those of P phases are, and between two of them a
    straight line is taken, which is wrong by (2π · cutoff / P)² / 8 at most: -90 dB. At most 32
    tables are kept.

    Args:
        rate: sample rate of the input, in Hz.
        to: sample rate of the output, in Hz.

    Raises:
        NearfutureError: for a rate that is not a whole number from 4000 to 192000.

    Source: Crochiere and Rabiner, "Multirate digital signal processing", 1983; Kaiser's formulas
    for width and attenuation; J. O. Smith, "Digital audio resampling", for the straight lines.

    >>> resampler = LiveResampler(48_000, 8_000)
    >>> resampler.right_ms, resampler.right_samples
    (5.0, 240)
    >>> speech = np.ones(1000, np.float32)
    >>> first, state = resampler.step(speech[:600], resampler.start())
    >>> second, state = resampler.step(speech[600:], state)
    >>> rest = resampler.finish(state)
    >>> len(first), len(second), len(rest), float(second[0])
    (60, 67, 40, 1.0)
    """

    def __init__(self, rate: int, to: int) -> None:
        self.rate, self.to = check_rate(rate), check_rate(to)
        common = math.gcd(self.rate, self.to)
        self._up, self._down = self.to // common, self.rate // common
        self.right_samples = 0 if self.rate == self.to else self.rate * RIGHT_MS // 1000
        self._filters = _filters(self.rate, self.to, self.right_samples)

    @property
    def right_ms(self) -> float:
        """Right context in milliseconds: how far behind its own time an output appears."""
        return 1000 * self.right_samples / self.rate

    def emitted(self, samples: int) -> int:
        """Count the outputs that exist after `samples` inputs while the stream is open."""
        return self.total(max(0, samples - self.right_samples))

    def total(self, samples: int) -> int:
        """Count the outputs of a whole stream of `samples` inputs: ⌈samples · to / rate⌉."""
        return resampled_length(samples, self.rate, self.to)

    def start(self) -> ResamplerState:
        """Return the state of a stream that has not begun: silence comes before it."""
        return ResamplerState(_frozen(np.zeros(self.right_samples, np.float32)), phase=0)

    def step(
        self, samples: ArrayLike, state: ResamplerState
    ) -> tuple[NDArray[np.float32], ResamplerState]:
        """Compute the outputs that become final with these samples, and the state after them.

        Args:
            samples: (n,) the next samples of the stream, floating point, any n ≥ 0.
            state: The state from `start`, or from the step before.

        Returns:
            (N,) float32, and the new state; the old one stays valid.

        Raises:
            NearfutureError: for samples that are not one channel of floating point.
        """
        mono = as_mono(samples)
        if self.rate == self.to:
            return mono.copy(), state
        window = np.concatenate((state.samples, mono))
        centres = len(window) - 2 * self.right_samples
        count = max(0, -((state.phase - centres * self._up) // self._down))
        end = state.phase + count * self._down
        positions = np.arange(state.phase, end, self._down)
        dropped, phase = divmod(end, self._up)
        after = ResamplerState(_frozen(window[dropped:].copy()), phase)
        return self._outputs(window, positions), after

    def finish(self, state: ResamplerState) -> NDArray[np.float32]:
        """Compute the outputs that still waited for future samples, which are now silence."""
        return self.step(np.zeros(self.right_samples, np.float32), state)[0]

    def _outputs(
        self, window: NDArray[np.float32], positions: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        # The products are summed along contiguous rows of one fixed length: numpy's order of
        # additions then depends on nothing else, in particular not on the number of rows.
        outputs = np.empty(len(positions), np.float32)
        if len(positions) == 0:
            return outputs
        windows = sliding_window_view(window, self._filters.shape[1])
        begins, phases = np.divmod(positions, self._up)
        rows = max(1, BLOCK // self._filters.shape[1])
        for at in range(0, len(positions), rows):
            block = slice(at, at + rows)
            outputs[block] = self._filtered(windows[begins[block]], phases[block])
        return outputs

    def _filtered(
        self, windows: NDArray[np.float32], phases: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Multiply windows (N, 2R + 1) by the filters of their phases (N,) and sum: (N,)."""
        if len(self._filters) == self._up:
            return _products(self._filters[phases], windows)
        row, remainder = np.divmod(phases * (len(self._filters) - 1), self._up)
        lower = _products(self._filters[row], windows)
        upper = _products(self._filters[row + 1], windows)
        return lower + (upper - lower) * (remainder / self._up)


def _products(filters: NDArray[np.float64], windows: NDArray[np.float32]) -> NDArray[np.float64]:
    filters *= windows
    total: NDArray[np.float64] = filters.sum(axis=1)
    return total


@lru_cache(maxsize=MAX_TABLES)
def _filters(rate: int, to: int, right: int) -> NDArray[np.float64]:
    """Compute (L, 2R + 1) taps: row p is the filter of outputs p / L behind an input sample.

    A table that would be too large has (P + 1, 2R + 1): outputs p / P behind, both ends included.
    """
    up = to // math.gcd(rate, to)
    if right == 0:
        return _frozen(np.ones((up, 1)))
    # Kaiser: attenuation and length give the width of the transition and the shape of the window
    width_hz = (STOPBAND_DB - 8) / (2.285 * 2 * math.pi) * rate / (2 * right)
    beta = 0.1102 * (STOPBAND_DB - 8.7)
    cutoff = (min(rate, to) / 2 - width_hz / 2) / rate
    positions = np.arange(up) / up
    if up * (2 * right + 1) > LARGEST_TABLE:
        phases = math.ceil(PHASES * cutoff)
        positions = np.arange(phases + 1) / phases
    distance = np.arange(-right, right + 1) - positions[:, None]
    inside = np.sqrt(np.maximum(0.0, 1 - (distance / right) ** 2))
    filters = np.sinc(2 * cutoff * distance) * np.i0(beta * inside) * (abs(distance) <= right)
    return _frozen(filters / filters.sum(axis=1, keepdims=True))


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array.setflags(write=False)
    return array
