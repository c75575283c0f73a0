"""What is decided when a stream begins: its rate, its head, how its text is divided."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nearfuture.audio import LiveResampler
from nearfuture.budget import Latency, LatencyItem, largest_lookahead
from nearfuture.decoding import Endpoint
from nearfuture.error import NearfutureError
from nearfuture.runtime.manifest import Manifest
from nearfuture.runtime.pcm import Quanta

LogProbsHook = Callable[[dict[int, NDArray[np.float32]]], None]
"""Called after each step with the new log-probabilities (frames, V) of every head τ."""


@dataclass(frozen=True)
class Budget:
    """The lookahead of a model or a stream, and its worst-case latency.

    Attributes:
        frames: lookahead τ of the head that commits; None where a model needs the whole recording.
        worst_ms: worst-case algorithmic latency, everything included.
    """

    frames: int | None
    worst_ms: float


@dataclass(frozen=True, kw_only=True)
class StreamConfig:
    """The configuration of computing and decoding one stream; made by `choose`.

    Attributes:
        manifest: of the model.
        rate: samples per second of the audio that the stream accepts.
        lookahead: τ of the head that commits, in frames.
        latency: of that head, itemised, the live resampler included.
        endpoint: divides the text into utterances; None: it stays one utterance.
        on_log_probs: called with all log-probabilities, for decoders of one's own.
    """

    manifest: Manifest
    rate: int
    lookahead: int
    latency: Latency
    endpoint: Endpoint | None = None
    on_log_probs: LogProbsHook | None = None

    @classmethod
    def choose(
        cls,
        manifest: Manifest,
        rate: int | None = None,
        budget_ms: float | None = None,
        *,
        endpoint: Endpoint | None = None,
        on_log_probs: LogProbsHook | None = None,
    ) -> StreamConfig:
        """Choose the largest lookahead that keeps a budget.

        Args:
            manifest: of a streaming model.
            rate: as the attribute; by default the model's own.
            budget_ms: worst-case algorithmic latency allowed; by default the largest lookahead.
            endpoint: as the attribute.
            on_log_probs: as the attribute.

        Raises:
            NearfutureError: where no head keeps the budget at this rate.
        """
        rate = manifest.rate if rate is None else rate
        resampler_ms = LiveResampler(rate, manifest.rate).right_ms
        heads = {
            lookahead: with_resampler(latency, resampler_ms)
            for lookahead, latency in manifest.heads.items()
        }
        try:
            lookahead = largest_lookahead(math.inf if budget_ms is None else budget_ms, heads)
        except NearfutureError as error:
            resampled = f" (audio at {rate} Hz is resampled, {resampler_ms:g} ms)"
            raise NearfutureError(
                f"{manifest.name}: {error}{resampled if rate != manifest.rate else ''}",
                code="out_of_range",
                parameter="budget_ms",
            ) from error
        return cls(
            manifest=manifest,
            rate=rate,
            lookahead=lookahead,
            latency=heads[lookahead],
            endpoint=endpoint,
            on_log_probs=on_log_probs,
        )

    @property
    def budget(self) -> Budget:
        """The promise of a stream with this configuration."""
        return Budget(self.lookahead, self.latency.worst_ms)

    def quanta(self) -> Quanta:
        """Return what cuts the stream's samples into the quanta of the model."""
        return Quanta(
            self.rate,
            self.manifest.rate,
            quantum_samples=self.manifest.quantum_samples,
            first_samples=self.manifest.first_quantum_samples,
        )


def with_resampler(latency: Latency, resampler_ms: float) -> Latency:
    """Return the latency of audio that passes a resampler with this right context first."""
    if resampler_ms == 0:
        return latency
    items = (LatencyItem("resampler", resampler_ms), *latency.items)
    return dataclasses.replace(latency, items=items)
