"""Run a streaming bundle and its twin over recordings, and keep what they wrote."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nearfuture.audio import LiveResampler
from nearfuture.data import Cut, Utterance
from nearfuture.decoding import Word, align_words
from nearfuture.error import NearfutureError
from nearfuture.evaluation.evaluation import Evaluation
from nearfuture.evaluation.results import Hypothesis, Result
from nearfuture.evaluation.streaming import stream_recording
from nearfuture.runtime import Bundle, Model, Transcript, as_samples

Samples = NDArray[np.float32]


def evaluate_bundles(
    streaming: Bundle | str | Path,
    twin: Bundle | str | Path | None,
    recordings: Iterable[Cut | Utterance],
    *,
    heads: Sequence[int] | None = None,
) -> Evaluation:
    """Stream recordings through every head of a model at once, and through its twin as a whole.

    Each recording passes the real runtime once, in chunks of 40 ms at its own rate, and every head
    is decoded on the way: the texts are those of a stream with that head's budget. The twin decodes
    the whole recording, and aligns the reference with it, which tells where its words are.

    Args:
        streaming: a bundle, its path or its name.
        twin: a bidirectional one; None: errors without comparison, and no delays of words.
        recordings: on disk, or utterances in memory at the streaming model's rate. Those that
            cannot be read are named among the problems and skipped.
        heads: lookaheads in frames; by default all.

    Raises:
        NearfutureError: where a bundle cannot be opened, is of the other kind, or lacks a head.
    """
    streaming = _open(streaming)
    wanted = _choose_heads(streaming, heads)
    runner = _Runner(Model(streaming), wanted, None if twin is None else _Twin(_open(twin)))
    results: list[Result] = []
    problems: list[str] = []
    for item in recordings:
        try:
            results.append(runner.run(item))
        except NearfutureError as error:
            message = str(error)
            problems.append(message if item.name in message else f"{item.name}: {message}")
    p50_ms, p98_ms = np.percentile(runner.quanta_ms or [0.0], (50, 98))
    return Evaluation(
        streaming=streaming.manifest,
        twin=None if runner.twin is None else runner.twin.manifest,
        results=tuple(results),
        problems=tuple(problems),
        quantum_p50_ms=float(p50_ms),
        quantum_p98_ms=float(p98_ms),
    )


class _Runner:
    """Both models, the heads that are evaluated, and the compute times of all quanta so far."""

    def __init__(self, model: Model, heads: Sequence[int], twin: _Twin | None) -> None:
        self.model = model
        self.heads = heads
        self.twin = twin
        self.quanta_ms: list[float] = []

    def run(self, item: Cut | Utterance) -> Result:
        """Decode one recording with both models."""
        samples, rate = _load(item, self.model.rate)
        streamed = stream_recording(self.model, samples, rate, self.heads)
        self.quanta_ms += streamed.quanta_ms
        twin = self.twin.decode(samples, rate, item.text) if self.twin else _NO_TWIN
        return Result(
            name=item.name,
            speaker=item.speaker,
            reference=item.text,
            seconds=len(samples) / rate,
            resampler_ms=LiveResampler(rate, self.model.rate).right_ms,
            heads={
                tau: Hypothesis.scored(
                    item.text,
                    partials.transcript.committed,
                    partials.transcript.words,
                    revisions=partials.revisions,
                    retracted=partials.retracted,
                )
                for tau, partials in streamed.heads.items()
            },
            compute_ms=streamed.compute_ms,
            finish_ms=streamed.finish_ms,
            twin=twin.hypothesis,
            twin_ms=twin.compute_ms,
            aligned=twin.aligned,
        )


@dataclass(frozen=True)
class _Decoded:
    """The hypothesis of the twin, its compute time, and the aligned words of the reference."""

    hypothesis: Hypothesis | None = None
    compute_ms: float | None = None
    aligned: tuple[Word, ...] = ()


_NO_TWIN = _Decoded()


class _Twin:
    """A bidirectional model, which decodes whole recordings and aligns references with them."""

    def __init__(self, bundle: Bundle) -> None:
        if bundle.manifest.kind != "bidirectional":
            raise NearfutureError(
                f"{bundle.manifest.name} streams: `twin` is a bidirectional model, which needs "
                f"the whole recording",
                code="unsupported",
                parameter="twin",
            )
        self.manifest = bundle.manifest
        self._model = Model(bundle)

    def decode(self, samples: Samples, rate: int, reference: str) -> _Decoded:
        """Decode a whole recording, and align its reference."""
        start_s = time.perf_counter()
        log_probs = self._model.log_probs(samples, rate)
        transcript = Transcript.empty(self.manifest).step(log_probs)
        compute_ms = 1000 * (time.perf_counter() - start_s)
        hypothesis = Hypothesis.scored(reference, transcript.committed, transcript.words)
        return _Decoded(hypothesis, compute_ms, self._align(log_probs, reference))

    def _align(self, log_probs: Samples, reference: str) -> tuple[Word, ...]:
        manifest = self.manifest
        try:
            words = align_words(
                log_probs, reference, manifest.vocabulary, manifest.frame_ms, manifest.centre_ms
            )
        except NearfutureError:
            return ()  # too short for its text, or with characters that the twin cannot write
        return tuple(Word(word.text, word.start_ms, word.end_ms, word.confidence) for word in words)


def _open(source: Bundle | str | Path) -> Bundle:
    return source if isinstance(source, Bundle) else Bundle.open(source)


def _choose_heads(bundle: Bundle, heads: Sequence[int] | None) -> list[int]:
    name, known = bundle.manifest.name, sorted(bundle.manifest.heads)
    if bundle.manifest.kind != "streaming":
        raise NearfutureError(
            f"{name} is bidirectional and has no budgets: it can be the `twin` of a streaming "
            f"model",
            code="unsupported",
            parameter="streaming",
        )
    wanted = known if heads is None else sorted(set(heads))
    if unknown := sorted(set(wanted) - set(known)):
        raise NearfutureError(
            f"{name} has the heads {', '.join(map(str, known))}, not "
            f"{', '.join(map(str, unknown))}",
            code="not_found",
            parameter="heads",
        )
    if not wanted:
        raise NearfutureError("an evaluation needs at least one head", parameter="heads")
    return wanted


def _load(item: Cut | Utterance, rate: int) -> tuple[Samples, int]:
    """Return the samples of a recording at its own rate, and that rate."""
    if isinstance(item, Utterance):
        return as_samples(item.samples), rate
    audio = item.read()
    return as_samples(audio.samples), audio.rate
