"""Batch dispatch: many live streams through one engine.

Whenever the engine is free it takes every stream that has a full quantum, gathers their states,
runs once, and scatters them. Nothing waits for company, and one turn is one quantum: no stream is
served twice before all that were ready have been served once.

Source: Amodei et al., "Deep Speech 2", 2015, section 7 (Batch Dispatch).
"""

from __future__ import annotations

import atexit
import logging
import math
import os
import threading
import weakref
from collections.abc import Callable
from types import TracebackType

from nearfuture.decoding import Endpoint
from nearfuture.error import NearfutureError
from nearfuture.runtime.batch import Batch
from nearfuture.runtime.bundle import Bundle
from nearfuture.runtime.cores import physical_cores
from nearfuture.runtime.engine import Engine
from nearfuture.runtime.live import LiveStream
from nearfuture.runtime.meter import DispatchStats, Occupancy
from nearfuture.runtime.opening import choose, empty_transcript, quanta_of
from nearfuture.runtime.places import Places
from nearfuture.runtime.precision import FLOAT32
from nearfuture.runtime.reading import Event, LogProbsHook, Reading
from nearfuture.runtime.rounds import Rounds, calibrated
from nearfuture.runtime.seat import Seat

_LOG = logging.getLogger("nearfuture.dispatch")
_PATIENCE_S = 5.0
_OPEN: weakref.WeakSet[Dispatcher] = weakref.WeakSet()


class Dispatcher:
    """Many live streams through one engine, in a thread of its own.

    A stream's events are, bit for bit, those of `Stream`, whatever streams are beside it. No event
    is lost, and those of one stream come in order. Close it, or use it as a context manager.

    Args:
        bundle: of a streaming model.
        precision: of the graphs, see `Engine`.
        threads: of one call; the physical cores this process may use unless given.
        most_streams: that may be open at once; their states take memory from the start.
        most_waiting_s: audio that one stream may have waiting.
        most_load: no stream is opened that would bring the load over this, see `stats`.

    Raises:
        NotStreamable: for a bidirectional bundle.
        UnsupportedPrecision: for a precision that this processor does not offer.
        NearfutureError: for a precision that the bundle does not have, where ONNX Runtime cannot
            load a graph, for limits that are not positive, and for less than one thread.

    Source: Amodei et al., "Deep Speech 2", 2015, section 7 (Batch Dispatch).

    >>> import numpy as np
    >>> events = []
    >>> with Dispatcher(Bundle.open("digits"), most_streams=4) as dispatcher:
    ...     stream = dispatcher.open(rate=8000, deliver=events.append)
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
        most_streams: int = 128,
        most_waiting_s: float = 10.0,
        most_load: float = 0.8,
    ) -> None:
        for name, limit in (
            ("most_streams", most_streams),
            ("most_waiting_s", most_waiting_s),
            ("most_load", most_load),
        ):
            if not limit > 0:
                raise NearfutureError(f"{name} is {limit}: at least something must be allowed")
        if threads is not None and threads < 1:
            raise NearfutureError(f"threads is {threads}: a call needs at least one")
        self.manifest = bundle.manifest
        self.threads = physical_cores() if threads is None else threads
        engine = Engine(bundle, threads=self.threads, precision=precision)
        self.precision = engine.precision
        self._previews = min(engine.heads)
        self._most_waiting_s = most_waiting_s
        self._batch = Batch(engine, most_streams)
        quantum_s = bundle.manifest.quantum_samples / bundle.manifest.rate
        self._places = Places(
            self._batch.pool,
            calibrated(self._batch, most_streams, quantum_s=quantum_s),
            most_streams=most_streams,
            most_load=most_load,
        )
        self._process = os.getpid()
        self._thread = threading.Thread(target=self._serve, name="nearfuture-dispatch", daemon=True)
        self._thread.start()
        _OPEN.add(self)

    def open(
        self,
        *,
        rate: int | None = None,
        budget_ms: float | None = None,
        deliver: Callable[[Event], None],
        failed: Callable[[Exception], None] | None = None,
        on_log_probs: LogProbsHook | None = None,
        endpoint: Endpoint | None = None,
        again: bool = False,
    ) -> LiveStream:
        """Open a stream.

        Args:
            rate: samples per second of what it will be given; the model's own unless given.
            budget_ms: worst-case algorithmic latency allowed; the largest lookahead unless given.
            deliver: called in the engine's thread with each event; it must not wait for anything.
                If it raises, this stream is over, and no other notices.
            failed: called in that thread, at most once and then last, with the error that ended the
                stream before its final event.
            on_log_probs: called in that thread after each step with the new log-probabilities of
                every head.
            endpoint: divides the text into utterances; it is one unless given.
            again: it goes on for a stream that has ended, whose load is let in already.

        Raises:
            Busy: if there are as many streams as there may be, or one more would bring the load
                over its limit. A single stream is always let in.
            NearfutureError: where no head keeps the budget; when this is closed or has failed.
        """
        self._refuse_in_a_child()
        manifest = self.manifest
        rate = manifest.rate if rate is None else rate
        frames, latency = choose(manifest, rate, math.inf if budget_ms is None else budget_ms)
        reading = Reading(
            empty_transcript(manifest),
            commits=frames,
            previews=self._previews,
            rate=manifest.rate,
            on_log_probs=on_log_probs,
            endpoint=endpoint,
        )
        seat = Seat(reading, deliver, failed)
        stream = LiveStream(
            self._places,
            seat,
            quanta_of(manifest, rate),
            latency=latency,
            frames=frames,
            most_waiting_s=self._most_waiting_s,
        )
        self._places.admit(seat, stream, again=again)
        return stream

    @property
    def error(self) -> NearfutureError | None:
        """Why it serves no more streams: it failed, or was closed; None while it serves."""
        return self._places.over

    def occupancy(self) -> Occupancy:
        """Streams and load at this moment: what `stats` says of them, without its percentiles."""
        self._refuse_in_a_child()
        return self._places.occupancy()

    def stats(self) -> DispatchStats:
        """Streams, load and latencies at this moment."""
        self._refuse_in_a_child()
        return self._places.stats()

    def close(self, *, drain: bool = True) -> None:
        """End all streams and the thread; no new ones are let in. Closing twice does nothing.

        Args:
            drain: whether streams are finished, so that each delivers its final event; otherwise
                what waits is dropped, and each fails with an error that says so.
        """
        if os.getpid() != self._process:
            return
        streams = self._places.close(drain=drain)
        if drain:
            for stream in streams:
                try:
                    stream.finish()
                except NearfutureError:
                    continue  # it is ending already
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
        rounds = Rounds(self._batch, self._places)
        try:
            while turn := self._places.turn():
                rounds.run(turn)
        except BaseException as error:
            _LOG.exception("the engine failed; all its streams end")
            broken = NearfutureError(f"the engine of {self.manifest.name} failed: {error}")
            broken.__cause__ = error
            self._places.all_failed(broken)
        else:
            self._places.all_failed(
                NearfutureError("the dispatcher was closed before this stream ended")
            )

    def _leave_soon(self) -> None:
        if os.getpid() == self._process:
            self._places.close(drain=False)
            self._thread.join(_PATIENCE_S)  # a listener that waits for ever keeps no process alive

    def _refuse_in_a_child(self) -> None:
        if os.getpid() != self._process:
            raise NearfutureError(
                "this dispatcher's thread runs in the process that made it: make one after fork"
            )


@atexit.register
def _close_all() -> None:
    """No thread may be inside ONNX Runtime while the interpreter goes away."""
    for dispatcher in list(_OPEN):
        dispatcher._leave_soon()
