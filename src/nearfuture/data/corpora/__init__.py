"""Public corpora, and corpora on disk: where they lie, how they are fetched and written."""

from nearfuture.data.corpora.catalogue import CORPORA, Archive, PublicCorpus, public_corpus
from nearfuture.data.corpora.fetch import fetch
from nearfuture.data.corpora.location import corpora_folder, corpus_folder
from nearfuture.data.corpora.writing import write_corpus

__all__ = [
    "CORPORA",
    "Archive",
    "PublicCorpus",
    "corpora_folder",
    "corpus_folder",
    "fetch",
    "public_corpus",
    "write_corpus",
]
