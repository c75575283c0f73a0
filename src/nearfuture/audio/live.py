"""Live audio at another sample rate, with a short right context that counts in the budget.

Letters: `L / M` the ratio of the rates in lowest terms, `R` the reach in input samples to either
side, `N` outputs of one step.
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
from nearfuture.error import NearfutureError

__all__ = ["LiveResampler", "ResamplerState"]

RIGHT_MS = 5
STOPBAND_DB = 66.0
LARGEST_TABLE = 4_000_000  # filter taps, 8 bytes each
BLOCK = 256  # outputs computed at once: bounds the memory of a long step


@dataclass(frozen=True, eq=False)
class ResamplerState:
    """All that a live resampler remembers; its size does not grow with the stream.

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

    Args:
        rate: sample rate of the input, in Hz.
        to: sample rate of the output, in Hz.

    Raises:
        NearfutureError: for a rate that is not a whole number from 1000 to 768000, or two whose
            ratio needs too large a table of filters.

    Source: Crochiere and Rabiner, "Multirate digital signal processing", 1983; Kaiser's formulas
    for width and attenuation.

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
        """Outputs that exist after `samples` inputs while the stream is open."""
        return self.total(max(0, samples - self.right_samples))

    def total(self, samples: int) -> int:
        """Outputs of a stream that has ended after `samples` inputs: ⌈samples · to / rate⌉."""
        return resampled_length(samples, self.rate, self.to)

    def start(self) -> ResamplerState:
        """The state of a stream that has not begun: silence before it."""
        return ResamplerState(_frozen(np.zeros(self.right_samples, np.float32)), phase=0)

    def step(
        self, samples: ArrayLike, state: ResamplerState
    ) -> tuple[NDArray[np.float32], ResamplerState]:
        """The outputs that become final with these samples, and the state after them.

        Args:
            samples: (n,) the next samples of the stream, floating point, any n ≥ 0.
            state: from `start`, or from the step before.

        Returns:
            (N,) float32, and the new state; the old one stays valid.

        Raises:
            NearfutureError: for samples that are not one channel of floating point.
        """
        mono = as_mono(samples)
        if self.rate == self.to:
            return mono.copy(), state
        held = np.concatenate((state.samples, mono))
        centres = len(held) - 2 * self.right_samples
        count = max(0, -((state.phase - centres * self._up) // self._down))
        end = state.phase + count * self._down
        positions = np.arange(state.phase, end, self._down)
        dropped, phase = divmod(end, self._up)
        after = ResamplerState(_frozen(held[dropped:].copy()), phase)
        return self._outputs(held, positions), after

    def finish(self, state: ResamplerState) -> NDArray[np.float32]:
        """The outputs that were still waiting for a future that is now known to be silent."""
        return self.step(np.zeros(self.right_samples, np.float32), state)[0]

    def _outputs(
        self, held: NDArray[np.float32], positions: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        # The products are summed along contiguous rows of one fixed length: numpy's order of
        # additions then depends on nothing else, in particular not on the number of rows.
        outputs = np.empty(len(positions), np.float32)
        if len(positions) == 0:
            return outputs
        windows = sliding_window_view(held, self._filters.shape[1])
        begins, phases = np.divmod(positions, self._up)
        for at in range(0, len(positions), BLOCK):
            block = slice(at, at + BLOCK)
            products = self._filters[phases[block]]
            products *= windows[begins[block]]
            outputs[block] = products.sum(axis=1)
        return outputs


@lru_cache(maxsize=32)
def _filters(rate: int, to: int, right: int) -> NDArray[np.float64]:
    """(L, 2R + 1) taps: row p is the filter of outputs p / L behind an input sample."""
    up = to // math.gcd(rate, to)
    taps = 2 * right + 1
    if up * taps > LARGEST_TABLE:
        raise NearfutureError(
            f"{rate} Hz to {to} Hz is the ratio {up}:{rate // math.gcd(rate, to)}, which needs "
            f"{up * taps} filter taps, more than {LARGEST_TABLE}: use a usual rate (8000, 11025, "
            "16000, 44100, 48000, …), or resample whole recordings with nearfuture.audio.resample"
        )
    if right == 0:
        return _frozen(np.ones((1, 1)))
    # Kaiser: attenuation and length give the width of the transition and the shape of the window
    width_hz = (STOPBAND_DB - 8) / (2.285 * 2 * math.pi) * rate / (2 * right)
    beta = 0.1102 * (STOPBAND_DB - 8.7)
    cutoff = (min(rate, to) / 2 - width_hz / 2) / rate
    distance = np.arange(-right, right + 1) - np.arange(up)[:, None] / up
    inside = np.sqrt(np.maximum(0.0, 1 - (distance / right) ** 2))
    filters = np.sinc(2 * cutoff * distance) * np.i0(beta * inside) * (abs(distance) <= right)
    return _frozen(filters / filters.sum(axis=1, keepdims=True))


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array.setflags(write=False)
    return array
