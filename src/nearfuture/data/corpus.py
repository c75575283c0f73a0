"""Recordings on disk: where corpora lie, and the manifest that lists them."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nearfuture.audio import read, resample
from nearfuture.error import NearfutureError

ENVIRONMENT = "NEARFUTURE_CORPORA"
DEFAULT = Path("../shared/data")


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One row of a manifest.

    Attributes:
        path: the recording.
        transcript: what is said in it.
        fields: the other columns by name, e.g. `speaker` and `split`.
    """

    path: Path
    transcript: str
    fields: Mapping[str, str]


@dataclass(frozen=True, kw_only=True, eq=False)
class Utterance:
    """A recording in memory: mono float32 `samples` (n,) at the model's rate, and its text.

    `speaker` is "" where nobody told.
    """

    name: str
    samples: NDArray[np.float32]
    text: str
    speaker: str = ""


def corpus_folder(name: str) -> Path | None:
    """The folder of a corpus under `NEARFUTURE_CORPORA` (default `../shared/data`), if it is there.

    >>> corpus_folder("no such corpus") is None
    True
    """
    folder = Path(os.environ.get(ENVIRONMENT) or DEFAULT) / name
    return folder if (folder / "manifest.tsv").is_file() else None


def read_manifest(path: Path) -> list[Entry]:
    """The rows of a tab-separated manifest with a header; paths are relative to its folder.

    Args:
        path: a file with at least the columns `path` and `transcript`.

    Raises:
        NearfutureError: where the file cannot be read, lacks a column, or has a row without them.
    """
    return list(_rows(path))


def _rows(path: Path) -> Iterator[Entry]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise NearfutureError(f"cannot read the manifest {path}: {error}") from error
    # Not `splitlines`: it also breaks at characters that may stand in a transcript.
    rows = csv.DictReader(text.split("\n"), delimiter="\t", quoting=csv.QUOTE_NONE)
    columns = rows.fieldnames or []
    if missing := {"path", "transcript"} - set(columns):
        raise NearfutureError(
            f"{path} has the columns {', '.join(columns) or '(none)'}; it also needs "
            f"{' and '.join(sorted(missing))}, tab-separated, named in its first line"
        )
    for row in rows:
        if not row["path"] or row["transcript"] is None:
            raise NearfutureError(
                f"{path}, line {rows.line_num}: a row needs a path and a transcript"
            )
        fields = {key: value or "" for key, value in row.items() if isinstance(key, str)}
        yield Entry(
            path=path.parent / fields.pop("path"),
            transcript=fields.pop("transcript"),
            fields=fields,
        )


def load_audio(path: Path, rate: int) -> NDArray[np.float32]:
    """A recording as mono samples (n,) at `rate`.

    Raises:
        AudioError: where the file is no audio that can be read.
    """
    audio = read(path)
    return resample(audio.samples, audio.rate, rate)
