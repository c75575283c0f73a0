"""One of many live streams: the caller's side, which takes samples at any time from any thread."""

from __future__ import annotations

import threading
from time import perf_counter

from numpy.typing import ArrayLike

from nearfuture.error import NearfutureError
from nearfuture.runtime.decoder import StreamDecoder
from nearfuture.runtime.pcm import as_samples
from nearfuture.runtime.scheduler.queue_entry import Arrival, Callbacks, Quantum, QueueEntry
from nearfuture.runtime.scheduler.stream_queue import StreamQueue
from nearfuture.runtime.stream_config import StreamConfig

_EARLY_S = 1.0
"""Audio that comes so long before it can have been spoken is no live speaker's. Less is within what
networks do: they hold back the first chunk and bring the next ones in a burst."""


class LiveStream:
    """One live stream among many; made by `Dispatcher.open`, safe to use from any thread.

    Args:
        queue: of the dispatcher.
        config: of this stream.
        callbacks: who receives its events.
        max_waiting_s: how much audio may wait.
        reopened: whether its load was admitted already.

    Attributes:
        latency: of the head that commits, itemised, for the rate of this stream.
        budget: the promise.

    Raises:
        Busy, NearfutureError: where the queue admits no more streams.
    """

    def __init__(
        self,
        queue: StreamQueue,
        config: StreamConfig,
        callbacks: Callbacks,
        *,
        max_waiting_s: float,
        reopened: bool = False,
    ) -> None:
        self.latency, self.budget = config.latency, config.budget
        self._queue, self._config = queue, config
        self._entry = QueueEntry(StreamDecoder(config), callbacks)
        self._max_waiting_s = max_waiting_s
        self._quanta = config.quanta()
        self._incomplete = self._quanta.start()
        self._accepted_samples = 0
        self._began: float | None = None
        self._finished = False
        self._cutting = threading.Lock()  # held while samples become quanta: they stay in order
        queue.admit(self._entry, self.finish, reopened=reopened)

    @property
    def waiting_s(self) -> float:
        """Seconds of audio that were accepted and are not yet computed; 0 at the end.

        It includes what cannot be computed yet: less than a quantum, and the resampler's context.
        It falls before each event, so a caller with more audio can wait for events.
        """
        if self.closed:
            return 0.0
        computed_s = self._entry.decoder.samples / self._config.manifest.rate
        return max(0.0, self._accepted_samples / self._config.rate - computed_s)

    @property
    def closed(self) -> bool:
        """Whether the stream is over: its last event is out, or it was closed, or it failed."""
        return self._entry.closed

    @property
    def error(self) -> Exception | None:
        """The error that ended the stream early; None without one."""
        return self._entry.error

    def accept(self, samples: ArrayLike) -> None:
        """Queue more samples without waiting; their events come in the engine's thread.

        Args:
            samples: (n,) floating point in [-1, 1] or int16, any n ≥ 0, at the rate of this stream.

        Raises:
            NearfutureError: for samples of another kind or not finite, and if too much audio would
                wait (the stream is unchanged); after `finish` or `close`, and if it has failed.
        """
        self._queue.refuse_in_child()
        began = perf_counter()
        pcm = as_samples(samples)
        with self._cutting:
            self._refuse_if_over()
            self._refuse_if_too_much(len(pcm))
            if self._began is None:
                self._began = began
            cut, self._incomplete = self._quanta.step(pcm, self._incomplete)
            self._accepted_samples += len(pcm)
            arrival = self._arrival(began)
            quanta = [Quantum(samples, arrival, tail=False) for samples in cut]
            # Still under the lock: of two threads that accept at once, one is the first.
            self._queue.enqueue(self._entry, quanta, resample_s=perf_counter() - began)

    def finish(self) -> None:
        """End the stream: when all that waits is computed, an event with `final=True` comes.

        Raises:
            NearfutureError: if the stream has ended already, was closed, or has failed.
        """
        self._queue.refuse_in_child()
        began = perf_counter()
        with self._cutting:
            self._refuse_if_over()
            self._finished = True
            arrival = self._arrival(began)
            cut = self._quanta.finish(self._incomplete)
            quanta = [Quantum(samples, arrival, tail=True) for samples in cut]
            self._queue.enqueue(self._entry, quanta, end=arrival)

    def reopen(self) -> LiveStream:
        """Open another stream like this one, which has ended: the load of both is admitted already.

        Raises:
            Busy: if there are as many streams as there may be.
            NearfutureError: where the dispatcher is closed or has failed.
        """
        return LiveStream(
            self._queue,
            self._config,
            self._entry.callbacks,
            max_waiting_s=self._max_waiting_s,
            reopened=True,
        )

    def close(self) -> None:
        """Drop the stream: its place is free at once, and what waits is not computed.

        An event that is already on its way may still be delivered. Closing twice does nothing.
        """
        if not self._queue.in_child:
            self._queue.release(self._entry)

    def _arrival(self, now: float) -> Arrival:
        """Return the arrival of the last sample; a speaker began when the first one came."""
        spoken_s = self._accepted_samples / self._config.rate
        early = self._began is not None and self._began + spoken_s > now + _EARLY_S
        return Arrival(now, early)

    def _refuse_if_over(self) -> None:
        if self.error is not None:
            raise NearfutureError(
                f"this stream has failed ({self.error}): open another one", code="unavailable"
            ) from self.error
        if self._finished or self.closed:
            raise NearfutureError(
                "this stream has ended: open another one with Dispatcher.open()", code="conflict"
            )

    def _refuse_if_too_much(self, samples: int) -> None:
        waiting_s = self.waiting_s
        new_s = samples / self._config.rate
        if waiting_s + new_s > self._max_waiting_s:
            raise NearfutureError(
                f"{waiting_s:.1f} s of audio wait to be computed, and {new_s:.1f} s more would be "
                f"over the {self._max_waiting_s:g} s that may: bring it in pieces, each after the "
                f"event of a piece before it (see waiting_s)",
                code="too_large",
                parameter="samples",
            )
