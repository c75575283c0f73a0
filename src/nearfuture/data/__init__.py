"""Recordings and what is made of them. Nothing here needs torch."""

from nearfuture.data.ahead import Ahead
from nearfuture.data.augmentation import Augmentation, contents, noises, room_responses
from nearfuture.data.batches import Batch, Batches, Skipped, share
from nearfuture.data.check import check
from nearfuture.data.corpus import Entry, Utterance, corpus_folder, load_audio, read_manifest
from nearfuture.data.item import Fault, Item, Source, load_item, probed
from nearfuture.data.limits import Limits
from nearfuture.data.recordings import Recordings, load_utterances
from nearfuture.data.report import Finding, Report
from nearfuture.data.sound import add_noise, at_level
from nearfuture.data.source import read_source

__all__ = [
    "Ahead",
    "Augmentation",
    "Batch",
    "Batches",
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
    "add_noise",
    "at_level",
    "check",
    "contents",
    "corpus_folder",
    "load_audio",
    "load_item",
    "load_utterances",
    "noises",
    "probed",
    "read_manifest",
    "read_source",
    "room_responses",
    "share",
]
