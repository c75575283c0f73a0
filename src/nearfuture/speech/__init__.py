"""Speech on top of the layers: features, acoustic models and the CTC loss."""

from nearfuture.speech.configuration import RecognizerConfig
from nearfuture.speech.ctc import CTCResult, ctc_loss, frames_needed
from nearfuture.speech.features import LogMel, LogSpectrum
from nearfuture.speech.presets import (
    PRESETS,
    deep_speech_2_deployed,
    deep_speech_2_research,
    small,
    tiny,
)
from nearfuture.speech.recognizer import Recognizer

__all__ = [
    "PRESETS",
    "CTCResult",
    "LogMel",
    "LogSpectrum",
    "Recognizer",
    "RecognizerConfig",
    "ctc_loss",
    "deep_speech_2_deployed",
    "deep_speech_2_research",
    "frames_needed",
    "small",
    "tiny",
]
