"""A model by name or path, with a latency budget: the first thing a user meets."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from time import perf_counter

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearfuture.audio import resample
from nearfuture.budget import Latency, largest_lookahead
from nearfuture.runtime.bundle import Bundle
from nearfuture.runtime.engine import (
    Engine,
    OfflineEngine,
    choose_precision,
    refuse_bidirectional,
)
from nearfuture.runtime.manifest import Manifest
from nearfuture.runtime.opening import choose, empty_transcript, quanta_of
from nearfuture.runtime.pcm import as_samples
from nearfuture.runtime.precision import FLOAT32
from nearfuture.runtime.stream import Budget, Event, LogProbsHook, Stream

__all__ = ["Model", "load"]

# A bidirectional model hears a recording at once up to this length, and a longer one in windows of
# it with so much more of the recording on both sides.
_WINDOW_S, _CONTEXT_S = 600.0, 20.0


def load(source: str | Path, budget_ms: float | None = None, *, precision: str = FLOAT32) -> Model:
    """Load a model and choose how far it may look ahead.

    Args:
        source: name of a model that comes with this package, or the path of a bundle.
        budget_ms: worst-case algorithmic latency allowed, everything included; the model's largest
            lookahead, its most accurate head, unless given.
        precision: of the graphs: `float32`, or one of the bundle's `manifest.precisions`, which say
            how far they are from it; `auto` is the fastest of them that this processor offers.

    Raises:
        NearfutureError: if the bundle cannot be opened, has no graphs in this precision, this
            processor does not offer it, or no head keeps the budget; the message names the way out.
    """
    return Model(Bundle.open(source), budget_ms=budget_ms, precision=precision)


class Model:
    """A model that runs, with its budget chosen. Made by `load`.

    Args:
        bundle: the files of it.
        budget_ms: as for `load`.
        precision: as for `load`.

    Attributes:
        manifest: what the bundle says about itself.

    Raises:
        NearfutureError: where no head keeps the budget, or the bundle has no such precision.
    """

    def __init__(
        self, bundle: Bundle, *, budget_ms: float | None = None, precision: str = FLOAT32
    ) -> None:
        self.manifest: Manifest = bundle.manifest
        self._bundle = bundle
        self._budget_ms = math.inf if budget_ms is None else budget_ms
        self._engine: Engine | None = None
        self._offline: OfflineEngine | None = None
        if self.manifest.kind == "streaming":
            self._choose(self.rate)
            self._engine = Engine(bundle, precision=precision)
        else:
            if budget_ms is not None:
                largest_lookahead(budget_ms, {0: math.inf})  # says why no budget can be kept
            choose_precision(bundle, precision)
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
        return Stream(
            self._engine,
            quanta_of(self.manifest, rate),
            empty_transcript(self.manifest),
            latency=latency,
            frames=frames,
            on_log_probs=on_log_probs,
        )

    def transcribe(self, samples: ArrayLike, rate: int | None = None) -> Event:
        """The text of a whole recording.

        A streaming model hears it as it would live, through the same resampler, so the text is the
        same; a bidirectional one hears all of it at once, or ten minutes at a time, and 20 seconds
        on either side of them, where it is longer than that.

        Args:
            samples: (n,) floating point in [-1, 1] or int16.
            rate: samples per second; the model's own unless given.

        Raises:
            NearfutureError: for samples of another kind or not finite.
        """
        since = perf_counter()
        rate = self.rate if rate is None else rate
        pcm = as_samples(samples)
        if self._offline is None:
            stream = self.stream(rate)
            for at in range(0, len(pcm), rate):  # by the second: events of the past are not kept
                stream.accept(pcm[at : at + rate])
            return replace(stream.finish(), compute_ms=1000 * (perf_counter() - since))
        heard = resample(pcm, rate, self.rate)
        transcript = empty_transcript(self.manifest).step(
            _whole(self._offline, self.manifest, heard)
        )
        return Event(
            committed=transcript.committed,
            provisional="",
            final=True,
            audio_ms=1000 * len(heard) / self.rate,
            words=transcript.words,
            frames=transcript.frames,
            compute_ms=1000 * (perf_counter() - since),
        )

    def log_probs(self, samples: ArrayLike, rate: int | None = None) -> NDArray[np.float32]:
        """The log-probabilities that `transcribe` reads the text of: for decoders and alignments.

        Args:
            samples: (n,) floating point in [-1, 1] or int16.
            rate: samples per second; the model's own unless given.

        Returns:
            (T, V): T frames, one every `manifest.frame_ms`, and behind the blank the symbols of
            `manifest.vocabulary`; of a streaming model those of the head that commits.

        Raises:
            NearfutureError: for samples of another kind or not finite.

        >>> load("digits-bidirectional").log_probs(np.zeros(8000)).shape
        (24, 17)
        """
        rate = self.rate if rate is None else rate
        pcm = as_samples(samples)
        if self._offline is not None:
            return _whole(self._offline, self.manifest, resample(pcm, rate, self.rate))
        commits, _ = self._choose(rate)
        parts: list[NDArray[np.float32]] = []
        stream = self.stream(rate, on_log_probs=lambda heads: parts.append(heads[commits]))
        for at in range(0, len(pcm), rate):
            stream.accept(pcm[at : at + rate])
        stream.finish()
        return np.concatenate(parts)

    def _choose(self, rate: int) -> tuple[int, Latency]:
        """The head that commits for audio at `rate`, and its latency."""
        return choose(self.manifest, rate, self._budget_ms)


def _whole(
    engine: OfflineEngine, manifest: Manifest, samples: NDArray[np.float32]
) -> NDArray[np.float32]:
    """(T, V) of a bidirectional model, in memory that does not grow with hours."""
    hop = manifest.frame_ms * manifest.rate / 1000
    if len(samples) <= _WINDOW_S * manifest.rate or not hop.is_integer():
        return _heard(engine, samples)
    stride = int(hop)
    window, context = (
        round(1000 * seconds / manifest.frame_ms) for seconds in (_WINDOW_S, _CONTEXT_S)
    )
    parts = []
    for begin in range(0, math.ceil(len(samples) / stride), window):
        first = max(0, begin - context)
        end = begin + window + context
        log_probs = _heard(engine, samples[first * stride : end * stride])
        parts.append(log_probs[begin - first : begin - first + window])
    return np.concatenate(parts)


def _heard(engine: OfflineEngine, samples: NDArray[np.float32]) -> NDArray[np.float32]:
    log_probs, frames = engine.run(samples[None], np.array([len(samples)], np.int64))
    return log_probs[0, : frames[0]]
