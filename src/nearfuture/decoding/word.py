"""A word with its place in the audio."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from nearfuture.text import TimedText


@dataclass(frozen=True)
class Word(TimedText):
    """One word with its place in the audio.

    Args:
        text: the word.
        start_ms: centre of the window of the frame of its first character.
        end_ms: end of the frame of its last character.
        confidence: in [0, 1], the geometric mean of the probabilities of its characters.
    """


def join_words(utterances: Iterable[tuple[Sequence[Word], bool]]) -> Iterator[Word]:
    """Yield the words of utterances in order; a word that two utterances share is one word.

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
    """Merge the two parts of a word; each character weighs the same in its confidence."""
    text = begin.text + end.text
    share = len(begin.text) / len(text)
    confidence = begin.confidence**share * end.confidence ** (1 - share)
    return Word(text, begin.start_ms, end.end_ms, confidence)
