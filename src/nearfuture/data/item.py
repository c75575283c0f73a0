"""One row of a source of recordings, what is wrong with others, and how a row's audio is loaded."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from nearfuture.audio import resample
from nearfuture.audio.probe import SHORT_S, Probe, probe, read_part
from nearfuture.error import NearfutureError
from nearfuture.text import normalise

Kind = Literal[
    "no such file",
    "no transcript",
    "empty transcript",
    "text without audio",
    "not UTF-8",
    "Git LFS pointer",
    "given twice",
    "not usable",
    "cannot be read",
]


@dataclass(frozen=True, kw_only=True)
class Item:
    """One recording, or a part of one, with its text; not loaded yet.

    Attributes:
        name: its own in the whole source; the path, with the part behind it where it is one.
        path: the file.
        text: what is said, in the spelling of `nearfuture.text.normalise`.
        start_s: where the part begins in the file, in seconds.
        duration_s: how long the part is, in seconds; None: to the end of the file.
        rate: samples per second of the file, where the source tells.
        channel: the channel that is meant, from 0; None: the mean of all.
        speaker: who speaks; "" where the source does not tell.
        split: "train", "dev" or "test"; "" where the source does not tell.
        fields: whatever else the source tells, by name.
    """

    name: str
    path: Path
    text: str
    start_s: float = 0.0
    duration_s: float | None = None
    rate: int | None = None
    channel: int | None = None
    speaker: str = ""
    split: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What is wrong with one row or file: its `kind`, the `name` and a `reason` in words.

    >>> Fault(kind="empty transcript", name="a.txt", reason="it says nothing").line
    'a.txt: it says nothing'
    """

    kind: Kind
    name: str
    reason: str

    @property
    def line(self) -> str:
        """All of it in one line."""
        return f"{self.name}: {self.reason}"


@dataclass(frozen=True, kw_only=True)
class Source:
    """The rows of a source that can be used, and what is wrong with the others.

    Attributes:
        path: where it was read from.
        items: in the order of the source.
        faults: one for each row or file that is not among the items.
    """

    path: Path
    items: tuple[Item, ...]
    faults: tuple[Fault, ...] = ()

    @property
    def problems(self) -> tuple[str, ...]:
        """A line for each fault."""
        return tuple(fault.line for fault in self.faults)


