"""From the tokens of a CTC decoder to text, and to words with times and a confidence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nearfuture.decoding.greedy import GreedyDecoder, Token
from nearfuture.decoding.word import Word
from nearfuture.text import Vocabulary

PAUSE_MS = 500.0
"""A silence so long lies between two words, whether a space is written in it or not. Within words
there are gaps too, where a sound is held or a stop is closed: up to 160 ms in spoken digits."""


@dataclass(frozen=True)
class Detokenizer:
    """Joins tokens to words, which spaces or long silences separate.

        start = centre + frame · t_first            end = centre + frame · (t_last + ½)
        confidence = exp(mean over its characters of log p)

    `t` is the frame where the model writes a character. CTC writes one somewhere inside its sound
    or after it, so both times come late by the model's emission delay, and a word may last longer
    than its end says. Words never overlap. In a vocabulary without a space everything between two
    silences is one word.

    Args:
        vocabulary: of the model that wrote the tokens.
        frame_ms: milliseconds from one frame to the next.
        centre_ms: milliseconds from the start of the audio to the centre of the window of frame 0.

    >>> detokenizer = Detokenizer(Vocabulary((" ", "'", "a", "b")), frame_ms=40, centre_ms=27.5)
    >>> tokens = [Token(3, 2, -0.1), Token(4, 3, -0.3), Token(1, 5, -0.1), Token(3, 6, 0.0)]
    >>> detokenizer.text(tokens)
    'ab a'
    >>> for word in detokenizer.words(tokens):
    ...     print(word.text, word.start_ms, word.end_ms, round(word.confidence, 3))
    ab 107.5 167.5 0.819
    a 267.5 287.5 1.0
    """

    vocabulary: Vocabulary
    frame_ms: float
    centre_ms: float

    def is_space(self, index: int) -> bool:
        """Whether the symbol with this id is white space."""
        return self.vocabulary.decode([index]).isspace()

    def begins_word(self, token: Token) -> bool:
        """Whether the text from this token on is another word than the text before it.

        A space begins one, and so does whatever comes behind a silence of half a second. Models
        learn spaces from short pauses; behind a minute of noise they often write none.

        >>> detokenizer = Detokenizer(Vocabulary((" ", "a")), frame_ms=40, centre_ms=27.5)
        >>> [detokenizer.begins_word(Token(2, 60, -0.1, silence)) for silence in (12, 13)]
        [False, True]
        """
        return self.frame_ms * token.silence >= PAUSE_MS or self.is_space(token.index)

    def text(self, tokens: Sequence[Token]) -> str:
        """Return the tokens as text: single spaces between words, none at the ends."""
        return " ".join(self._spelling(group) for group in self._groups(tokens))

    def words(self, tokens: Sequence[Token]) -> tuple[Word, ...]:
        """Return the words of the tokens; their texts joined by spaces are `text(tokens)`.

        Args:
            tokens: in the order of their frames.
        """
        return tuple(
            Word(
                text=self._spelling(group),
                start_ms=self.centre_ms + self.frame_ms * group[0].frame,
                end_ms=self.centre_ms + self.frame_ms * (group[-1].frame + 0.5),
                confidence=_confidence(group),
            )
            for group in self._groups(tokens)
        )

    def _spelling(self, group: Sequence[Token]) -> str:
        return self.vocabulary.decode([token.index for token in group])

    def _groups(self, tokens: Sequence[Token]) -> list[list[Token]]:
        """Group the tokens by words, without spaces."""
        groups: list[list[Token]] = [[]]
        for token in tokens:
            if self.begins_word(token):
                groups.append([])
            if not self.is_space(token.index):
                groups[-1].append(token)
        return [group for group in groups if group]


def greedy_text(log_probs: NDArray[np.floating], vocabulary: Vocabulary, *, frame_ms: float) -> str:
    """Decode a whole recording greedily.

    Args:
        log_probs: (T, V) natural logarithms, unpadded.
        vocabulary: of the model.
        frame_ms: milliseconds from one frame to the next.

    Raises:
        NearfutureError: for what is no log-probabilities, see `GreedyDecoder`.

    >>> log_probs = np.log(np.full((3, 3), 0.1) + 0.7 * np.eye(3)[[1, 0, 2]])
    >>> greedy_text(log_probs, Vocabulary(("a", "b")), frame_ms=40)
    'ab'
    """
    greedy = GreedyDecoder()
    tokens, _ = greedy.step(log_probs, greedy.start())
    return Detokenizer(vocabulary, frame_ms, centre_ms=0.0).text(tokens)


def _confidence(group: Sequence[Token]) -> float:
    mean = math.fsum(token.log_prob for token in group) / len(group)
    return math.exp(min(0.0, mean))  # rounding can put a log-probability above 0
