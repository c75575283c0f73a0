"""The figures of an evaluation: errors and delays of every head beside its twin.

Everything is computed from the results of single recordings, so a stored evaluation can be summed
up again: by speaker, for a part of the recordings, or in another way.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from nearfuture.budget import Latency, LatencyItem
from nearfuture.decoding import Word
from nearfuture.evaluation.bootstrap import Interval, interval, paired_relative
from nearfuture.evaluation.reading import Reading, Result
from nearfuture.runtime import Manifest
from nearfuture.text import ErrorRate
from nearfuture.text.error_rate import align

By = Literal["utterance", "speaker"]
"""What a bootstrap draws."""


@dataclass(frozen=True)
class Spread:
    """Median and 90th percentile, and of how many values; all of them NaN and 0 of none.

    >>> Spread.of([1.0, 2.0, 3.0])
    Spread(p50=2.0, p90=2.8, count=3)
    """

    p50: float
    p90: float
    count: int

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        """The spread of some values."""
        found = list(values)
        if not found:
            return cls(math.nan, math.nan, 0)
        p50, p90 = np.percentile(found, [50, 90])
        return cls(float(p50), float(p90), len(found))


@dataclass(frozen=True, kw_only=True)
class HeadFigures:
    """The figures of one head, or of the twin; docs/evaluation.md defines each.

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
        revisions: of text on show, per 100 words of the references.
        retracted: share of all characters ever shown that were taken back.
    """

    frames: int | None
    latency: Latency | None
    wer: Interval
    cer: Interval
    wer_to_twin: Interval | None
    cer_to_twin: Interval | None
    first_token_ms: Spread
    emission_ms: Spread
    commit_ms: Spread
    revisions: float
    retracted: float


@dataclass(frozen=True, kw_only=True)
class Summary:
    """The figures of an evaluation.

    Attributes:
        by: what the intervals were drawn over.
        utterances, speakers, words, characters, seconds: how much was heard; words and characters
            of the references.
        heads: by lookahead.
        twin: None without one.
        finish_ms: from the end of a recording to its final text, all of it computing.
        twin_ms: the same of the twin.
        real_time_factor: computing of the stream per duration of the recordings.
        aligned: recordings in which the twin could place the words.
    """

    by: By
    utterances: int
    speakers: int
    words: int
    characters: int
    seconds: float
    heads: tuple[HeadFigures, ...]
    twin: HeadFigures | None
    finish_ms: Spread
    twin_ms: Spread
    real_time_factor: float
    aligned: int

    def to_json(self) -> dict[str, Any]:
        """Plain values; what is unknown or infinite is null."""
        plain: dict[str, Any] = _finite(dataclasses.asdict(self))
        for head, figures in zip(plain["heads"], self.heads, strict=True):
            assert figures.latency is not None
            head["latency"]["worst_ms"] = figures.latency.worst_ms
            head["latency"]["mean_ms"] = figures.latency.mean_ms
        return plain


def summarise(
    results: Sequence[Result],
    streaming: Manifest,
    *,
    by: By = "utterance",
    resamples: int = 2000,
    seed: int = 0,
) -> Summary:
    """The figures of some recordings.

    Args:
        results: of recordings, all with the same heads.
        streaming: the model whose heads they are.
        by: draw utterances, or whole speakers; an utterance of nobody known is one of its own.
        resamples: of the bootstrap.
        seed: of the bootstrap.

    Raises:
        NearfutureError: where no recording has a reference.
    """
    groups = _groups(results, by)
    twins = [one.twin for one in results if one.twin is not None]

    def figures(frames: int | None, readings: Sequence[Reading]) -> HeadFigures:
        words = [one.word_errors for one in readings]
        characters = [one.character_errors for one in readings]
        latency = None if frames is None else streaming.heads[frames]
        extra_ms = _commonest(one.resampler_ms for one in results)
        emission, commit, first = _delays(results, readings, latency, streaming)

        def rate(units: list[ErrorRate]) -> Interval:
            if len(set(groups)) < 2:
                return Interval(sum(units, ErrorRate()).rate, 0.0, math.inf)
            return interval(units, groups, resamples=resamples, seed=seed)

        def relative(units: list[ErrorRate], of_twin: list[ErrorRate]) -> Interval | None:
            known = len(of_twin) == len(units) and len(set(groups)) >= 2
            if frames is None or not known or not any(unit.errors for unit in of_twin):
                return None
            return paired_relative(units, of_twin, groups, resamples=resamples, seed=seed)

        said = sum(words, ErrorRate()).reference
        retracted = sum(one.retracted for one in readings)
        shown = retracted + sum(len(one.text) for one in readings)
        return HeadFigures(
            frames=frames,
            latency=latency and _behind(extra_ms, latency),
            wer=rate(words),
            cer=rate(characters),
            wer_to_twin=relative(words, [one.word_errors for one in twins]),
            cer_to_twin=relative(characters, [one.character_errors for one in twins]),
            first_token_ms=Spread.of(first),
            emission_ms=Spread.of(emission),
            commit_ms=Spread.of(commit),
            revisions=100 * sum(one.revisions for one in readings) / max(1, said),
            retracted=retracted / max(1, shown),
        )

    seconds = math.fsum(one.seconds for one in results)
    heads = sorted(results[0].heads) if results else []
    every = tuple(figures(tau, [one.heads[tau] for one in results]) for tau in heads)
    return Summary(
        by=by,
        utterances=len(results),
        speakers=len({one.speaker for one in results} - {""}),
        words=sum(len(one.reference.split()) for one in results),
        characters=sum(len(" ".join(one.reference.split())) for one in results),
        seconds=seconds,
        heads=every,
        twin=figures(None, twins) if twins else None,
        finish_ms=Spread.of(one.finish_ms for one in results),
        twin_ms=Spread.of(one.twin_ms for one in results if one.twin_ms is not None),
        real_time_factor=math.fsum(one.compute_ms for one in results) / 1000 / max(seconds, 1e-9),
        aligned=sum(bool(one.aligned) for one in results),
    )


def matched(said: Sequence[Word], written: Sequence[Word]) -> list[tuple[Word, Word]]:
    """The words that were written as they were said, each beside its place in the audio.

    >>> words = [Word(text, 0.0, 0.0, 1.0) for text in ("one", "two", "too")]
    >>> [(a.text, b.text) for a, b in matched(words[:2], [words[0], words[2]])]
    [('one', 'one')]
    """
    found, i, j = [], 0, 0
    for a, b in align([word.text for word in said], [word.text for word in written]):
        if a is not None and a == b:
            found.append((said[i], written[j]))
        i += a is not None
        j += b is not None
    return found


def _delays(
    results: Sequence[Result],
    readings: Sequence[Reading],
    latency: Latency | None,
    streaming: Manifest,
) -> tuple[list[float], list[float], list[float]]:
    """Emission delays, commit delays and first-token delays."""
    emission: list[float] = []
    commit: list[float] = []
    first: list[float] = []
    for result, reading in zip(results, readings, strict=True):
        if not result.aligned:
            continue
        late = [word.end_ms - said.end_ms for said, word in matched(result.aligned, reading.words)]
        emission += late
        if latency is None:
            continue
        # From the start of a frame to the moment when its output exists, as the model promises.
        wait_ms = latency.worst_ms + result.resampler_ms
        commit += [ms - streaming.centre_ms - streaming.frame_ms / 2 + wait_ms for ms in late]
        if reading.words:
            frame_ms = reading.words[0].start_ms - streaming.centre_ms
            first.append(frame_ms + wait_ms - result.aligned[0].start_ms)
    return emission, commit, first


def _groups(results: Sequence[Result], by: By) -> list[str]:
    if by == "speaker":
        return [one.speaker or f"\0{number}" for number, one in enumerate(results)]
    return [str(number) for number in range(len(results))]


def _commonest(values: Iterable[float]) -> float:
    return Counter(values).most_common(1)[0][0]


def _behind(resampler_ms: float, latency: Latency) -> Latency:
    if resampler_ms == 0:
        return latency
    items = (LatencyItem("resampler", resampler_ms), *latency.items)
    return dataclasses.replace(latency, items=items)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
