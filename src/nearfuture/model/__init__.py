"""Speech on top of the layers: features, acoustic models and the CTC loss."""

from nearfuture.model.ctc import CTCResult, ctc_loss
from nearfuture.model.features import LogMel, LogSpectrum
from nearfuture.model.recognizer import Recognizer

__all__ = [
    "CTCResult",
    "LogMel",
    "LogSpectrum",
    "Recognizer",
    "ctc_loss",
]
