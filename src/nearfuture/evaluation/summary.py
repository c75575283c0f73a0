"""The metrics of an evaluation: errors and delays of every head beside the twin.

Everything is computed from the results of single recordings, so a stored evaluation can be summed
up again: by speaker, for a part of the recordings, or in another way.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from nearfuture.budget import Latency, ReceptiveField
from nearfuture.decoding import Word
from nearfuture.error import NearfutureError
from nearfuture.evaluation.bootstrap import (
    ConfidenceInterval,
    bootstrap_interval,
    paired_bootstrap,
)
from nearfuture.evaluation.results import Hypothesis, Result
from nearfuture.runtime import Manifest
from nearfuture.runtime.stream_config import with_resampler
from nearfuture.text import ErrorRate, edit_alignment

By = Literal["utterance", "speaker"]
"""The unit that the bootstrap resamples."""


@dataclass(frozen=True)
class Percentiles:
    """Median and 90th percentile of some values; without any value both are NaN.

    >>> Percentiles.of([1.0, 2.0, 3.0])
    Percentiles(p50=2.0, p90=2.8, count=3)
    """

    p50: float
    p90: float
    count: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Percentiles:
        """Compute the percentiles of some values."""
        if not values:
            return cls(math.nan, math.nan, 0)
        p50, p90 = np.percentile(values, (50, 90))
        return cls(float(p50), float(p90), len(values))


@dataclass(frozen=True, kw_only=True)
class HeadMetrics:
    """The metrics of one head, or of the twin; docs/evaluation.md defines each.

    Attributes:
        frames: lookahead τ; None for the twin.
        latency: algorithmic, itemised, with the resampler that most recordings need; None for the
            twin, which waits for the end.
        wer, cer: error rates with 95 % intervals, as fractions; `high` is infinite where there are
            too few recordings or speakers for an interval.
        wer_to_twin, cer_to_twin: relative difference to the twin in % with its paired 95 %
            interval; None without a twin, with one that makes no error, or with too few to draw.
        first_token_ms: start of the first word to the first committed text.
        emission_ms: end of a word to the end of the frame that writes its last character.
        commit_ms: end of a word to the moment when its last character is committed.
        revisions: of partial results, per 100 words of the references.
        retracted: share of all characters ever shown that were taken back.
    """

    frames: int | None
    latency: Latency | None
    wer: ConfidenceInterval
    cer: ConfidenceInterval
    wer_to_twin: ConfidenceInterval | None
    cer_to_twin: ConfidenceInterval | None
    first_token_ms: Percentiles
    emission_ms: Percentiles
    commit_ms: Percentiles
    revisions: float
    retracted: float


@dataclass(frozen=True, kw_only=True)
class Summary:
    """The metrics of an evaluation.

    Attributes:
        by: what the intervals were drawn over.
        utterances, speakers, words, characters, seconds: the size of the data; words and characters
            of the references.
        heads: by lookahead.
        twin: None without one.
        finish_ms: from the end of a recording to its final text, all of it computing.
        twin_ms: the same of the twin.
        real_time_factor: computing of the stream per duration of the recordings.
        aligned: recordings whose words the twin could align.
    """

    by: By
    utterances: int
    speakers: int
    words: int
    characters: int
    seconds: float
    heads: tuple[HeadMetrics, ...]
    twin: HeadMetrics | None
    finish_ms: Percentiles
    twin_ms: Percentiles
    real_time_factor: float
    aligned: int

    def to_json(self) -> dict[str, Any]:
        """Plain values; what is unknown or infinite is null."""
        plain: dict[str, Any] = _replace_infinite(dataclasses.asdict(self))
        for head, metrics in zip(plain["heads"], self.heads, strict=True):
            assert metrics.latency is not None
            head["latency"]["worst_ms"] = metrics.latency.worst_ms
            head["latency"]["mean_ms"] = metrics.latency.mean_ms
        return plain


def summarise(results: Sequence[Result], streaming: Manifest, by: By = "utterance") -> Summary:
    """Compute the metrics of some recordings.

    Args:
        results: of recordings, all with the same heads.
        streaming: the model whose heads they are.
        by: draw utterances, or whole speakers; an utterance of an unknown speaker is drawn alone.

    Raises:
        NearfutureError: where there is no recording, or none has a reference; by speaker also where
            fewer than 2 speakers are known.
    """
    if not results:
        raise NearfutureError("no recording could be decoded: there is nothing to sum up")
    speakers = {result.speaker for result in results} - {""}
    if by == "speaker" and len(speakers) < 2:
        raise NearfutureError(
            f"an interval by speaker needs at least 2 speakers, and these {len(results)} "
            f"recordings name {len(speakers)}: draw by utterance",
            parameter="by",
        )
    groups = [
        (result.speaker if by == "speaker" else "") or f"\0{number}"
        for number, result in enumerate(results)
    ]
    twins = [result.twin for result in results if result.twin is not None]
    resampler_ms, _ = Counter(result.resampler_ms for result in results).most_common(1)[0]

    def metrics(frames: int | None, hypotheses: Sequence[Hypothesis]) -> HeadMetrics:
        words = [hypothesis.word_errors for hypothesis in hypotheses]
        characters = [hypothesis.character_errors for hypothesis in hypotheses]
        latency = None if frames is None else streaming.heads[frames]
        compared = [] if frames is None else twins
        exists_ms = None if frames is None else _OutputTime(streaming, frames)
        emission, commit, first = _delays(results, hypotheses, exists_ms, streaming)
        retracted = sum(hypothesis.retracted for hypothesis in hypotheses)
        shown = retracted + sum(len(hypothesis.text) for hypothesis in hypotheses)
        revisions = sum(hypothesis.revisions for hypothesis in hypotheses)
        return HeadMetrics(
            frames=frames,
            latency=latency and with_resampler(latency, resampler_ms),
            wer=_interval(words, groups),
            cer=_interval(characters, groups),
            wer_to_twin=_to_twin(words, [twin.word_errors for twin in compared], groups),
            cer_to_twin=_to_twin(characters, [twin.character_errors for twin in compared], groups),
            first_token_ms=Percentiles.of(first),
            emission_ms=Percentiles.of(emission),
            commit_ms=Percentiles.of(commit),
            revisions=100 * revisions / max(1, sum(words, ErrorRate()).reference),
            retracted=retracted / max(1, shown),
        )

    seconds = math.fsum(result.seconds for result in results)
    compute_ms = math.fsum(result.compute_ms for result in results)
    return Summary(
        by=by,
        utterances=len(results),
        speakers=len(speakers),
        words=sum(len(result.reference.split()) for result in results),
        characters=sum(len(" ".join(result.reference.split())) for result in results),
        seconds=seconds,
        heads=tuple(
            metrics(tau, [result.heads[tau] for result in results])
            for tau in sorted(results[0].heads)
        ),
        twin=metrics(None, twins) if twins else None,
        finish_ms=Percentiles.of([result.finish_ms for result in results]),
        twin_ms=Percentiles.of([ms for result in results if (ms := result.twin_ms) is not None]),
        real_time_factor=compute_ms / 1000 / max(seconds, 1e-9),
        aligned=sum(bool(result.aligned) for result in results),
    )


def _interval(counts: Sequence[ErrorRate], groups: Sequence[str]) -> ConfidenceInterval:
    if len(set(groups)) < 2:
        return ConfidenceInterval(sum(counts, ErrorRate()).rate, 0.0, math.inf)
    return bootstrap_interval(counts, groups)


def _to_twin(
    counts: Sequence[ErrorRate], twin: Sequence[ErrorRate], groups: Sequence[str]
) -> ConfidenceInterval | None:
    paired = len(twin) == len(counts) and len(set(groups)) >= 2
    if not paired or not any(utterance.errors for utterance in twin):
        return None
    return paired_bootstrap(counts, twin, groups)


def match_words(reference: Sequence[Word], hypothesis: Sequence[Word]) -> list[tuple[Word, Word]]:
    """Pair the words that were written as they were spoken.

    >>> one, two, too = (Word(text, 0.0, 0.0, 1.0) for text in ("one", "two", "too"))
    >>> [(spoken.text, written.text) for spoken, written in match_words([one, two], [one, too])]
    [('one', 'one')]
    """
    matches, i, j = [], 0, 0
    for a, b in edit_alignment(
        [word.text for word in reference], [word.text for word in hypothesis]
    ):
        if a is not None and a == b:
            matches.append((reference[i], hypothesis[j]))
        i += a is not None
        j += b is not None
    return matches


def _delays(
    results: Sequence[Result],
    hypotheses: Sequence[Hypothesis],
    exists_ms: _OutputTime | None,
    streaming: Manifest,
) -> tuple[list[float], list[float], list[float]]:
    """Emission delays, commit delays and first-token delays."""
    emission: list[float] = []
    commit: list[float] = []
    first: list[float] = []
    for result, hypothesis in zip(results, hypotheses, strict=True):
        if not result.aligned:
            continue
        pairs = match_words(result.aligned, hypothesis.words)
        delays_ms = [written.end_ms - spoken.end_ms for spoken, written in pairs]
        emission += delays_ms
        if exists_ms is None:
            continue
        commit += [
            exists_ms(written.end_ms - streaming.frame_ms / 2) + result.resampler_ms - spoken.end_ms
            for spoken, written in pairs
        ]
        if hypothesis.words:
            written_ms = exists_ms(hypothesis.words[0].start_ms)
            first.append(written_ms + result.resampler_ms - result.aligned[0].start_ms)
    return emission, commit, first


class _OutputTime:
    """The moment when the output of a frame exists, in ms of the audio at the model's own rate.

    Where frames exist in chunks, the last of a chunk waits less than the first.
    """

    def __init__(self, streaming: Manifest, frames: int) -> None:
        self._manifest = streaming
        self._field = ReceptiveField()
        for _, link in streaming.architecture.links(frames):
            self._field = self._field.then(link)

    def __call__(self, centre_ms: float) -> float:
        """Return the moment for the frame whose window has its centre there."""
        manifest = self._manifest
        t = round((centre_ms - manifest.centre_ms) / manifest.frame_ms)
        return self._field.needed(t) * 1000 / manifest.rate


def _replace_infinite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _replace_infinite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_replace_infinite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
