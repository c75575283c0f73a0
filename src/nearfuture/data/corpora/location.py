"""Where public corpora lie on disk: in the folder that `NEARFUTURE_CORPORA` names."""

from __future__ import annotations

import os
from pathlib import Path

from nearfuture.error import NearfutureError

ENVIRONMENT = "NEARFUTURE_CORPORA"
MANIFEST = "manifest.tsv"
"""The list of a corpus for people; written last, so that a corpus with it is complete."""


def corpora_folder(to: Path | None = None) -> Path:
    """Return the folder of all corpora: `to`, or that of `NEARFUTURE_CORPORA`.

    Raises:
        NearfutureError: where neither is set.

    >>> corpora_folder(Path("corpora"))
    PosixPath('corpora')
    """
    if to is not None:
        return to
    if folder := os.environ.get(ENVIRONMENT):
        return Path(folder)
    raise NearfutureError(
        f"where should corpora go? Name a folder with `to`, or set {ENVIRONMENT}, which training "
        f"reads, too",
        parameter="to",
    )


def corpus_folder(name: str, root: Path | None = None) -> Path | None:
    """Return the folder of a corpus, or None where it is missing or not complete.

    Args:
        name: of the corpus.
        root: the folder of all corpora; by default the one that `NEARFUTURE_CORPORA` names.

    >>> corpus_folder("no such corpus") is None
    True
    """
    folder = root or os.environ.get(ENVIRONMENT)
    if not folder:
        return None
    corpus = Path(folder) / name
    return corpus if (corpus / MANIFEST).is_file() else None
