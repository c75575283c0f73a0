"""Bundles run with ONNX Runtime alone: load a model, stream audio through it, read its text."""

from nearfuture.runtime.bundle import Bundle, bundled
from nearfuture.runtime.decoder import Event
from nearfuture.runtime.engine import Engine, OfflineEngine, row
from nearfuture.runtime.grammar import grammar_search, search_blocks
from nearfuture.runtime.manifest import Manifest, StoredFile
from nearfuture.runtime.model import Model, load
from nearfuture.runtime.pcm import as_samples
from nearfuture.runtime.precision import FLOAT32, LOW_PRECISIONS, Precision
from nearfuture.runtime.processor import AUTO, UnsupportedPrecision
from nearfuture.runtime.scheduler import Busy, Dispatcher, DispatchStats, LiveStream, Occupancy
from nearfuture.runtime.segmented_transcript import SegmentedTranscript
from nearfuture.runtime.stream import Stream
from nearfuture.runtime.stream_config import Budget, StreamConfig
from nearfuture.runtime.transcript import Transcript
from nearfuture.runtime.transcription import TranscribedUtterance, Transcription

__all__ = [
    "AUTO",
    "FLOAT32",
    "LOW_PRECISIONS",
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
    "Precision",
    "SegmentedTranscript",
    "StoredFile",
    "Stream",
    "StreamConfig",
    "TranscribedUtterance",
    "Transcript",
    "Transcription",
    "UnsupportedPrecision",
    "as_samples",
    "bundled",
    "grammar_search",
    "load",
    "row",
    "search_blocks",
]
