"""One stream in the queue: what waits, where its state is, who receives its events."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nearfuture.runtime.decoder import Event, StreamDecoder

_LOG = logging.getLogger("nearfuture.dispatch")


@dataclass(frozen=True)
class Arrival:
    """The moment when audio was complete.

    Attributes:
        at_s: on the clock of `time.perf_counter`.
        early: whether that was well before a speaker could have spoken it, as with a recording that
            is sent at once: that such audio waits says nothing of the server.
    """

    at_s: float
    early: bool


@dataclass(frozen=True, eq=False)
class Quantum:
    """Samples for one step.

    Attributes:
        samples: at the model's rate, at most a quantum of them.
        arrival: of the last of them.
        tail: whether only the end of the stream completed it: it gets no event of its own.
    """

    samples: NDArray[np.float32]
    arrival: Arrival
    tail: bool


@dataclass(frozen=True)
class Callbacks:
    """The receivers of a stream's events and error; both are called in the engine's thread."""

    on_event: Callable[[Event], None]
    on_error: Callable[[Exception], None] | None = None


class QueueEntry:
    """One stream in the queue of a dispatcher.

    The queue's lock guards all fields but `decoder`, which belongs to the engine's thread.

    Args:
        decoder: of the stream.
        callbacks: of the stream.

    Attributes:
        waiting: quanta to be computed.
        computing: the one that is being computed; None between rounds.
        end: when the end of the stream was announced; None before.
        closed: whether nothing is to be delivered any more.
        queued: whether it is in the queue for the next round.
        in_round: whether a round that is being computed has it.
        slot: its row in the pool of states, once it has one.
        error: what ended it early.
    """

    def __init__(self, decoder: StreamDecoder, callbacks: Callbacks) -> None:
        self.decoder, self.callbacks = decoder, callbacks
        self.waiting: deque[Quantum] = deque()
        self.computing: Quantum | None = None
        self.end: Arrival | None = None
        self.closed = self.queued = self.in_round = False
        self.slot: int | None = None
        self.error: Exception | None = None

    @property
    def has_work(self) -> bool:
        """Whether there is a quantum or a tail to compute."""
        return not self.closed and (bool(self.waiting) or self.end is not None)

    @property
    def needs_only_tail(self) -> bool:
        """Whether only the tail is still to be computed."""
        return self.has_work and not self.waiting

    @property
    def oldest(self) -> Quantum | None:
        """The quantum that has waited longest for its text."""
        return self.computing or (self.waiting[0] if self.waiting else None)

    def deliver_event(self, arrival: Arrival, *, final: bool = False) -> list[float]:
        """Deliver an event, and return its `compute_ms`, unless its audio came early."""
        event = self.decoder.event(since=arrival.at_s, final=final)
        self.callbacks.on_event(event)
        return [] if arrival.early else [event.compute_ms]

    def deliver_error(self, error: Exception) -> None:
        """Deliver the error that ends the stream; the callback cannot fail in turn."""
        if self.callbacks.on_error is None:
            return
        try:
            self.callbacks.on_error(error)
        except Exception:
            _LOG.exception("a stream's own handler of errors raised one")
