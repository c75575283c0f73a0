"""How many more streams a dispatcher can compute: its load, known before open streams suffer."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from nearfuture.error import NearfutureError

_ROUNDS = 256
_SECONDS = 5.0

_Array: TypeAlias = NDArray[np.float64]


class Busy(NearfutureError):  # noqa: N818 - HTTP's word
    """An error for a stream that a full dispatcher does not admit.

    Args:
        streams: open ones.
        max_streams: the most that may be open.
        load: of one more stream; 1 is all the time there is.
        limit: of the load.

    >>> print(Busy(streams=99, max_streams=128, load=0.834, limit=0.8))
    99 streams are open, and one more would bring the load to 0.83, over the limit of 0.80: try \
again when one has ended, or try another server
    """

    code = "busy"

    def __init__(self, *, streams: int, max_streams: int, load: float, limit: float) -> None:
        self.streams, self.max_streams = streams, max_streams
        self.load, self.limit = load, limit
        if streams >= max_streams:
            reason = f"{streams} streams are open, the most there may be"
        else:
            reason = (
                f"{streams} streams are open, and one more would bring the load to {load:.2f}, "
                f"over the limit of {limit:.2f}"
            )
        super().__init__(f"{reason}: try again when one has ended, or try another server")


class Load:
    """The share of the time that is needed if every open stream is fed in real time.

        load(N) = slowdown · T(N) / quantum

    `T(N)` is how long a round of N streams takes on the idle machine, measured at the start for a
    few N and interpolated; `slowdown` is how much longer the rounds of the last seconds took than
    `T` says of their sizes and of the tails in them, everything included: reading, delivery,
    neighbours. At load 1 a round of all streams lasts as long as the audio it computes, and beyond
    that they fall behind; up to there a quantum waits for at most one round and is computed in the
    next.

    Args:
        sizes: of the rounds that were measured, ascending.
        seconds: that each of them took.
        quantum_s: audio of one quantum.
        tails: sizes and seconds, likewise, of the tails of streams that end together; they count
            as nothing unless given.

    >>> load = Load([1, 100], [0.005, 0.025], quantum_s=0.04)
    >>> load.of(100), load.of(0)
    (0.625, 0.0)
    >>> load.record(100, 0.05, now=7.0)
    >>> load.of(100, now=7.0), load.of(100, now=60.0)
    (1.25, 0.625)
    """

    def __init__(
        self,
        sizes: Sequence[int],
        seconds: Sequence[float],
        *,
        quantum_s: float,
        tails: tuple[Sequence[int], Sequence[float]] = ((), ()),
    ) -> None:
        self._steps = _curve(sizes, seconds)
        self._tails = _curve(*tails)
        self._quantum_s = quantum_s
        self._rounds: deque[tuple[float, float, float]] = deque(maxlen=_ROUNDS)

    def record(self, size: int, seconds: float, *, now: float, tails: int = 0) -> None:
        """Count a round of `size` streams and some tails, which took so long and ended now."""
        expected = float(np.interp(size, *self._steps)) + float(np.interp(tails, *self._tails))
        self._rounds.append((now, expected, seconds))

    def slowdown(self, *, now: float | None = None) -> float:
        """Return how many times as long recent rounds took as on the idle machine, or 1."""
        recent = [r for r in self._rounds if now is None or now - r[0] < _SECONDS]
        expected = sum(r[1] for r in recent)
        return sum(r[2] for r in recent) / expected if expected else 1.0

    def of(self, streams: int, *, now: float | None = None) -> float:
        """Return the load if so many streams are fed in real time."""
        return float(np.interp(streams, *self._steps)) * self.slowdown(now=now) / self._quantum_s


def _curve(sizes: Sequence[int], seconds: Sequence[float]) -> tuple[_Array, _Array]:
    return np.array([0.0, *sizes]), np.array([0.0, *seconds])
