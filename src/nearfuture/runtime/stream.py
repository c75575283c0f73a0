"""One live stream: samples in, events out, the tail included."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearfuture.budget import Latency
from nearfuture.decoding import Word
from nearfuture.error import NearfutureError
from nearfuture.runtime.engine import Engine, row
from nearfuture.runtime.pcm import Quanta, as_samples
from nearfuture.runtime.transcript import Transcript

__all__ = ["Budget", "Event", "LogProbsHook", "Stream"]

LogProbsHook = Callable[[dict[int, NDArray[np.float32]]], None]
"""Called after each step with the new log-probabilities (frames, V) of every head τ."""


@dataclass(frozen=True)
class Budget:
    """The promise a model or a stream keeps.

    Attributes:
        frames: lookahead τ of the head that commits; None where a model hears everything first.
        worst_ms: worst-case algorithmic latency, everything included.
    """

    frames: int | None
    worst_ms: float


@dataclass(frozen=True)
class Event:
    """The text of a stream after one more quantum, or at its end.

    Attributes:
        committed: settled text; from event to event it only grows.
        provisional: what probably follows, to be shown behind it; empty at the end.
        final: whether the stream has ended.
        audio_ms: how much audio this has heard.
        words: the committed words, with times and confidence.
    """

    committed: str
    provisional: str
    final: bool
    audio_ms: float
    words: tuple[Word, ...]


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
        on_log_probs: LogProbsHook | None = None,
    ) -> None:
        self.latency = latency
        self.budget = Budget(frames, latency.worst_ms)
        self._engine = engine
        self._quanta = quanta
        self._commits, self._previews = frames, min(engine.heads)
        self._on_log_probs = on_log_probs
        self._waiting = quanta.start()
        self._state = engine.start(1)
        self._transcript = transcript
        self._heard_samples = 0
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
        cut, self._waiting = self._quanta.step(as_samples(samples), self._waiting)
        events = []
        for quantum in cut:
            self._hear(quantum)
            events.append(self._event(final=False))
        return events

    def finish(self) -> Event:
        """End the stream: the last event, with everything that still waited for a future.

        Raises:
            NearfutureError: if the stream has ended already.
        """
        self._refuse_if_finished()
        self._finished = True
        for quantum in self._quanta.finish(self._waiting):
            self._hear(quantum)
        self._read(row(self._engine.finish(self._state), 0))
        return self._event(final=True)

    def _hear(self, quantum: NDArray[np.float32]) -> None:
        pcm = np.zeros((1, self._engine.quantum_samples), np.float32)
        pcm[0, : len(quantum)] = quantum
        lengths = np.array([len(quantum)], np.int64)
        outputs, self._state = self._engine.step(pcm, lengths, self._state)
        self._heard_samples += len(quantum)
        self._read(row(outputs, 0))

    def _read(self, log_probs: dict[int, NDArray[np.float32]]) -> None:
        if self._on_log_probs is not None:
            self._on_log_probs(log_probs)
        self._transcript = self._transcript.step(
            log_probs[self._commits], preview=log_probs[self._previews]
        )

    def _event(self, *, final: bool) -> Event:
        return Event(
            committed=self._transcript.committed,
            provisional=self._transcript.provisional,
            final=final,
            audio_ms=1000 * self._heard_samples / self._quanta.resampler.to,
            words=self._transcript.words,
        )

    def _refuse_if_finished(self) -> None:
        if self._finished:
            raise NearfutureError("this stream has ended: start another one with Model.stream()")
