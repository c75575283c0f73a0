"""Counts of a dispatcher, and its latencies over a sliding window."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

_WINDOW = 4096


@dataclass(frozen=True, kw_only=True)
class Occupancy:
    """The load of a dispatcher at one moment.

    Attributes:
        streams: open now.
        load: share of the time they need if all are fed in real time, see `Load`; 1 is all of it.
        load_limit: over which no stream is opened.
    """

    streams: int
    load: float
    load_limit: float


@dataclass(frozen=True, kw_only=True)
class DispatchStats(Occupancy):
    """The load and the counters of a dispatcher at one moment.

    Attributes:
        max_streams: the most that may be open.
        behind_s: how long the oldest complete quantum has been waiting for its text.
        opened, closed, refused, failed: streams since the start; `closed` are those that ended,
            were closed or failed, `failed` those of them that did for an error.
        rounds: batches of quanta since the start.
        batch_sizes: how many of them had how many streams.
        compute_p50_ms, compute_p98_ms: from a quantum being complete to its event, over the last
            few thousand events; None before the first.
        final_p50_ms, final_p98_ms: from the end of a stream to its last event, likewise. Audio that
            came more than a second before it can have been spoken, such as a recording sent at
            once, is in none of these latencies, nor in `behind_s`.
        spent_s: seconds since the start, by what they were spent on. `resample` is spent in the
            threads that bring audio, everything else in that of the engine.
    """

    max_streams: int
    behind_s: float
    opened: int
    closed: int
    refused: int
    failed: int
    rounds: int
    batch_sizes: Mapping[int, int]
    compute_p50_ms: float | None
    compute_p98_ms: float | None
    final_p50_ms: float | None
    final_p98_ms: float | None
    spent_s: Mapping[str, float]


@dataclass
class RoundStats:
    """One round, counted as it is computed.

    Attributes:
        steps: quanta that were computed.
        tails: ends of streams that were.
        seconds: that the round took.
        compute_ms: latencies of the events that count, see `DispatchStats`.
        final_ms: likewise, of the last events of streams.
        spent_s: seconds, by what they were spent on.
    """

    steps: int = 0
    tails: int = 0
    seconds: float = 0.0
    compute_ms: list[float] = field(default_factory=list)
    final_ms: list[float] = field(default_factory=list)
    spent_s: Mapping[str, float] = field(default_factory=dict)


class Meter:
    """Counts and latencies in bounded memory; the caller holds a lock.

    >>> meter = Meter()
    >>> meter.record(RoundStats(steps=2, compute_ms=[3.0, 4.0]))
    >>> latency_percentiles(*meter.windows())
    {'compute_p50_ms': 3.5, 'compute_p98_ms': 3.98, 'final_p50_ms': None, 'final_p98_ms': None}
    """

    def __init__(self) -> None:
        self.opened = self.closed = self.refused = self.failed = 0
        self.batch_sizes: Counter[int] = Counter()
        self.spent_s: defaultdict[str, float] = defaultdict(float)
        self._compute_ms: deque[float] = deque(maxlen=_WINDOW)
        self._final_ms: deque[float] = deque(maxlen=_WINDOW)

    def record(self, stats: RoundStats) -> None:
        """Count a round."""
        if stats.steps:
            self.batch_sizes[stats.steps] += 1
        self._compute_ms.extend(stats.compute_ms)
        self._final_ms.extend(stats.final_ms)
        for part, seconds in stats.spent_s.items():
            self.spent_s[part] += seconds

    def windows(self) -> tuple[list[float], list[float]]:
        """Return copies of the latest latencies, of events and of last events."""
        return list(self._compute_ms), list(self._final_ms)


def latency_percentiles(
    compute_ms: Sequence[float], final_ms: Sequence[float]
) -> dict[str, float | None]:
    """Compute the percentiles of `DispatchStats`, by name; that takes time, so hold no lock."""
    percentiles: dict[str, float | None] = {}
    for kind, window in (("compute", compute_ms), ("final", final_ms)):
        p50, p98 = np.percentile(window, (50, 98)).tolist() if window else (None, None)
        percentiles |= {f"{kind}_p50_ms": p50, f"{kind}_p98_ms": p98}
    return percentiles
