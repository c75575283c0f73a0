"""What is written: vocabularies, normalisation, word and character error rates."""

from nearfuture.text.counting import counted
from nearfuture.text.error_rate import ErrorRate, Pair, align, character_errors, word_errors
from nearfuture.text.normalization import normalise
from nearfuture.text.spelling import frames_needed
from nearfuture.text.vocabulary import BLANK, Vocabulary

__all__ = [
    "BLANK",
    "ErrorRate",
    "Pair",
    "Vocabulary",
    "align",
    "character_errors",
    "counted",
    "frames_needed",
    "normalise",
    "word_errors",
]
