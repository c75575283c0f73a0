"""Recordings and what is made of them. Nothing here needs torch."""

from nearfuture.data.augmentation import (
    AcousticEnvironment,
    Augmentation,
    add_noise,
    at_level,
    corpus_contents,
)
from nearfuture.data.batching import (
    Batch,
    Batches,
    BatchingOptions,
    BucketingBatches,
    Prefetcher,
    shard,
)
from nearfuture.data.check import check
from nearfuture.data.corpora import corpora_folder, corpus_folder
from nearfuture.data.cut import Cut, CutError, Skipped, Utterance
from nearfuture.data.filter import CutFilter, load_utterances
from nearfuture.data.report import CorpusIssue, CorpusReport
from nearfuture.data.sources import Source, read_source
from nearfuture.data.split import assign_splits

__all__ = [
    "AcousticEnvironment",
    "Augmentation",
    "Batch",
    "Batches",
    "BatchingOptions",
    "BucketingBatches",
    "CorpusIssue",
    "CorpusReport",
    "Cut",
    "CutError",
    "CutFilter",
    "Prefetcher",
    "Skipped",
    "Source",
    "Utterance",
    "add_noise",
    "assign_splits",
    "at_level",
    "check",
    "corpora_folder",
    "corpus_contents",
    "corpus_folder",
    "load_utterances",
    "read_source",
    "shard",
]
