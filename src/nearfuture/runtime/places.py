"""Who is here, whose turn it is, and who may come in: what a dispatcher's threads share."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING

from nearfuture.error import NearfutureError
from nearfuture.runtime.admission import Busy, Load
from nearfuture.runtime.meter import DispatchStats, Meter, Occupancy, latency_ms
from nearfuture.runtime.pool import StatePool
from nearfuture.runtime.seat import Quantum, Seat

if TYPE_CHECKING:
    from nearfuture.runtime.live import LiveStream


class Places:
    """The seats of all open streams, behind one lock; nothing slow is done while it is held.

    Callers bring quanta (`enqueue`, `end`, `leave`); the engine's thread takes turns (`turn`,
    `quanta`, `ending`, `back`).

    Args:
        pool: whose slots the seats have.
        load: how it is estimated.
        most_streams: that may be open.
        most_load: that one more stream may bring.
    """

    def __init__(self, pool: StatePool, load: Load, *, most_streams: int, most_load: float) -> None:
        self._pool, self._load = pool, load
        self._most_streams, self._most_load = most_streams, most_load
        self._changed = threading.Condition()  # guards all that follows, seats included
        self._meter = Meter()
        self._ready: deque[Seat] = deque()
        self._open: dict[Seat, LiveStream] = {}
        self._closing = self._drain = False
        self._over: NearfutureError | None = None

    @property
    def over(self) -> NearfutureError | None:
        """Why nobody is let in any more; None while somebody is."""
        return self._over

    # Any thread.

    def admit(self, seat: Seat, stream: LiveStream, *, again: bool = False) -> None:
        """Let a stream in, or raise `Busy`; see `Dispatcher.open`."""
        with self._changed:
            if self._over is not None:
                raise NearfutureError(f"no more streams here: {self._over}") from self._over
            if self._closing:
                raise NearfutureError("no more streams here: the dispatcher is closing")
            streams = len(self._open)
            load = self._load.of(streams + 1, now=perf_counter())
            if streams >= self._most_streams or (streams and not again and load > self._most_load):
                self._meter.refused += 1
                raise Busy(
                    streams=streams,
                    most_streams=self._most_streams,
                    load=load,
                    limit=self._most_load,
                )
            self._meter.opened += 1
            self._open[seat] = stream

    def enqueue(self, seat: Seat, quanta: list[Quantum], *, took_s: float) -> None:
        """More quanta of a stream are complete; cutting them took so long."""
        with self._changed:
            self._meter.spent_s["resample"] += took_s
            if not seat.closed:
                seat.waiting.extend(quanta)
                self._queue(seat)

    def end(self, seat: Seat, quanta: list[Quantum], *, since: float, early: bool) -> None:
        """A stream has ended with these quanta."""
        with self._changed:
            if not seat.closed:
                seat.waiting.extend(quanta)
                seat.ended_at, seat.ended_early = since, early
                self._queue(seat)

    def leave(self, seat: Seat) -> None:
        """A stream is to be forgotten."""
        with self._changed:
            self._release(seat)
            self._changed.notify()

    def close(self, *, drain: bool) -> list[LiveStream]:
        """Let nobody in any more; the streams that are still open."""
        with self._changed:
            self._closing, self._drain = True, drain
            self._changed.notify()
            return list(self._open.values())

    def occupancy(self) -> Occupancy:
        """Streams and load at this moment."""
        with self._changed:
            streams = len(self._open)
            return Occupancy(streams, self._load.of(streams, now=perf_counter()), self._most_load)

    def stats(self) -> DispatchStats:
        """Streams, load and latencies at this moment."""
        with self._changed:
            windows = self._meter.windows()
        latencies = latency_ms(*windows)  # not under the lock, which the engine waits for
        with self._changed:
            now, meter = perf_counter(), self._meter
            oldest = (seat.oldest for seat in self._open)
            since = min((one.since for one in oldest if one and not one.early), default=now)
            return DispatchStats(
                streams=len(self._open),
                most_streams=self._most_streams,
                load=self._load.of(len(self._open), now=now),
                load_limit=self._most_load,
                behind_s=max(0.0, now - since),
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

    def turn(self) -> list[Seat]:
        """All streams that have work, as soon as there are any; none when it is time to go."""
        began = perf_counter()
        with self._changed:
            while not self._closing or (self._drain and self._open):
                turn = [seat for seat in self._ready if not seat.closed]
                self._ready.clear()
                for seat in turn:
                    seat.queued, seat.in_turn = False, True
                if turn:
                    self._meter.spent_s["idle"] += perf_counter() - began
                    return turn
                self._changed.wait()
            return []

    def quanta(self, turn: Sequence[Seat]) -> list[tuple[Seat, Quantum]]:
        """The next quantum of each that has one."""
        with self._changed:
            steps = [(seat, seat.waiting.popleft()) for seat in turn if seat.waiting]
            for seat, quantum in steps:
                seat.computing = quantum
            return steps

    def ending(self, turn: Sequence[Seat]) -> list[Seat]:
        """Those who need nothing more but their tail, also if they have said so just now."""
        with self._changed:
            return [seat for seat in turn if seat.ends]

    def ended(self, seat: Seat) -> None:
        """A stream has had its tail: its place is free."""
        with self._changed:
            self._release(seat)

    def failed(self, seat: Seat, error: BaseException) -> None:
        """End a stream with an error, and tell it; one that has an error keeps that."""
        if not isinstance(error, Exception):  # SystemExit and the like end no more than a stream
            error = NearfutureError(f"{type(error).__name__}: {error}")
        with self._changed:
            if seat.error is not None:
                return
            seat.error = error
            self._meter.failed += 1
            self._release(seat)
        seat.tell_error(error)

    def all_failed(self, error: NearfutureError) -> None:
        """End all streams with an error, and let nobody in any more."""
        with self._changed:
            self._closing, self._over = True, error
            seats = list(self._open)
        for seat in seats:
            self.failed(seat, error)

    def back(
        self,
        turn: Sequence[Seat],
        *,
        steps: int,
        tails: int,
        took_s: float,
        compute_ms: list[float],
        final_ms: list[float],
        spent_s: Mapping[str, float],
    ) -> None:
        """The turn is over: `steps` quanta and `tails` tails took so long."""
        with self._changed:
            for seat in turn:
                seat.in_turn, seat.computing = False, None
                if seat.closed:
                    self._free(seat)
                else:
                    self._queue(seat)
            self._meter.round(steps, compute_ms=compute_ms, final_ms=final_ms, spent_s=spent_s)
            self._load.record(steps, took_s, now=perf_counter(), tails=tails)

    # Under the lock.

    def _queue(self, seat: Seat) -> None:
        if seat.has_work and not seat.queued and not seat.in_turn:
            seat.queued = True
            self._ready.append(seat)
            self._changed.notify()

    def _release(self, seat: Seat) -> None:
        if seat.closed:
            return
        seat.closed = True
        seat.waiting.clear()
        del self._open[seat]
        self._meter.closed += 1
        if not seat.in_turn:  # else its slot is the engine's until the turn is over
            self._free(seat)

    def _free(self, seat: Seat) -> None:
        if seat.slot is not None:
            self._pool.give_back(seat.slot)
            seat.slot = None
