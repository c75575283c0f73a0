"""Bundles run with ONNX Runtime alone: load a model, stream audio through it, read its text."""

from nearfuture.runtime.admission import Busy
from nearfuture.runtime.bundle import Bundle, bundled
from nearfuture.runtime.dispatch import Dispatcher
from nearfuture.runtime.engine import Engine, OfflineEngine
from nearfuture.runtime.live import LiveStream
from nearfuture.runtime.manifest import Manifest
from nearfuture.runtime.meter import DispatchStats, Occupancy
from nearfuture.runtime.model import Model, load
from nearfuture.runtime.reading import Event
from nearfuture.runtime.stream import Budget, Stream
from nearfuture.runtime.transcription import TranscribedUtterance, Transcription
from nearfuture.runtime.utterance import Utterances

__all__ = [
    "Budget",
    "Bundle",
    "Busy",
    "DispatchStats",
    "Dispatcher",
    "Engine",
    "Event",
    "LiveStream",
    "Manifest",
    "Model",
    "Occupancy",
    "OfflineEngine",
    "Stream",
    "TranscribedUtterance",
    "Transcription",
    "Utterances",
    "bundled",
    "load",
]
