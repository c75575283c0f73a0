"""Speech on top of the layers: features, acoustic models and the CTC loss."""

from nearfuture.speech.ctc import CTCResult, ctc_loss, frames_needed
from nearfuture.speech.features import LogMel
from nearfuture.speech.presets import PRESETS, small, tiny
from nearfuture.speech.recognizer import Recognizer, RecognizerConfig

__all__ = [
    "PRESETS",
    "CTCResult",
    "LogMel",
    "Recognizer",
    "RecognizerConfig",
    "ctc_loss",
    "frames_needed",
    "small",
    "tiny",
]
