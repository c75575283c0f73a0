"""What is written: vocabularies, normalisation, word and character error rates."""

from nearfuture.text.counting import counted
from nearfuture.text.error_rate import (
    ErrorRate,
    Pair,
    character_errors,
    edit_alignment,
    word_errors,
)
from nearfuture.text.joining import join_utterances
from nearfuture.text.normalization import normalise
from nearfuture.text.vocabulary import BLANK, SUM_TOLERANCE, Vocabulary, frames_needed

__all__ = [
    "BLANK",
    "SUM_TOLERANCE",
    "ErrorRate",
    "Pair",
    "Vocabulary",
    "character_errors",
    "counted",
    "edit_alignment",
    "frames_needed",
    "join_utterances",
    "normalise",
    "word_errors",
]
