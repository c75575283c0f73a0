"""Speech on top of the layers: features, acoustic models and the CTC loss."""

from nearfuture.model.configuration import RecognizerConfig
from nearfuture.model.ctc import CTCResult, ctc_loss, frames_needed
from nearfuture.model.features import LogMel, LogSpectrum
from nearfuture.model.presets import (
    PRESETS,
    deep_speech_2_deployed,
    deep_speech_2_research,
    small,
    tiny,
)
from nearfuture.model.recognizer import Recognizer

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
