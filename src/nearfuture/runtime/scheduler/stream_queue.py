"""Which streams are open, and which of them are in the next round: what all threads share."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from time import perf_counter

from nearfuture.error import NearfutureError
from nearfuture.runtime.scheduler.batch import StatePool
from nearfuture.runtime.scheduler.load import Busy, Load
from nearfuture.runtime.scheduler.queue_entry import Arrival, Quantum, QueueEntry
from nearfuture.runtime.scheduler.stats import (
    DispatchStats,
    Meter,
    Occupancy,
    RoundStats,
    latency_percentiles,
)


class StreamQueue:
    """The entries of all open streams, behind one lock; nothing slow is done while it is held.

    Callers bring quanta (`enqueue`); the engine's thread takes rounds (`next_round`,
    `next_quanta`, `ending`, `end_round`).

    Args:
        pool: whose slots the entries have.
        load: how it is estimated.
        max_streams: that may be open.
        max_load: that one more stream may bring.
    """

    def __init__(self, pool: StatePool, load: Load, *, max_streams: int, max_load: float) -> None:
        self._pool, self._load = pool, load
        self._max_streams, self._max_load = max_streams, max_load
        self._changed = threading.Condition()  # guards all that follows, entries included
        self._meter = Meter()
        self._ready: deque[QueueEntry] = deque()
        self._open: dict[QueueEntry, Callable[[], None]] = {}  # and how each is finished
        self._closing = self._drain = False
        self._error: NearfutureError | None = None
        self._process = os.getpid()

    @property
    def error(self) -> NearfutureError | None:
        """The reason why no stream is admitted any more; None while streams are."""
        return self._error

    @property
    def in_child(self) -> bool:
        """Whether this process is a fork of the one that made the queue, without its thread."""
        return os.getpid() != self._process

    def refuse_in_child(self) -> None:
        """Raise an error in a fork of the process that made the queue."""
        if self.in_child:
            raise NearfutureError(
                "the dispatcher's thread runs in the process that made it: make a Dispatcher after "
                "fork",
                code="unsupported",
            )

    # Any thread.

    def admit(
        self, entry: QueueEntry, finish: Callable[[], None], *, reopened: bool = False
    ) -> None:
        """Admit a stream, or raise `Busy`; see `Dispatcher.open` and `LiveStream.reopen`.

        Args:
            entry: of the stream.
            finish: what ends it where the dispatcher drains.
            reopened: whether its load was admitted already.
        """
        with self._changed:
            if self._closing:
                reason = self._error or "the dispatcher is closing"
                raise NearfutureError(
                    f"no more streams here: {reason}", code="unavailable"
                ) from self._error
            streams = len(self._open)
            load = self._load.of(streams + 1, now=perf_counter())
            overloaded = streams and not reopened and load > self._max_load
            if streams >= self._max_streams or overloaded:
                self._meter.refused += 1
                raise Busy(
                    streams=streams, max_streams=self._max_streams, load=load, limit=self._max_load
                )
            self._meter.opened += 1
            self._open[entry] = finish

    def enqueue(
        self,
        entry: QueueEntry,
        quanta: Sequence[Quantum],
        *,
        end: Arrival | None = None,
        resample_s: float = 0.0,
    ) -> None:
        """Queue more quanta of a stream.

        Args:
            entry: of the stream.
            quanta: in their order.
            end: when the stream ended, if it ends with them.
            resample_s: how long making them took.
        """
        with self._changed:
            self._meter.spent_s["resample"] += resample_s
            if not entry.closed:
                entry.waiting.extend(quanta)
                entry.end = end
                self._queue(entry)

    def release(self, entry: QueueEntry) -> None:
        """Close a stream: nothing of it is computed any more, and its place is free."""
        with self._changed:
            self._release(entry)
            self._changed.notify()

    def close(self, *, drain: bool) -> list[Callable[[], None]]:
        """Admit nothing any more, and return what finishes each of the streams that are open."""
        with self._changed:
            self._closing, self._drain = True, drain
            self._changed.notify()
            return list(self._open.values())

    def occupancy(self) -> Occupancy:
        """Return the streams and the load now."""
        with self._changed:
            streams = len(self._open)
            load = self._load.of(streams, now=perf_counter())
            return Occupancy(streams=streams, load=load, load_limit=self._max_load)

    def stats(self) -> DispatchStats:
        """Return streams, load, counts and latencies."""
        with self._changed:
            windows = self._meter.windows()
        latencies = latency_percentiles(*windows)  # not under the lock, which the engine waits for
        with self._changed:
            now, meter = perf_counter(), self._meter
            oldest = [entry.oldest for entry in self._open]
            since = [x.arrival.at_s for x in oldest if x is not None and not x.arrival.early]
            return DispatchStats(
                streams=len(self._open),
                max_streams=self._max_streams,
                load=self._load.of(len(self._open), now=now),
                load_limit=self._max_load,
                behind_s=max(0.0, now - min(since, default=now)),
                opened=meter.opened,
                closed=meter.closed,
                refused=meter.refused,
                failed=meter.failed,
                rounds=sum(meter.batch_sizes.values()),
                batch_sizes=dict(sorted(meter.batch_sizes.items())),
                spent_s=dict(meter.spent_s),
                **latencies,
            )

    # The engine's thread.

    def next_round(self) -> list[QueueEntry]:
        """Wait for streams that have work, and return them; none when the thread is to end."""
        began = perf_counter()
        with self._changed:
            while not self._closing or (self._drain and self._open):
                entries = [entry for entry in self._ready if not entry.closed]
                self._ready.clear()
                for entry in entries:
                    entry.queued, entry.in_round = False, True
                if entries:
                    self._meter.spent_s["idle"] += perf_counter() - began
                    return entries
                self._changed.wait()
            return []

    def next_quanta(self, entries: Sequence[QueueEntry]) -> list[tuple[QueueEntry, Quantum]]:
        """Take the next quantum of each entry that has one."""
        with self._changed:
            steps = [(entry, entry.waiting.popleft()) for entry in entries if entry.waiting]
            for entry, quantum in steps:
                entry.computing = quantum
            return steps

    def ending(self, entries: Sequence[QueueEntry]) -> list[QueueEntry]:
        """Return the entries whose tail is next, also where the stream has ended just now."""
        with self._changed:
            return [entry for entry in entries if entry.needs_only_tail]

    def fail(self, entry: QueueEntry, error: BaseException) -> None:
        """End a stream with an error, and deliver that; only its first error counts."""
        if not isinstance(error, Exception):  # SystemExit and the like end no more than a stream
            error = NearfutureError(f"{type(error).__name__}: {error}", code="internal")
        with self._changed:
            if entry.error is not None:
                return
            entry.error = error
            self._meter.failed += 1
            self._release(entry)
        entry.deliver_error(error)

    def fail_all(self, error: NearfutureError) -> None:
        """End all streams with an error, and admit nothing any more."""
        with self._changed:
            self._closing, self._error = True, error
            entries = list(self._open)
        for entry in entries:
            self.fail(entry, error)

    def end_round(self, entries: Sequence[QueueEntry], stats: RoundStats) -> None:
        """End a round of these entries, and count it."""
        with self._changed:
            for entry in entries:
                entry.in_round, entry.computing = False, None
                if entry.closed:
                    self._free(entry)
                else:
                    self._queue(entry)
            self._meter.record(stats)
            self._load.record(stats.steps, stats.seconds, now=perf_counter(), tails=stats.tails)

    # Under the lock.

    def _queue(self, entry: QueueEntry) -> None:
        if entry.has_work and not entry.queued and not entry.in_round:
            entry.queued = True
            self._ready.append(entry)
            self._changed.notify()

    def _release(self, entry: QueueEntry) -> None:
        if entry.closed:
            return
        entry.closed = True
        entry.waiting.clear()
        del self._open[entry]
        self._meter.closed += 1
        if not entry.in_round:  # else its slot is the engine's until the round is over
            self._free(entry)

    def _free(self, entry: QueueEntry) -> None:
        if entry.slot is not None:
            self._pool.give_back(entry.slot)
            entry.slot = None
