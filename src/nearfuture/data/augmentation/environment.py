"""Noises and rooms to augment recordings with, from the corpora `noise` and `rir`."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearfuture.data.corpora.location import MANIFEST, corpus_folder
from nearfuture.data.cut import Cut
from nearfuture.error import NearfutureError
from nearfuture.text import plural

Samples = NDArray[np.float32]


@dataclass(frozen=True, kw_only=True, eq=False)
class AcousticEnvironment:
    """Recordings of noise, and impulse responses of rooms, at one rate.

    Attributes:
        noises: (n,) each, at any level; without any, all noise is synthetic and faint.
        rooms: (n,) each; without any, rooms are simulated.
    """

    noises: Sequence[NDArray[Any]] = ()
    rooms: Sequence[Samples] = ()

    @classmethod
    def load(cls, rate: int) -> AcousticEnvironment:
        """The corpora `noise` and `rir` at `rate`, so far as they exist.

        A noise fills 16 bits: its level means nothing, since it is mixed in at a stated ratio.

        Raises:
            NearfutureError: where a recording cannot be read.
        """
        noises = [
            np.round(samples * (32767 / max(float(np.abs(samples).max()), 1e-9))).astype(np.int16)
            for samples in _loaded("noise", rate)
        ]
        return cls(noises=noises, rooms=_loaded("rir", rate))


def corpus_contents(name: str) -> str:
    """Return the number of recordings in one of these corpora, and the start of their digest.

    Raises:
        NearfutureError: where a recording cannot be read.

    >>> corpus_contents("no such corpus")
    'none'
    """
    paths = _paths(name)
    digest = hashlib.sha256()
    for path in paths:
        try:
            digest.update(hashlib.sha256(path.read_bytes()).digest())
        except OSError as error:
            raise NearfutureError(
                f"cannot read {path}: {error.strerror}", code="not_found"
            ) from error
    return f"{plural(len(paths), 'recording')} ({digest.hexdigest()[:12]})" if paths else "none"


def _paths(name: str) -> list[Path]:
    folder = corpus_folder(name)
    if folder is None:
        return []
    lines = (folder / MANIFEST).read_text(encoding="utf-8").split("\n")
    rows = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    return [folder / row["path"] for row in rows]


def _loaded(name: str, rate: int) -> list[Samples]:
    # Of several microphones the first: their mean would be a room that nobody stood in.
    cuts = [Cut(name=str(path), path=path, text="", channel=0) for path in _paths(name)]
    return [samples for cut in cuts if (samples := cut.load(rate).samples).any()]
