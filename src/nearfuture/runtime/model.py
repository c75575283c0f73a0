"""A model by name or path, with a latency budget: the first thing a user meets."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from nearfuture.audio import LiveResampler, resample
from nearfuture.budget import Latency, LatencyItem, largest_lookahead
from nearfuture.error import NearfutureError
from nearfuture.runtime.bundle import Bundle
from nearfuture.runtime.engine import Engine, OfflineEngine, refuse_bidirectional
from nearfuture.runtime.manifest import Manifest
from nearfuture.runtime.pcm import Quanta, as_samples
from nearfuture.runtime.stream import Budget, Event, LogProbsHook, Stream
from nearfuture.runtime.transcript import Transcript

__all__ = ["Model", "load"]


def load(source: str | Path, budget_ms: float | None = None) -> Model:
    """Load a model and choose how far it may look ahead.

    Args:
        source: name of a model that comes with this package, or the path of a bundle.
        budget_ms: worst-case algorithmic latency allowed, everything included; the model's largest
            lookahead, its most accurate head, unless given.

    Raises:
        NearfutureError: if the bundle cannot be opened, or cannot keep the budget; the message
            names the smallest it can keep.
    """
    return Model(Bundle.open(source), budget_ms=budget_ms)


class Model:
    """A model that runs, with its budget chosen. Made by `load`.

    Args:
        bundle: the files of it.
        budget_ms: as for `load`.

    Attributes:
        manifest: what the bundle says about itself.

    Raises:
        NearfutureError: where no head keeps the budget.
    """

    def __init__(self, bundle: Bundle, *, budget_ms: float | None = None) -> None:
        self.manifest: Manifest = bundle.manifest
        self._bundle = bundle
        self._budget_ms = math.inf if budget_ms is None else budget_ms
        self._engine: Engine | None = None
        self._offline: OfflineEngine | None = None
        if self.manifest.kind == "streaming":
            self._choose(self.rate)
            self._engine = Engine(bundle)
        else:
            if budget_ms is not None:
                largest_lookahead(budget_ms, {0: math.inf})  # says why no budget can be kept
            self._offline = OfflineEngine(bundle)

    @property
    def rate(self) -> int:
        """Samples per second that the model hears; other rates are resampled."""
        return self.manifest.rate

    @property
    def budget(self) -> Budget:
        """What it promises for audio at its own rate."""
        if self._engine is None:
            return Budget(None, math.inf)
        frames, latency = self._choose(self.rate)
        return Budget(frames, latency.worst_ms)

    @property
    def budgets(self) -> dict[int, Latency]:
        """Every lookahead it has, with its latency for audio at its own rate; maybe none."""
        return dict(self.manifest.heads)

    def latency(self, rate: int | None = None) -> Latency | None:
        """The algorithmic latency for audio at `rate`, itemised, the live resampler included.

        None for a bidirectional model: nothing but the end of the recording ends its wait.

        Raises:
            NearfutureError: where no head keeps the budget at this rate.
        """
        if self._engine is None:
            return None
        return self._choose(self.rate if rate is None else rate)[1]

    def stream(
        self, rate: int | None = None, *, on_log_probs: LogProbsHook | None = None
    ) -> Stream:
        """A new stream, with the largest lookahead that keeps the budget at this rate.

        Args:
            rate: samples per second of what the stream will be given; the model's own unless given.
            on_log_probs: called after each step with the new log-probabilities of every head.

        Raises:
            NotStreamable: for a bidirectional model.
            NearfutureError: where no head keeps the budget once the resampler is counted.
        """
        refuse_bidirectional(self._bundle)
        assert self._engine is not None
        rate = self.rate if rate is None else rate
        frames, latency = self._choose(rate)
        quanta = Quanta(
            rate,
            self.rate,
            quantum_samples=self.manifest.quantum_samples,
            first_samples=self.manifest.first_quantum_samples,
        )
        return Stream(
            self._engine,
            quanta,
            self._transcript(),
            latency=latency,
            frames=frames,
            on_log_probs=on_log_probs,
        )

    def transcribe(self, samples: ArrayLike, rate: int | None = None) -> Event:
        """The text of a whole recording.

        A streaming model hears it as it would live, through the same resampler, so the text is the
        same; a bidirectional one hears all of it at once.

        Args:
            samples: (n,) floating point in [-1, 1] or int16.
            rate: samples per second; the model's own unless given.

        Raises:
            NearfutureError: for samples of another kind or not finite.
        """
        rate = self.rate if rate is None else rate
        pcm = as_samples(samples)
        if self._offline is None:
            stream = self.stream(rate)
            for at in range(0, len(pcm), rate):  # by the second: events of the past are not kept
                stream.accept(pcm[at : at + rate])
            return stream.finish()
        heard = resample(pcm, rate, self.rate)
        lengths = np.array([len(heard)], np.int64)
        log_probs, frames = self._offline.run(heard[None], lengths)
        transcript = self._transcript().step(log_probs[0, : frames[0]])
        return Event(
            committed=transcript.committed,
            provisional="",
            final=True,
            audio_ms=1000 * len(heard) / self.rate,
            words=transcript.words,
        )

    def _choose(self, rate: int) -> tuple[int, Latency]:
        """The head that commits for audio at `rate`, and its latency."""
        right_ms = LiveResampler(rate, self.rate).right_ms
        heads = {frames: _behind(right_ms, x) for frames, x in self.manifest.heads.items()}
        try:
            frames = largest_lookahead(self._budget_ms, heads)
        except NearfutureError as error:
            where = (
                "" if rate == self.rate else f" (audio at {rate} Hz is resampled, {right_ms:g} ms)"
            )
            raise NearfutureError(f"{self.manifest.name}: {error}{where}") from error
        return frames, heads[frames]

    def _transcript(self) -> Transcript:
        return Transcript(
            vocabulary=self.manifest.vocabulary,
            frame_ms=self.manifest.frame_ms,
            centre_ms=self.manifest.centre_ms,
        )


def _behind(resampler_ms: float, latency: Latency) -> Latency:
    if resampler_ms == 0:
        return latency
    items = (LatencyItem("resampler", resampler_ms), *latency.items)
    return dataclasses.replace(latency, items=items)
