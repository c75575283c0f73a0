"""Bundles run with ONNX Runtime alone: load a model, stream audio through it, read its text."""

from nearfuture.runtime.bundle import Bundle, bundled
from nearfuture.runtime.engine import Engine, OfflineEngine
from nearfuture.runtime.manifest import Manifest
from nearfuture.runtime.model import Model, load
from nearfuture.runtime.stream import Budget, Event, Stream

__all__ = [
    "Budget",
    "Bundle",
    "Engine",
    "Event",
    "Manifest",
    "Model",
    "OfflineEngine",
    "Stream",
    "bundled",
    "load",
]
