"""Recordings and what is made of them. Nothing here needs torch."""

from nearfuture.data.corpus import Entry, Utterance, corpus_folder, load_audio, read_manifest
from nearfuture.data.digits import ConnectedDigits, DigitRecordings
from nearfuture.data.recordings import Recordings
from nearfuture.data.synthetic import corpus_strings, synthesised_strings

__all__ = [
    "ConnectedDigits",
    "DigitRecordings",
    "Entry",
    "Recordings",
    "Utterance",
    "corpus_folder",
    "corpus_strings",
    "load_audio",
    "read_manifest",
    "synthesised_strings",
]
