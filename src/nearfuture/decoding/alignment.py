"""Forced alignment: which frames of a recording speak which symbols and words of a known text.

Shapes: `T` frames, `V` vocabulary with the blank, `L` target symbols.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nearfuture.decoding.distribution import check_distributions, check_log_probs
from nearfuture.decoding.trellis import best_path
from nearfuture.decoding.word import Word
from nearfuture.error import NearfutureError
from nearfuture.text import BLANK, TimedText, Vocabulary, frames_needed, plural


@dataclass(frozen=True)
class AlignedToken:
    """One symbol of the target and its frames.

    Args:
        index: id of the symbol in the vocabulary.
        first: its first frame, counted from 0.
        last: its last frame, itself included; all frames between are its own.
        log_prob: mean over its frames of the natural logarithm of its probability.
    """

    index: int
    first: int
    last: int
    log_prob: float


@dataclass(frozen=True, eq=False)
class Alignment:
    """The most probable way in which the frames spell the target.

    Args:
        path: (T,) the symbol of every frame, blanks included.
        tokens: one for each symbol of the target, in its order.
        score: natural logarithm of the probability of the path; its negative is its cost.
    """

    path: NDArray[np.int64]
    tokens: tuple[AlignedToken, ...]
    score: float


@dataclass(frozen=True)
class AlignedCharacter(TimedText):
    """One character of a word with its place in the audio; see `align_words`."""


@dataclass(frozen=True)
class AlignedWord(Word):
    """One word of a known text with its place in the audio; see `align_words`.

    Args:
        text: the word.
        start_ms: centre of the window of the first frame of its first character.
        end_ms: end of the last frame of its last character.
        confidence: in [0, 1], the geometric mean of the probabilities of its characters, over the
            frames of each.
        characters: of the word.
    """

    characters: tuple[AlignedCharacter, ...] = ()


def align(
    log_probs: NDArray[np.floating], target: Sequence[int], blank: int | Sequence[int] = BLANK
) -> Alignment:
    """Find the most probable of the paths that CTC reads as the target (Viterbi).

        path = argmax_π Σ_t log p(t, π_t)    over all π of T symbols that, with repeats merged and
                                             blanks dropped, are the target

    Exact, in time `O(T·L)`; memory grows more slowly (see `nearfuture.decoding.trellis`). A target
    of L symbols with R immediate repeats needs L + R frames. Probabilities of 0 (-inf) are allowed
    wherever some path goes around them.

    Args:
        log_probs: (T, V) natural logarithms, of one recording, unpadded.
        target: L ids of symbols, without blanks; maybe none.
        blank: id of the blank; or those of the L + 1 blanks before, between and behind the
            symbols, where a blank's probability depends on its place; the symbols are then no
            distribution, and only values above 0 are refused.

    Raises:
        NearfutureError: if the frames are too few, naming them and how many are needed; if every
            path has probability 0; if `log_probs` is not (T, V), has a NaN or a value above 0, or
            a frame whose probabilities do not add up to 1, within 0.01; and if a symbol of the
            target is the blank, or none of the V.

    Source: Graves et al., "Connectionist temporal classification", 2006, section 4.1, with the
    maximum in place of the sum.

    >>> best = [0, 1, 1, 0, 1, 2]
    >>> log_probs = np.log(np.full((6, 3), 0.1) + 0.7 * np.eye(3)[best])
    >>> alignment = align(log_probs, [1, 1, 2])
    >>> alignment.path.tolist(), [(token.first, token.last) for token in alignment.tokens]
    ([0, 1, 1, 0, 1, 2], [(1, 2), (4, 4), (5, 5)])
    >>> align(log_probs[:3], [1, 1, 2])
    Traceback (most recent call last):
    ...
    nearfuture.error.NearfutureError: 3 frames cannot spell 3 symbols with 1 repeat, which need \
