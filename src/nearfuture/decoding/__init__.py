"""From log-probabilities to text: CTC decoding whose state is a value, alignment, word times."""

from nearfuture.decoding.alignment import (
    AlignedCharacter,
    AlignedToken,
    AlignedWord,
    Alignment,
    align,
    align_words,
)
from nearfuture.decoding.endpoint import Endpoint
from nearfuture.decoding.greedy import Greedy, GreedyState, Token
from nearfuture.decoding.word import PAUSE_MS, Word, begins_word, join_words, text, words

__all__ = [
    "PAUSE_MS",
    "AlignedCharacter",
    "AlignedToken",
    "AlignedWord",
    "Alignment",
    "Endpoint",
    "Greedy",
    "GreedyState",
    "Token",
    "Word",
    "align",
    "align_words",
    "begins_word",
    "join_words",
    "text",
    "words",
]
