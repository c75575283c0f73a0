"""Recordings played to a server over many connections, and its delays."""

from nearfuture.client.measure.recording import ReferenceRecording
from nearfuture.client.measure.report import as_json, notes, table
from nearfuture.client.measure.run import METRICS, PlayedRecording, ServerMeasurement, measure
from nearfuture.client.measure.speech import read_word_times

__all__ = [
    "METRICS",
    "PlayedRecording",
    "ReferenceRecording",
    "ServerMeasurement",
    "as_json",
    "measure",
    "notes",
    "read_word_times",
    "table",
]
