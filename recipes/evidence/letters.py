"""Which letters gain from lookahead: a recogniser with several heads, on real speech.

A bidirectional model says where each letter of the known text is spoken, by forced alignment; that
of each head of the streaming model says where the head writes it. A CTC model without lookahead
gets its evidence by writing late, so the two are told apart:

    delay  = the frame where the head writes the letter, less the frame where it is spoken
    missed = in the frames where the head should write it, another symbol is the most probable

Shapes: `T` frames, `V` vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearfuture.data import Utterance
from nearfuture.decoding import align
from nearfuture.runtime import Model
from nearfuture.text import Vocabulary

LogProbs = NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class Letter:
    """One letter of a text that was spoken.

    Args:
        utterance: number of the recording.
        speaker: of the recording.
        word: that it stands in.
        place: in the word, from 0.
        letter: itself.
        missed: by lookahead τ; None is the bidirectional model.
        delay: in frames behind the bidirectional model, by lookahead.
    """

    utterance: int
    speaker: str
    word: str
    place: int
    letter: str
    missed: Mapping[int | None, bool]
    delay: Mapping[int, int]

    @property
    def in_word(self) -> str:
        """The letter marked in its word."""
        return f"{self.word[: self.place]}({self.letter}){self.word[self.place + 1 :]}"


def heads_of(model: Model, samples: NDArray[np.float32]) -> dict[int, LogProbs]:
    """Stream a recording, and return the log-probabilities (T, V) of every head."""
    parts: list[dict[int, LogProbs]] = []
    stream = model.stream(on_log_probs=parts.append)
    stream.accept(samples)
    stream.finish()
    return {tau: np.concatenate([part[tau] for part in parts]) for tau in model.budgets}


def letters(
    number: int,
    utterance: Utterance,
    heads: Mapping[int, LogProbs],
    twin: LogProbs,
    vocabulary: Vocabulary,
) -> list[Letter]:
    """Judge every letter of one recording by every head.

    Args:
        number: of the recording.
        utterance: the recording and its text.
        heads: (T, V) log-probabilities by lookahead.
        twin: (T, V) those of the bidirectional model.
        vocabulary: of both.
    """
    ids = vocabulary.encode(utterance.text)
    everyone: dict[int | None, LogProbs] = {None: twin}
    everyone.update((tau, log_probs) for tau, log_probs in heads.items())
    aligned = {tau: align(log_probs, ids).tokens for tau, log_probs in everyone.items()}
    best = {tau: log_probs.argmax(axis=1) for tau, log_probs in everyone.items()}
    found, word, place = [], 0, 0
    words = utterance.text.split(" ")
    for at, symbol in enumerate(utterance.text):
        if symbol == " ":
            word, place = word + 1, 0
            continue
        tokens = {tau: each[at] for tau, each in aligned.items()}
        found.append(
            Letter(
                utterance=number,
                speaker=utterance.speaker,
                word=words[word],
                place=place,
                letter=symbol,
                missed={
                    tau: not bool((best[tau][token.first : token.last + 1] == token.index).any())
                    for tau, token in tokens.items()
                },
                delay={tau: tokens[tau].first - tokens[None].first for tau in heads},
            )
        )
        place += 1
    return found


def judged(
    model: Model,
    twin: Model,
    utterances: Iterable[Utterance],
    report: Callable[[int], None] = lambda number: None,
) -> list[Letter]:
    """Judge every letter of recordings; `report` is called with how many are done."""
    found: list[Letter] = []
    for number, utterance in enumerate(utterances):
        heads = heads_of(model, utterance.samples)
        log_probs = twin.log_probs(utterance.samples)
        found += letters(number, utterance, heads, log_probs, model.manifest.vocabulary)
        report(number + 1)
    return found


@dataclass(frozen=True, kw_only=True)
class LetterErrors:
    """How often one letter is missed, by lookahead, with 95 % intervals.

    Args:
        name: the letter.
        count: how often it was spoken.
        rates: (value, low, high) of the share missed, by lookahead; None is the twin.
        gain: (value, low, high) of the share that is missed with the least lookahead less that
            with the most.
        delays: (value, low, high) of the mean delay in frames, by lookahead.
    """

    name: str
    count: int
    rates: Mapping[int | None, tuple[float, float, float]]
    gain: tuple[float, float, float]
    delays: Mapping[int, tuple[float, float, float]]


def errors_by(
    found: Sequence[Letter],
    key: Callable[[Letter], str],
    *,
    resamples: int = 2000,
    seed: int = 0,
) -> list[LetterErrors]:
    """Group letters, and count what every head misses; the intervals draw whole recordings.

    A resample draws recordings with replacement, the same for all heads, so that what makes a
    recording hard cancels in the gain (Bisani and Ney, 2004).

    Args:
        found: letters of many recordings.
        key: what a letter is grouped by.
        resamples: of the bootstrap.
        seed: of the bootstrap.
    """
    utterances = 1 + max(letter.utterance for letter in found)
    rng = np.random.default_rng(seed)
    weights = np.stack(
        [np.bincount(rng.integers(0, utterances, utterances), minlength=utterances)
         for _ in range(resamples)]
    )  # fmt: skip
    groups: dict[str, list[Letter]] = {}
    for letter in found:
        groups.setdefault(key(letter), []).append(letter)
    taus = sorted(found[0].delay)
    results = []
    for name, group in sorted(groups.items()):
        where = np.array([letter.utterance for letter in group])
        spoken = np.bincount(where, minlength=utterances)

        def per_utterance(values: list[float], where: NDArray[Any] = where) -> NDArray[Any]:
            return np.bincount(where, weights=values, minlength=utterances)

        missed = {tau: per_utterance([each.missed[tau] for each in group]) for tau in (*taus, None)}
        delays = {tau: per_utterance([each.delay[tau] for each in group]) for tau in taus}
        results.append(
            LetterErrors(
                name=name,
                count=len(group),
                rates={tau: _rate(counts, spoken, weights) for tau, counts in missed.items()},
                gain=_rate(missed[taus[0]] - missed[taus[-1]], spoken, weights),
                delays={tau: _rate(counts, spoken, weights) for tau, counts in delays.items()},
            )
        )
    return results


def _rate(
    counts: NDArray[Any], spoken: NDArray[Any], weights: NDArray[Any]
) -> tuple[float, float, float]:
    total = weights @ spoken
    rates = (weights @ counts)[total > 0] / total[total > 0]
    low, high = np.percentile(rates, (2.5, 97.5))
    return float(counts.sum() / spoken.sum()), float(low), float(high)
