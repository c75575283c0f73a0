"""One live stream: samples in, events out, the tail included."""

from __future__ import annotations

from time import perf_counter

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearfuture.error import NearfutureError
from nearfuture.runtime.decoder import Event, StreamDecoder
from nearfuture.runtime.engine import Engine, row
from nearfuture.runtime.pcm import as_samples
from nearfuture.runtime.stream_config import StreamConfig


class Stream:
    """One stream of audio; made by `Model.stream`.

    It keeps less than one quantum of samples, and any cut of the audio into chunks gives the same
    events, bit for bit.

    Args:
        engine: shared with other streams.
        config: of this stream.

    Attributes:
        latency: of the head that commits, itemised, for the rate of this stream.
        budget: the promise.
    """

    def __init__(self, engine: Engine, config: StreamConfig) -> None:
        self.latency, self.budget = config.latency, config.budget
        self._engine = engine
        self._quanta = config.quanta()
        self._incomplete = self._quanta.start()
        self._state = engine.start(1)
        self._decoder = StreamDecoder(config)
        self._finished = False

    def accept(self, samples: ArrayLike) -> list[Event]:
        """Process more samples, and return an event for each quantum that they complete.

        Args:
            samples: (n,) floating point in [-1, 1] or int16, any n ≥ 0, at the rate of this stream.

        Raises:
            NearfutureError: for samples of another kind or not finite (the stream is unchanged),
                and after `finish`.
        """
        self._refuse_if_finished()
        since = perf_counter()
        cut, self._incomplete = self._quanta.step(as_samples(samples), self._incomplete)
        events = []
        for quantum in cut:
            self._step(quantum)
            events.append(self._decoder.event(since=since))
        return events

    def finish(self) -> Event:
        """End the stream; the last event has everything that still waited for a future.

        Raises:
            NearfutureError: if the stream has ended already.
        """
        self._refuse_if_finished()
        since = perf_counter()
        self._finished = True
        for quantum in self._quanta.finish(self._incomplete):
            self._step(quantum)
        self._decoder.step(row(self._engine.finish(self._state), 0))
        return self._decoder.event(since=since, final=True)

    def _step(self, quantum: NDArray[np.float32]) -> None:
        pcm = np.zeros((1, self._engine.quantum_samples), np.float32)
        pcm[0, : len(quantum)] = quantum
        lengths = np.array([len(quantum)], np.int64)
        outputs, self._state = self._engine.step(pcm, lengths, self._state)
        self._decoder.step(row(outputs, 0), len(quantum))

    def _refuse_if_finished(self) -> None:
        if self._finished:
            raise NearfutureError(
                "this stream has ended: start another one with Model.stream()", code="conflict"
            )
