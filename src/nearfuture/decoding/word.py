"""Tokens read as text, and as words with times and a confidence."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from nearfuture.decoding.greedy import Token
from nearfuture.text import Vocabulary

PAUSE_MS = 500.0
"""A silence so long lies between two words, whether a space is written in it or not. Within words
there are gaps too, where a sound is held or a stop is closed: up to 160 ms in spoken digits."""


@dataclass(frozen=True)
class Word:
    """One word with its place in the audio.

    Args:
        text: the word.
        start_ms: centre of the window of the frame of its first character.
        end_ms: end of the frame of its last character.
        confidence: in [0, 1], the geometric mean of the probabilities of its characters.
    """

    text: str
    start_ms: float
    end_ms: float
    confidence: float


def begins_word(token: Token, vocabulary: Vocabulary, *, frame_ms: float) -> bool:
    """Whether what is written from this token on is another word than what stands before it.

    A space begins one, and so does whatever comes behind a silence of half a second. Models
    learn spaces from short pauses; behind a minute of noise they often write none.

    >>> both = Vocabulary((" ", "a"))
    >>> [begins_word(Token(2, 60, -0.1, silence), both, frame_ms=40) for silence in (12, 13)]
    [False, True]
    """
    return frame_ms * token.silence >= PAUSE_MS or vocabulary.decode([token.index]).isspace()


def text(tokens: Sequence[Token], vocabulary: Vocabulary, *, frame_ms: float) -> str:
    """The tokens as text: single spaces between words, none at the ends.

    >>> tokens = [Token(index, frame, -0.1) for frame, index in enumerate([1, 3, 1, 1, 4])]
    >>> text(tokens, Vocabulary((" ", "'", "a", "b")), frame_ms=40)
    'a b'
    """
    spelled = _spelled(tokens, vocabulary, frame_ms=frame_ms)
    return " ".join(vocabulary.decode([token.index for token in word]) for word in spelled)


def words(
    tokens: Sequence[Token], vocabulary: Vocabulary, *, frame_ms: float, centre_ms: float
) -> list[Word]:
    """The words of the tokens, which spaces or silences separate, with times and confidence.

        start = centre + frame · t_first            end = centre + frame · (t_last + ½)
        confidence = exp(mean over its characters of log p)

    `t` is the frame where the model writes a character. CTC writes one somewhere inside its sound
    or after it, so both times come late by the model's emission delay, and a word may last longer
    than its end says. Words never overlap, and their texts joined by spaces are `text(…)`. In a
    vocabulary without a space everything between two silences is one word.

    Args:
        tokens: in the order of their frames.
        vocabulary: of the model that wrote them.
        frame_ms: milliseconds from one frame to the next.
        centre_ms: milliseconds from the start of the audio to the centre of the window of frame 0.

    >>> tokens = [Token(3, 2, -0.1), Token(4, 3, -0.3), Token(1, 5, -0.1), Token(3, 6, 0.0)]
    >>> for word in words(tokens, Vocabulary((" ", "'", "a", "b")), frame_ms=40, centre_ms=27.5):
    ...     print(word.text, word.start_ms, word.end_ms, round(word.confidence, 3))
    ab 107.5 167.5 0.819
    a 267.5 287.5 1.0
    """
    return [
        Word(
            text=vocabulary.decode([token.index for token in spelled]),
            start_ms=centre_ms + frame_ms * spelled[0].frame,
            end_ms=centre_ms + frame_ms * (spelled[-1].frame + 0.5),
            confidence=_confidence(spelled),
        )
        for spelled in _spelled(tokens, vocabulary, frame_ms=frame_ms)
    ]


def join_words(utterances: Iterable[tuple[Sequence[Word], bool]]) -> Iterator[Word]:
    """The words of utterances, one behind another; a word that two utterances share is one word.

    A word comes as soon as the utterance behind it is known.

    Args:
        utterances: the words of each, in their order, and whether its first one continues the last
            word of the utterance before it.

    >>> cut = [Word("thr", 0.0, 100.0, 0.9)], [Word("ee", 120.0, 200.0, 0.9)]
    >>> [(word.text, word.end_ms) for word in join_words([(cut[0], False), (cut[1], True)])]
    [('three', 200.0)]
    """
    last: Word | None = None
    for words, continues in utterances:
        for word in words:
            if last is not None and continues:
                word = _merge(last, word)
            elif last is not None:
                yield last
            last, continues = word, False
    if last is not None:
        yield last


def _merge(begin: Word, end: Word) -> Word:
    """One word from its two parts; each character weighs the same in its confidence."""
    text = begin.text + end.text
    share = len(begin.text) / len(text)
    confidence = begin.confidence**share * end.confidence ** (1 - share)
    return Word(text, begin.start_ms, end.end_ms, confidence)


def _spelled(
    tokens: Sequence[Token], vocabulary: Vocabulary, *, frame_ms: float
) -> list[list[Token]]:
    """The tokens of each word, without spaces."""
    groups: list[list[Token]] = [[]]
    for token in tokens:
        if begins_word(token, vocabulary, frame_ms=frame_ms):
            groups.append([])
        if not vocabulary.decode([token.index]).isspace():
            groups[-1].append(token)
    return [group for group in groups if group]


def _confidence(group: list[Token]) -> float:
    mean = math.fsum(token.log_prob for token in group) / len(group)
    return math.exp(min(0.0, mean))  # rounding can put a log-probability above 0
