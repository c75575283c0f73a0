"""Samples at any rate and in chunks of any size, resampled and cut into the quanta of a model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearfuture.audio import LiveResampler, ResamplerState
from nearfuture.audio.limits import check_levels
from nearfuture.error import NearfutureError

_Quanta = list[NDArray[np.float32]]


def as_samples(samples: ArrayLike) -> NDArray[np.float32]:
    """Return one channel of float32 in [-1, 1], from floating point or int16.

    Raises:
        NearfutureError: for another dtype or shape, for a sample that is not finite, and for
            floating point that was not scaled.

    >>> as_samples(np.array([16384, -32768], np.int16)).tolist()
    [0.5, -1.0]
    """
    array = np.asarray(samples)
    if array.ndim != 1:
        raise NearfutureError(
            f"`samples` must be one channel, shape (samples,), not {array.shape}: average the "
            f"channels first",
            parameter="samples",
        )
    if array.dtype == np.int16:
        return array.astype(np.float32) / np.float32(32768)
    if not np.issubdtype(array.dtype, np.floating):
        raise NearfutureError(
            f"`samples` must be floating point in [-1, 1] or int16, not {array.dtype}",
            parameter="samples",
        )
    check_levels(array)
    return array.astype(np.float32, copy=False)


@dataclass(frozen=True, eq=False)
class QuantaState:
    """The samples of a stream that are not in a quantum yet.

    Attributes:
        resampler: input that the resampler still needs.
        rest: samples at the model's rate, fewer than one quantum.
        begun: whether the first quantum has been cut.
    """

    resampler: ResamplerState
    rest: NDArray[np.float32]
    begun: bool


class Quanta:
    """Cuts a stream of samples into quanta, the first shorter than the others.

    Args:
        rate: samples per second that come in.
        to: samples per second of the model.
        quantum_samples: of every quantum but the first and the last.
        first_samples: of the first.

    >>> quanta = Quanta(8000, 8000, quantum_samples=320, first_samples=120)
    >>> complete, state = quanta.step(np.zeros(500, np.float32), quanta.start())
    >>> [len(q) for q in complete], [len(q) for q in quanta.finish(state)]
    ([120, 320], [60])
    """

    def __init__(self, rate: int, to: int, *, quantum_samples: int, first_samples: int) -> None:
        self.resampler = LiveResampler(rate, to)
        self.quantum_samples = quantum_samples
        self.first_samples = first_samples

    def start(self) -> QuantaState:
        """Return the state of a stream that has not begun."""
        return QuantaState(self.resampler.start(), np.zeros(0, np.float32), begun=False)

    def step(self, samples: NDArray[np.float32], state: QuantaState) -> tuple[_Quanta, QuantaState]:
        """Return the quanta that these samples complete, and the state after them."""
        resampled, resampler = self.resampler.step(samples, state.resampler)
        quanta, rest = self._cut(np.concatenate((state.rest, resampled)), state.begun)
        return quanta, QuantaState(resampler, rest.copy(), state.begun or bool(quanta))

    def finish(self, state: QuantaState) -> _Quanta:
        """Return the quanta that remain when the stream ends; the last may be incomplete."""
        resampled = self.resampler.finish(state.resampler)
        quanta, rest = self._cut(np.concatenate((state.rest, resampled)), state.begun)
        return [*quanta, rest] if len(rest) else quanta

    def _cut(
        self, samples: NDArray[np.float32], begun: bool
    ) -> tuple[_Quanta, NDArray[np.float32]]:
        quanta = []
        size = self.quantum_samples if begun else self.first_samples
        while len(samples) >= size:
            quanta.append(samples[:size])
            samples = samples[size:]
            size = self.quantum_samples
        return quanta, samples
