"""Batch dispatch: many live streams through one engine.

1. Whenever the engine is free, it takes every stream that has a complete quantum: one round.
2. It gathers their states into one batch, runs the graph once, and scatters the new states.
3. No stream waits for others to be ready, and none is in a round twice.

With rounds of 10 ms: A's quantum arrives at 0 ms, the engine is free, round 1 is A alone. B's and
C's arrive at 3 and 5 ms, while it runs. Round 2 starts at 10 ms with B and C in one batch. If A has
sent two quanta more meanwhile, it is in round 2 with one of them and in round 3 with the other. A
quantum waits for one round at most, however many streams there are, as long as a round of all of
them is shorter than a quantum (`Load`).

Source: Amodei et al., "Deep Speech 2", 2015, section 7 (Batch Dispatch).
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import threading
import weakref
from collections.abc import Callable
from types import TracebackType

from nearfuture.decoding import Endpoint
from nearfuture.error import NearfutureError
from nearfuture.runtime.bundle import Bundle
from nearfuture.runtime.cores import physical_cores
from nearfuture.runtime.decoder import Event
from nearfuture.runtime.engine import Engine
from nearfuture.runtime.precision import FLOAT32
from nearfuture.runtime.scheduler.batch import BatchEngine
from nearfuture.runtime.scheduler.live_stream import LiveStream
from nearfuture.runtime.scheduler.queue_entry import Callbacks
from nearfuture.runtime.scheduler.rounds import Rounds, measure_load
from nearfuture.runtime.scheduler.stats import DispatchStats, Occupancy
from nearfuture.runtime.scheduler.stream_queue import StreamQueue
from nearfuture.runtime.stream_config import LogProbsHook, StreamConfig

_LOG = logging.getLogger("nearfuture.dispatch")
_EXIT_TIMEOUT_S = 5.0
_OPEN: weakref.WeakSet[Dispatcher] = weakref.WeakSet()


class Dispatcher:
    """Many live streams through one engine, in a thread of its own.

    A stream's events are, bit for bit, those of `Stream`, whatever streams are beside it. No event
    is lost, and those of one stream come in order. Close it, or use it as a context manager.

    Args:
        bundle: of a streaming model.
        precision: of the graphs, see `Engine`.
        threads: of one call; by default the physical cores this process may use.
        max_streams: that may be open at once; their states take memory from the start.
        max_waiting_s: audio that one stream may have waiting.
        max_load: no stream is admitted that would bring the load over this, see `stats`.

    Raises:
        NotStreamable: for a bidirectional bundle.
        UnsupportedPrecision: for a precision that this processor does not offer.
        NearfutureError: for a precision that the bundle does not have, where ONNX Runtime cannot
            load a graph, for limits that are not positive, and for less than one thread.

    Source: Amodei et al., "Deep Speech 2", 2015, section 7 (Batch Dispatch).

    >>> import numpy as np
    >>> events = []
    >>> with Dispatcher(Bundle.open("digits"), max_streams=4) as dispatcher:
    ...     stream = dispatcher.open(rate=8000, on_event=events.append)
    ...     stream.accept(np.zeros(8000, np.float32))
    ...     stream.finish()
    >>> len(events), events[-1].final, events[-1].audio_ms
    (26, True, 1000.0)
    """

    def __init__(
        self,
        bundle: Bundle,
        *,
        precision: str = FLOAT32,
        threads: int | None = None,
        max_streams: int = 128,
        max_waiting_s: float = 10.0,
        max_load: float = 0.8,
    ) -> None:
        self.threads = physical_cores() if threads is None else threads
        for name, limit in (
            ("max_streams", max_streams),
            ("max_waiting_s", max_waiting_s),
            ("max_load", max_load),
            ("threads", self.threads),
        ):
            if not limit > 0:
                raise NearfutureError(
                    f"`{name}` must be above 0, not {limit}", code="out_of_range", parameter=name
                )
        self.manifest = bundle.manifest
        engine = Engine(bundle, threads=self.threads, precision=precision)
        self.precision = engine.precision
        self._max_waiting_s = max_waiting_s
        self._batch = BatchEngine(engine, max_streams)
        quantum_s = bundle.manifest.quantum_samples / bundle.manifest.rate
        self._queue = StreamQueue(
            self._batch.pool,
            measure_load(self._batch, max_streams, quantum_s=quantum_s),
            max_streams=max_streams,
            max_load=max_load,
        )
        self._thread = threading.Thread(target=self._serve, name="nearfuture-dispatch", daemon=True)
        self._thread.start()
        _OPEN.add(self)

    def open(
        self,
        *,
        on_event: Callable[[Event], None],
        on_error: Callable[[Exception], None] | None = None,
        on_log_probs: LogProbsHook | None = None,
        rate: int | None = None,
        budget_ms: float | None = None,
        endpoint: Endpoint | None = None,
    ) -> LiveStream:
        """Open a stream. All callbacks are called in the engine's thread and must not wait.

        Args:
            on_event: called with each event. If it raises, this stream is over, and no other is
                affected.
            on_error: called at most once, and then last, with the error that ended the stream
                before its final event.
            on_log_probs: called after each step with the new log-probabilities of every head.
            rate: samples per second of the stream's audio; by default the model's own.
            budget_ms: worst-case algorithmic latency allowed; by default the largest lookahead.
            endpoint: divides the text into utterances; without it the text is one utterance.

        Raises:
            Busy: if there are as many streams as there may be, or one more would bring the load
                over its limit. A single stream is always admitted.
            NearfutureError: where no head keeps the budget; when this is closed or has failed.
        """
        self._queue.refuse_in_child()
        config = StreamConfig.choose(
            self.manifest, rate, budget_ms, endpoint=endpoint, on_log_probs=on_log_probs
        )
        callbacks = Callbacks(on_event, on_error)
        return LiveStream(self._queue, config, callbacks, max_waiting_s=self._max_waiting_s)

    @property
    def error(self) -> NearfutureError | None:
        """The reason why this serves no more streams, failure or close; None while it serves."""
        return self._queue.error

    def occupancy(self) -> Occupancy:
        """Return the streams and the load now, without the percentiles that `stats` computes."""
        self._queue.refuse_in_child()
        return self._queue.occupancy()

    def stats(self) -> DispatchStats:
        """Return streams, load, counts and latencies."""
        self._queue.refuse_in_child()
        return self._queue.stats()

    def close(self, *, drain: bool = True) -> None:
        """End all streams and the thread; no new ones are admitted. Closing twice does nothing.

        Args:
            drain: whether streams are finished, so that each delivers its final event; otherwise
                what waits is dropped, and each fails with an error that says so.
        """
        if self._queue.in_child:
            return
        finishes = self._queue.close(drain=drain)
        for finish in finishes if drain else []:
            with contextlib.suppress(NearfutureError):  # it is ending already
                finish()
        if threading.current_thread() is not self._thread:
            self._thread.join()
        _OPEN.discard(self)

    def __enter__(self) -> Dispatcher:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close(drain=error is None)

    def _serve(self) -> None:
        rounds = Rounds(self._batch, self._queue)
        try:
            while entries := self._queue.next_round():
                rounds.run(entries)
        except BaseException as error:
            _LOG.exception("the engine failed; all its streams end")
            failure = NearfutureError(
                f"the engine of {self.manifest.name} failed: {error}", code="internal"
            )
            failure.__cause__ = error
        else:
            failure = NearfutureError(
                "the dispatcher was closed before this stream ended", code="unavailable"
            )
        self._queue.fail_all(failure)

    def _exit(self) -> None:
        if not self._queue.in_child:
            self._queue.close(drain=False)
            self._thread.join(_EXIT_TIMEOUT_S)  # a callback may wait for ever


@atexit.register
def _close_all() -> None:
    """End all threads: none may be inside ONNX Runtime when the interpreter ends."""
    for dispatcher in list(_OPEN):
        dispatcher._exit()
