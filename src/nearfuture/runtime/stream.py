"""One live stream: samples in, events out, the tail included."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearfuture.budget import Latency
from nearfuture.decoding import Endpoint
from nearfuture.error import NearfutureError
from nearfuture.runtime.engine import Engine, row
from nearfuture.runtime.pcm import Quanta, as_samples
from nearfuture.runtime.reading import Event, LogProbsHook, Reading
from nearfuture.runtime.transcript import Transcript


@dataclass(frozen=True)
class Budget:
    """The promise a model or a stream keeps.

    Attributes:
        frames: lookahead τ of the head that commits; None where a model hears everything first.
        worst_ms: worst-case algorithmic latency, everything included.
    """

    frames: int | None
    worst_ms: float


class Stream:
    """One stream of audio; made by `Model.stream`.

    It keeps less than one quantum of samples, and any cut of the audio into chunks gives the same
    events, bit for bit.

    Args:
        engine: shared with other streams.
        quanta: how samples become quanta.
        transcript: an empty one.
        latency: of the head that commits, itemised, for the rate of this stream.
        frames: lookahead τ of that head.
        endpoint: divides the text into utterances; it is one unless given.
        on_log_probs: sees all log-probabilities, for decoders of one's own.
    """

    def __init__(
        self,
        engine: Engine,
        quanta: Quanta,
        transcript: Transcript,
        *,
        latency: Latency,
        frames: int,
        endpoint: Endpoint | None = None,
        on_log_probs: LogProbsHook | None = None,
    ) -> None:
        self.latency = latency
        self.budget = Budget(frames, latency.worst_ms)
        self._engine = engine
        self._quanta = quanta
        self._waiting = quanta.start()
        self._state = engine.start(1)
        self._reading = Reading(
            transcript,
            commits=frames,
            previews=min(engine.heads),
            rate=quanta.resampler.to,
            on_log_probs=on_log_probs,
            endpoint=endpoint,
        )
        self._finished = False

    def accept(self, samples: ArrayLike) -> list[Event]:
        """Hear more samples: one event for each quantum that they complete, maybe none.

        Args:
            samples: (n,) floating point in [-1, 1] or int16, any n ≥ 0, at the rate of this stream.

        Raises:
            NearfutureError: for samples of another kind or not finite (the stream is unchanged),
                and after `finish`.
        """
        self._refuse_if_finished()
        since = perf_counter()
        cut, self._waiting = self._quanta.step(as_samples(samples), self._waiting)
        events = []
        for quantum in cut:
            self._hear(quantum)
            events.append(self._reading.event(since=since))
        return events

    def finish(self) -> Event:
        """End the stream: the last event, with everything that still waited for a future.

        Raises:
            NearfutureError: if the stream has ended already.
        """
        self._refuse_if_finished()
        since = perf_counter()
        self._finished = True
        for quantum in self._quanta.finish(self._waiting):
            self._hear(quantum)
        self._reading.read(row(self._engine.finish(self._state), 0))
        return self._reading.event(since=since, final=True)

    def _hear(self, quantum: NDArray[np.float32]) -> None:
        pcm = np.zeros((1, self._engine.quantum_samples), np.float32)
        pcm[0, : len(quantum)] = quantum
        lengths = np.array([len(quantum)], np.int64)
        outputs, self._state = self._engine.step(pcm, lengths, self._state)
        self._reading.read(row(outputs, 0), len(quantum))

    def _refuse_if_finished(self) -> None:
        if self._finished:
            raise NearfutureError("this stream has ended: start another one with Model.stream()")
