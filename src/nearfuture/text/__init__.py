"""Text: vocabularies, normalisation, error rates, subtitles and other formats with times."""

from nearfuture.text.error_rate import (
    ErrorRate,
    Pair,
    character_errors,
    edit_alignment,
    word_errors,
)
from nearfuture.text.joining import join_utterances
from nearfuture.text.normalization import normalise
from nearfuture.text.plural import plural
from nearfuture.text.subtitles import Cue, cues, srt, vtt
from nearfuture.text.timed import TimedText, ctm, textgrid, timed_json
from nearfuture.text.vocabulary import BLANK, SUM_TOLERANCE, Vocabulary, frames_needed

__all__ = [
    "BLANK",
    "SUM_TOLERANCE",
    "Cue",
    "ErrorRate",
    "Pair",
    "TimedText",
    "Vocabulary",
    "character_errors",
    "ctm",
    "cues",
    "edit_alignment",
    "frames_needed",
    "join_utterances",
    "normalise",
    "plural",
    "srt",
    "textgrid",
    "timed_json",
    "vtt",
    "word_errors",
]
