"""Run a streaming bundle and its twin over recordings, and keep what they wrote."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nearfuture.audio import LiveResampler
from nearfuture.data import Item, Utterance, load_item, probed
from nearfuture.decoding import Word, align_words
from nearfuture.error import NearfutureError
from nearfuture.evaluation.evaluation import Evaluation
from nearfuture.evaluation.hearing import hear
from nearfuture.evaluation.reading import Reading, Result
from nearfuture.runtime import Bundle, Model
from nearfuture.runtime.pcm import as_samples
from nearfuture.runtime.transcript import Transcript

Samples = NDArray[np.float32]


def evaluate_bundles(
    streaming: Bundle | str | Path,
    twin: Bundle | str | Path | None,
    items: Iterable[Item | Utterance],
    *,
    heads: Sequence[int] | None = None,
) -> Evaluation:
    """Stream recordings through every head of a model at once, and through its twin as a whole.

    Each recording passes the real runtime once, in chunks of 40 ms at its own rate, and every head
    is decoded on the way: the texts are those of a stream with that head's budget. The twin hears
    the whole recording, and says by forced alignment where its words are.

    Args:
        streaming: a bundle, its path or its name.
        twin: a bidirectional one; None: errors without comparison, and no delays of words.
        items: recordings on disk, or utterances in memory at the streaming model's rate. Those that
            cannot be read are named among the problems and left out.
        heads: lookaheads in frames; all unless given.

    Raises:
        NearfutureError: where a bundle cannot be opened, is of the other kind, or lacks a head.
    """
    model, frames = _streaming(_opened(streaming), heads)
    offline = None if twin is None else _Twin(_opened(twin))
    results: list[Result] = []
    problems: list[str] = []
    quanta_ms: list[float] = []
    for one in items:
        try:
            samples, rate = _samples(one, model.rate)
            results.append(_result(model, frames, offline, one, samples, rate, quanta_ms))
        except NearfutureError as error:
            message = str(error)
            problems.append(message if one.name in message else f"{one.name}: {message}")
    return Evaluation(
        streaming=model.manifest,
        twin=None if offline is None else offline.manifest,
        results=tuple(results),
        problems=tuple(problems),
        quantum_p50_ms=float(np.percentile(quanta_ms, 50)) if quanta_ms else 0.0,
        quantum_p98_ms=float(np.percentile(quanta_ms, 98)) if quanta_ms else 0.0,
    )


class _Twin:
    """A bidirectional model, what it writes, and where it hears the words of a reference."""

    def __init__(self, bundle: Bundle) -> None:
        if bundle.manifest.kind != "bidirectional":
            raise NearfutureError(
                f"{bundle.manifest.name} streams: the twin is a bidirectional model, which hears "
                f"the whole recording"
            )
        self.manifest = bundle.manifest
        self._model = Model(bundle)

    def read(self, one: Item | Utterance, samples: Samples, rate: int) -> _TwinHeard:
        manifest = self.manifest
        empty = Transcript(
            vocabulary=manifest.vocabulary, frame_ms=manifest.frame_ms, centre_ms=manifest.centre_ms
        )
        began = time.perf_counter()
        log_probs = self._model.log_probs(samples, rate)
        heard = empty.step(log_probs)
        ms = 1000 * (time.perf_counter() - began)
        reading = Reading.of(one.text, heard.committed, heard.words)
        return reading, ms, self._aligned(log_probs, one.text)

    def _aligned(self, log_probs: Samples, text: str) -> tuple[Word, ...]:
        manifest = self.manifest
        try:
            words = align_words(
                log_probs, text, manifest.vocabulary, manifest.frame_ms, manifest.centre_ms
            )
        except NearfutureError:
            return ()  # too short for its text, or with characters that the twin cannot write
        return tuple(Word(one.text, one.start_ms, one.end_ms, one.confidence) for one in words)


_TwinHeard = tuple[Reading, float, tuple[Word, ...]]


def _opened(source: Bundle | str | Path) -> Bundle:
    return source if isinstance(source, Bundle) else Bundle.open(source)


def _streaming(bundle: Bundle, heads: Sequence[int] | None) -> tuple[Model, list[int]]:
    if bundle.manifest.kind != "streaming":
        raise NearfutureError(
            f"{bundle.manifest.name} is bidirectional and has no budgets: it can be the twin of a "
            f"streaming model"
        )
    known = sorted(bundle.manifest.heads)
    wanted = known if heads is None else sorted(set(heads))
    if missing := set(wanted) - set(known):
        raise NearfutureError(
            f"{bundle.manifest.name} has the heads {', '.join(map(str, known))}, not "
            f"{', '.join(map(str, sorted(missing)))}"
        )
    if not wanted:
        raise NearfutureError("an evaluation needs at least one head")
    return Model(bundle), wanted


def _samples(one: Item | Utterance, rate: int) -> tuple[Samples, int]:
    """The samples of a recording at its own rate, and that rate."""
    if isinstance(one, Utterance):
        return as_samples(one.samples), rate
    item = probed(one)
    assert item.rate is not None
    return as_samples(load_item(item, item.rate)), item.rate


def _result(
    model: Model,
    frames: Sequence[int],
    twin: _Twin | None,
    one: Item | Utterance,
    samples: Samples,
    rate: int,
    quanta_ms: list[float],
) -> Result:
    heard = hear(model, samples, rate, frames)
    reading, twin_ms, aligned = twin.read(one, samples, rate) if twin else (None, None, ())
    quanta_ms += heard.quanta_ms
    return Result(
        name=one.name,
        speaker=one.speaker,
        reference=one.text,
        seconds=len(samples) / rate,
        resampler_ms=LiveResampler(rate, model.rate).right_ms,
        heads={
            tau: Reading.of(
                one.text,
                shown.transcript.committed,
                shown.transcript.words,
                revisions=shown.revisions,
                retracted=shown.retracted,
            )
            for tau, shown in heard.heads.items()
        },
        compute_ms=heard.compute_ms,
        finish_ms=heard.finish_ms,
        twin=reading,
        twin_ms=twin_ms,
        aligned=aligned,
    )