class Collector:
    """Gathers the rows of a source while it is read: usable ones as items, the others as faults."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._items: list[Item] = []
        self._faults: list[Fault] = []
        self._names: dict[str, int] = {}

    def fault(self, kind: Kind, name: object, reason: str) -> None:
        """Name what cannot be used."""
        self._faults.append(Fault(kind=kind, name=str(name), reason=reason))

    def add(
        self,
        path: Path,
        transcript: str,
        *,
        name: str | None = None,
        start_s: float = 0.0,
        duration_s: float | None = None,
        rate: int | None = None,
        channel: int | None = None,
        speaker: str = "",
        split: str = "",
        fields: Mapping[str, str] | None = None,
    ) -> None:
        """A row; it becomes an item if its file is there and its transcript says something."""
        part = f" from {start_s:.3f} s" if start_s else ""
        part += f", channel {channel}" if channel else ""
        name = f"{path}{part}" if name is None else name
        text = normalise(transcript)
        path = as_on_disk(path)
        if says_nothing(transcript):
            self.fault(
                "empty transcript",
                name,
                f"its transcript is {transcript.strip()!r}, which programs write where there is "
                f"none; if it is what is said, write it in other letters",
            )
        elif not text:
            wrote = f" but {transcript.strip()!r}" if transcript.strip() else ""
            self.fault("empty transcript", name, f"its transcript has no words{wrote}")
        elif not path.is_file():
            what = "is a folder" if path.is_dir() else "is not there"
            where = "it" if str(path) in name else str(path)
            self.fault("no such file", name, f"{where} {what}")
        else:
            count = self._names[name] = self._names.get(name, 0) + 1
            self._items.append(
                Item(
                    name=name if count == 1 else f"{name} ({count})",
                    path=path,
                    text=text,
                    start_s=start_s,
                    duration_s=duration_s,
                    rate=rate,
                    channel=channel,
                    speaker=speaker,
                    split=split_named(split),
                    fields=fields or {},
                )
            )

    def source(self) -> Source:
        """All that was gathered."""
        return Source(path=self._path, items=tuple(self._items), faults=tuple(self._faults))


_NOTHING = {"nan", "NaN", "NAN", "null", "NULL", "None", "N/A", "n/a", "#N/A", "NA", "<NA>"}
_WORDS = {"null"}  # German for zero


def says_nothing(cell: str, *, spoken: bool = True) -> bool:
    """Whether a cell holds what programs write where there is nothing.

    Args:
        cell: of a list.
        spoken: whether it is a transcript, which may be a word that is written the same.

    >>> [says_nothing(cell) for cell in ("nan", "NULL", "none", "null", "N/A", "")]
    [True, True, False, False, True, False]
    """
    cell = cell.strip()
    return cell in _NOTHING and not (spoken and cell in _WORDS)


def as_on_disk(path: Path) -> Path:
    """The path in the normal form of Unicode in which the file is there; itself if in none.

    A list that was written on a Mac, or a file that was copied from one, may spell é as two
    characters.
    """
    if not str(path).isascii() and not path.exists():
        for form in ("NFC", "NFD"):
            other = Path(unicodedata.normalize(form, str(path)))
            if other.exists():
                return other
    return path


SPLITS = ("train", "dev", "test")
"""To train on, to watch meanwhile, to judge by at the end; rows of others are used by nobody."""

_SPLITS = {"train": "train", "training": "train", "dev": "dev", "test": "test", "testing": "test"}
_SPLITS |= {"valid": "dev", "validation": "dev", "val": "dev", "devel": "dev", "eval": "test"}


def split_named(name: str) -> str:
    """The split that a name means: one of "train", "dev", "test", or the name itself.

    >>> [split_named(name) for name in ("train-clean-100", "Validation", "test_other", "extra")]
    ['train', 'dev', 'test', 'extra']
    """
    first = name.lower().replace("_", "-").split("-")[0]
    return _SPLITS.get(first, name)


def load_item(item: Item, rate: int) -> NDArray[np.float32]:
    """The samples (n,) of an item at `rate`: its part of the file, its channel or their mean.

    Raises:
        NearfutureError: naming the file, where it cannot be read, was cut off (where the kind of
            file can tell, see `nearfuture.audio.truncation`), is shorter than its part, or holds
            no samples.
    """
    audio = read_part(
        item.path, start_s=item.start_s, duration_s=item.duration_s, channel=item.channel
    )
    if audio.samples.size == 0:
        raise NearfutureError(f"{item.name}: it holds no samples")
    return resample(audio.samples, audio.rate, rate)


def probed(item: Item, found: Probe | None = None) -> Item:
    """The item with its rate and its true duration, from the header of its file.

    Args:
        item: of any source.
        found: what is known of its file already.

    Raises:
        NearfutureError: naming the file, where it cannot be read or was cut off, or where the part
            is not in it.
    """
    found = probe(item.path) if found is None else found
    left_s = found.seconds - item.start_s
    wanted_s = left_s if item.duration_s is None else item.duration_s
    if found.frames == 0:
        raise NearfutureError(f"{item.name}: it holds no samples")
    if wanted_s <= 0 or wanted_s > left_s + SHORT_S:
        raise NearfutureError(
            f"{item.name}: {item.path} lasts {found.seconds:.3f} s, so that there are no "
            f"{wanted_s:.3f} s from {item.start_s:.3f} s on"
        )
    if item.channel is not None and item.channel >= found.channels:
        raise NearfutureError(
            f"{item.name}: {item.path} has {found.channels} channels, numbered from 0: there is "
            f"no channel {item.channel}"
        )
    return replace(item, rate=found.rate, duration_s=min(wanted_s, left_s))


def as_fields(pairs: Iterable[tuple[str, object]]) -> dict[str, str]:
    """The `fields` of an item, from named values of any kind; those that say nothing are left out.

    >>> as_fields([("age", 7), ("gender", None)])
    {'age': '7'}
    """
    return {str(key): str(value) for key, value in pairs if value not in (None, "")}
