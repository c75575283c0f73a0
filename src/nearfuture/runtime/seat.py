"""One stream as the dispatcher sees it: what waits, where its state is, whom to tell."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nearfuture.runtime.reading import Event, Reading

_LOG = logging.getLogger("nearfuture.dispatch")


@dataclass(frozen=True, eq=False)
class Quantum:
    """Samples for one step.

    Attributes:
        samples: at the model's rate, at most a quantum of them.
        since: when they were complete (`time.perf_counter`).
        tail: whether only the end of the stream completed them: they get no event of their own.
        early: whether they came well before they were due in real time, as those of a recording
            that is sent at once do: that they wait says nothing of the server.
    """

    samples: NDArray[np.float32]
    since: float
    tail: bool
    early: bool


class Seat:
    """One stream's place in the queue.

    `waiting` and the flags are guarded by the dispatcher's lock; `reading` belongs to its thread.

    Args:
        reading: what the stream has said.
        deliver: takes its events.
        failed: takes the error that ended it early.

    Attributes:
        waiting: quanta to be computed.
        computing: the one that is being computed; None between rounds.
        ended_at: when its end was announced (`time.perf_counter`); None before.
        ended_early: whether that was well before it was due, see `Quantum`.
        closed: whether nothing is to be delivered any more.
        queued: whether it is in the queue for the next turn.
        in_turn: whether a batch that is being computed has it.
        slot: its row in the pool, once it has one.
        error: what ended it early.
    """

    def __init__(
        self,
        reading: Reading,
        deliver: Callable[[Event], None],
        failed: Callable[[Exception], None] | None,
    ) -> None:
        self.reading = reading
        self.waiting: deque[Quantum] = deque()
        self.computing: Quantum | None = None
        self.ended_at: float | None = None
        self.ended_early = False
        self.closed = self.queued = self.in_turn = False
        self.slot: int | None = None
        self.error: Exception | None = None
        self._deliver, self._failed = deliver, failed

    @property
    def has_work(self) -> bool:
        """Whether it can use a turn."""
        return not self.closed and (bool(self.waiting) or self.ended_at is not None)

    @property
    def ends(self) -> bool:
        """Whether all it still needs is its tail."""
        return not self.closed and not self.waiting and self.ended_at is not None

    @property
    def oldest(self) -> Quantum | None:
        """The quantum whose text it has waited for longest."""
        return self.computing or (self.waiting[0] if self.waiting else None)

    def tell(self, *, since: float, final: bool = False) -> float:
        """Deliver an event; returns its `compute_ms`."""
        event = self.reading.event(since=since, final=final)
        self._deliver(event)
        return event.compute_ms

    def tell_error(self, error: Exception) -> None:
        """Deliver the error that ends the stream; whoever takes it cannot fail in turn."""
        if self._failed is None:
            return
        try:
            self._failed(error)
        except Exception:
            _LOG.exception("a stream's own handler of errors raised one")
