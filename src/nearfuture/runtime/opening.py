"""What a new stream of a model starts with: the head its budget allows, its quanta, no text."""

from __future__ import annotations

import dataclasses

from nearfuture.audio import LiveResampler
from nearfuture.budget import Latency, LatencyItem, largest_lookahead
from nearfuture.error import NearfutureError
from nearfuture.runtime.manifest import Manifest
from nearfuture.runtime.pcm import Quanta
from nearfuture.runtime.transcript import Transcript


def choose(manifest: Manifest, rate: int, budget_ms: float) -> tuple[int, Latency]:
    """The head that commits for audio at `rate`, and its latency, the live resampler included.

    Raises:
        NearfutureError: where no head keeps the budget at this rate.
    """
    right_ms = LiveResampler(rate, manifest.rate).right_ms
    heads = {frames: with_resampler(x, right_ms) for frames, x in manifest.heads.items()}
    try:
        frames = largest_lookahead(budget_ms, heads)
    except NearfutureError as error:
        where = (
            "" if rate == manifest.rate else f" (audio at {rate} Hz is resampled, {right_ms:g} ms)"
        )
        raise NearfutureError(f"{manifest.name}: {error}{where}") from error
    return frames, heads[frames]


def quanta_of(manifest: Manifest, rate: int) -> Quanta:
    """What cuts audio at `rate` into the quanta of the model."""
    return Quanta(
        rate,
        manifest.rate,
        quantum_samples=manifest.quantum_samples,
        first_samples=manifest.first_quantum_samples,
    )


def empty_transcript(manifest: Manifest) -> Transcript:
    """The transcript of a stream that has not begun."""
    return Transcript(
        vocabulary=manifest.vocabulary,
        frame_ms=manifest.frame_ms,
        centre_ms=manifest.centre_ms,
    )


def with_resampler(latency: Latency, resampler_ms: float) -> Latency:
    """The latency of audio that passes a resampler with this right context first."""
    if resampler_ms == 0:
        return latency
    items = (LatencyItem("resampler", resampler_ms), *latency.items)
    return dataclasses.replace(latency, items=items)
