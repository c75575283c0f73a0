"""What the dispatcher's tests share: listeners, and an engine whose rounds can be held back."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearfuture.runtime import Dispatcher, Event, LiveStream, Model
from tests.patience import PATIENCE_S
from tests.waveform import LogProbs


@dataclass
class Listener:
    """Keeps what one live stream says."""

    events: list[Event] = field(default_factory=list)
    log_probs: list[LogProbs] = field(default_factory=list)
    errors: list[Exception] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def deliver(self, event: Event) -> None:
        assert not self.over.is_set(), "an event after the last one"
        self.events.append(event)
        if event.final:
            self.over.set()

    def failed(self, error: Exception) -> None:
        assert not self.over.is_set(), "an error after the end"
        self.errors.append(error)
        self.over.set()

    def open(self, dispatcher: Dispatcher, **options: Any) -> LiveStream:
        return dispatcher.open(
            on_event=self.deliver,
            on_error=self.failed,
            on_log_probs=self.log_probs.append,
            **options,
        )

    def wait(self) -> None:
        assert self.over.wait(PATIENCE_S), f"no end after {len(self.events)} events"


def alone(model: Model, samples: NDArray[np.generic], rate: int | None = None) -> Listener:
    """The same samples through a `Stream` by itself."""
    heard = Listener()
    stream = model.stream(rate, on_log_probs=heard.log_probs.append)
    heard.events = [*stream.accept(samples), stream.finish()]
    return heard


def assert_same(live: Listener, expected: Listener, what: str = "") -> None:
    """Equal events and equal bits."""
    assert not live.errors, what
    assert live.events == expected.events, what
    assert_same_log_probs(live, expected, what)


def assert_same_log_probs(live: Listener, expected: Listener, what: str = "") -> None:
    for tau in expected.log_probs[0]:
        found = np.concatenate([part[tau] for part in live.log_probs])
        wanted = np.concatenate([part[tau] for part in expected.log_probs])
        np.testing.assert_array_equal(found, wanted, err_msg=f"{what}, head {tau}")


class Gate:
    """Holds each round until it is let through, and notes how many samples its rows advance."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self.rounds: list[list[int]] = []
        self._engine = dispatcher._batch.engine
        self._step = self._engine.step
        self._may = threading.Semaphore(0)
        self._begun = threading.Semaphore(0)
        self._open = False
        self._engine.step = self._held  # type: ignore[method-assign]

    def _held(self, pcm: Any, lengths: Any, state: Any) -> Any:
        self.rounds.append([int(n) for n in lengths if n])
        self._begun.release()
        assert self._open or self._may.acquire(timeout=PATIENCE_S)
        return self._step(pcm, lengths, state)

    def begun(self) -> None:
        """Wait until a round has begun; it is held."""
        assert self._begun.acquire(timeout=PATIENCE_S)

    def pass_one(self) -> None:
        """Let the round that has begun go on."""
        self._may.release()

    def lift(self) -> None:
        """Hold nothing from now on."""
        self._open = True
        self._may.release()


@contextmanager
def gated(dispatcher: Dispatcher) -> Iterator[Gate]:
    gate = Gate(dispatcher)
    try:
        yield gate
    finally:
        gate.lift()
        dispatcher._batch.engine.step = gate._step  # type: ignore[method-assign]
