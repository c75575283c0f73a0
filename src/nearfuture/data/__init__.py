"""Recordings and what is made of them. Nothing here needs torch."""

from nearfuture.data.augmentation import Augmentation, noises, room_responses
from nearfuture.data.batches import Batch, Batches, Skipped
from nearfuture.data.check import check
from nearfuture.data.corpus import Entry, Utterance, corpus_folder, load_audio, read_manifest
from nearfuture.data.digits import ConnectedDigits, DigitRecordings
from nearfuture.data.item import Fault, Item, Source, load_item, probed
from nearfuture.data.limits import Limits
from nearfuture.data.recordings import Recordings, load_utterances
from nearfuture.data.report import Finding, Report
from nearfuture.data.source import read_source
from nearfuture.data.synthetic import corpus_strings, synthesised_strings

__all__ = [
    "Augmentation",
    "Batch",
    "Batches",
    "ConnectedDigits",
    "DigitRecordings",
    "Entry",
    "Fault",
    "Finding",
    "Item",
    "Limits",
    "Recordings",
    "Report",
    "Skipped",
    "Source",
    "Utterance",
    "check",
    "corpus_folder",
    "corpus_strings",
    "load_audio",
    "load_item",
    "load_utterances",
    "noises",
    "probed",
    "read_manifest",
    "read_source",
    "room_responses",
    "synthesised_strings",
]
