"""What is written: vocabularies, normalisation, word and character error rates."""

from nearfuture.text.counting import counted
from nearfuture.text.error_rate import ErrorRate, Pair, align, character_errors, word_errors
from nearfuture.text.joining import join_utterances
from nearfuture.text.normalization import normalise
from nearfuture.text.spelling import frames_needed
from nearfuture.text.vocabulary import BLANK, SUM_TOLERANCE, Vocabulary

__all__ = [
    "BLANK",
    "SUM_TOLERANCE",
    "ErrorRate",
    "Pair",
    "Vocabulary",
    "align",
    "character_errors",
    "counted",
    "frames_needed",
    "join_utterances",
    "normalise",
    "word_errors",
]