4; use a longer recording or a shorter text
    """
    values = np.asarray(log_probs, np.float64)
    symbols = np.asarray(target, np.int64)
    blanks = np.broadcast_to(np.asarray(blank, np.int64), len(symbols) + 1)
    _check(values, symbols, blanks, distributed=isinstance(blank, int | np.integer))
    T = len(values)
    if T == 0:
        return Alignment(path=np.zeros(0, np.int64), tokens=(), score=0.0)

    labels = np.empty(2 * len(symbols) + 1, np.int64)
    labels[::2], labels[1::2] = blanks, symbols
    states, score = best_path(values, labels)
    if score == -math.inf:
        raise NearfutureError(
            f"every path of {T} frames that spells these {len(symbols)} symbols has probability 0: "
            f"the model holds this text to be impossible in this recording",
            parameter="target",
        )
    path = labels[states]
    frame_log_probs = values[np.arange(T), path]
    begins = np.flatnonzero(np.diff(states, prepend=-1))
    ends = np.append(begins[1:], T)
    tokens = tuple(
        AlignedToken(
            index=int(path[begin]),
            first=int(begin),
            last=int(end) - 1,
            log_prob=math.fsum(frame_log_probs[begin:end]) / int(end - begin),
        )
        for begin, end in zip(begins, ends, strict=True)
        if states[begin] % 2  # odd states are symbols
    )
    return Alignment(path=path, tokens=tokens, score=score)


def align_words(
    log_probs: NDArray[np.floating],
    text: str,
    vocabulary: Vocabulary,
    frame_ms: float,
    centre_ms: float,
) -> tuple[AlignedWord, ...]:
    """Find where the words of a known text are spoken; white space separates words.

        start = centre + frame · t_first            end = centre + frame · (t_last + ½)
        confidence = exp(mean over the frames of its characters of log p)

    Times have the meaning of those of `Detokenizer`, and words never overlap. A
    bidirectional model can write a character inside its sound; one that streams writes late, by its
    emission delay, and so are its times.

    Args:
        log_probs: (T, V) natural logarithms, of one recording, unpadded.
        text: what is said in it; normalise it first (`nearfuture.text.normalise`).
        vocabulary: of the model.
        frame_ms: milliseconds from one frame to the next.
        centre_ms: milliseconds from the start of the audio to the centre of the window of frame 0.

    Raises:
        NearfutureError: as `align`, and for characters that the vocabulary lacks.

    >>> vocabulary = Vocabulary((" ", "a", "b"))
    >>> best = [0, 2, 3, 3, 1, 0, 2]
    >>> log_probs = np.log(np.full((7, 4), 0.05) + 0.8 * np.eye(4)[best])
    >>> for word in align_words(log_probs, "ab a", vocabulary, frame_ms=40, centre_ms=27.5):
    ...     print(word.text, word.start_ms, word.end_ms, round(word.confidence, 3))
    ab 67.5 167.5 0.85
    a 267.5 287.5 0.85
    """
    texts = text.split()
    alignment = align(log_probs, vocabulary.encode(" ".join(texts)))
    return aligned_words(alignment, texts, frame_ms=frame_ms, centre_ms=centre_ms)


def aligned_words(
    alignment: Alignment, texts: Sequence[str], *, frame_ms: float, centre_ms: float
) -> tuple[AlignedWord, ...]:
    """Return the words of an alignment of `" ".join(texts)`."""
    words, first = [], 0
    for word in texts:
        tokens = alignment.tokens[first : first + len(word)]
        first += len(word) + 1  # the space
        characters = tuple(
            AlignedCharacter(
                text=character,
                start_ms=centre_ms + frame_ms * token.first,
                end_ms=centre_ms + frame_ms * (token.last + 0.5),
                confidence=_confidence([token]),
            )
            for character, token in zip(word, tokens, strict=True)
        )
        words.append(
            AlignedWord(
                text=word,
                start_ms=characters[0].start_ms,
                end_ms=characters[-1].end_ms,
                confidence=_confidence(tokens),
                characters=characters,
            )
        )
    return tuple(words)


def _confidence(tokens: Sequence[AlignedToken]) -> float:
    frames = [token.last - token.first + 1 for token in tokens]
    total = math.fsum(n * token.log_prob for n, token in zip(frames, tokens, strict=True))
    return math.exp(min(0.0, total / sum(frames)))  # rounding can put a log-probability above 0


def _check(
    log_probs: NDArray[np.float64],
    target: NDArray[np.int64],
    blanks: NDArray[np.int64],
    *,
    distributed: bool,
) -> None:
    blank = ", ".join(map(str, np.unique(blanks)))
    if log_probs.ndim != 2 or not ((blanks >= 0) & (blanks < log_probs.shape[1])).all():
        raise NearfutureError(
            f"log_probs has shape {log_probs.shape}: alignment takes (frames, vocabulary) of one "
            f"recording, with the blank, {blank}, in the vocabulary",
            parameter="log_probs",
        )
    T, V = log_probs.shape
    wrong = target[(target < 0) | (target >= V) | np.isin(target, blanks)]
    if len(wrong):
        raise NearfutureError(
            f"the target has the symbol {wrong[0]}: symbols go from 0 to {V - 1} without "
            f"{blank}, the blank",
            parameter="target",
        )
    needed = frames_needed(target.tolist())
    if needed > T:
        raise NearfutureError(
            f"{plural(T, 'frame')} cannot spell {plural(len(target), 'symbol')} with "
            f"{plural(needed - len(target), 'repeat')}, "
            f"which need {needed}; use a longer recording or a shorter text",
            code="out_of_range",
            parameter="target",
        )
    if distributed:
        check_distributions(log_probs)
    else:
        check_log_probs(log_probs)
