"""What a source of recordings holds, and how its rows are gathered while it is read."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from nearfuture.data.cut import Cut, SkipCode, Skipped, split_named
from nearfuture.text import normalise


@dataclass(frozen=True, kw_only=True)
class Source:
    """The cuts of a source, and the rows of it that cannot be used.

    Attributes:
        path: where it was read from.
        cuts: in the order of the source.
        skipped: each row or file that is no cut, with the reason.
    """

    path: Path
    cuts: tuple[Cut, ...]
    skipped: tuple[Skipped, ...] = ()

    @property
    def problems(self) -> tuple[str, ...]:
        """A line for each row or file that was skipped."""
        return tuple(map(str, self.skipped))


class SourceBuilder:
    """Gathers the rows of a source while it is read: as cuts, or as skipped.

    Args:
        path: of the source.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._cuts: list[Cut] = []
        self._skipped: list[Skipped] = []
        self._names: dict[str, int] = {}

    def skip(self, code: SkipCode, name: object, reason: str) -> None:
        """Name a row or a file that cannot be used."""
        self._skipped.append(Skipped(str(name), code, reason))

    def add(self, cut: Cut, *, row: str = "") -> None:
        """Keep a row if its file exists and its transcript has words; skip it otherwise.

        Args:
            cut: as the source writes it: its text and its split are normalised here. A cut without
                a name is called by its path and its part; of equal names the later are numbered.
            row: where the source has it, to name it if its times are wrong.
        """
        start_s, duration_s = cut.start_s, cut.duration_s
        if not (0 <= start_s < math.inf and (duration_s is None or 0 < duration_s < math.inf)):
            return self.skip(
                "not usable",
                row or cut.name,
                f"no part starts at {start_s} s and lasts {duration_s} s",
            )
        part = f" from {cut.start_s:.3f} s" if cut.start_s else ""
        part += f", channel {cut.channel}" if cut.channel else ""
        name = cut.name or f"{cut.path}{part}"
        text = normalise(cut.text)
        path = as_on_disk(cut.path)
        written = cut.text.strip()
        if is_null(cut.text):
            self.skip(
                "empty transcript",
                name,
                f"its transcript is {written!r}, which programs write where there is none; if it "
                f"is what is said, write it in other letters",
            )
        elif not text:
            but = f" but {written!r}" if written else ""
            self.skip("empty transcript", name, f"its transcript has no words{but}")
        elif not path.is_file():
            problem = "is a folder" if path.is_dir() else "is not there"
            subject = "it" if str(path) in name else str(path)
            self.skip("no such file", name, f"{subject} {problem}")
        else:
            count = self._names[name] = self._names.get(name, 0) + 1
            name = name if count == 1 else f"{name} ({count})"
            split = split_named(cut.split)
            self._cuts.append(replace(cut, name=name, path=path, text=text, split=split))
        return None

    def build(self) -> Source:
        """The source that was read."""
        return Source(path=self._path, cuts=tuple(self._cuts), skipped=tuple(self._skipped))


_NULLS = {"nan", "NaN", "NAN", "null", "NULL", "None", "N/A", "n/a", "#N/A", "NA", "<NA>"}
_WORDS = {"null"}  # German for zero


def is_null(cell: str, *, transcript: bool = True) -> bool:
    """Whether a cell holds what programs write where there is nothing.

    Args:
        cell: of a table.
        transcript: whether it is a transcript, which may be a word that is written the same.

    >>> [is_null(cell) for cell in ("nan", "NULL", "none", "null", "N/A", "")]
    [True, True, False, False, True, False]
    """
    cell = cell.strip()
    return cell in _NULLS and not (transcript and cell in _WORDS)


def as_on_disk(path: Path) -> Path:
    """The path in the Unicode normal form in which the file exists; itself if it exists in none.

    A list that was written on a Mac, or a file that was copied from one, may spell é as two
    characters.
    """
    if not str(path).isascii() and not path.exists():
        for form in ("NFC", "NFD"):
            other = Path(unicodedata.normalize(form, str(path)))
            if other.exists():
                return other
    return path


def as_fields(pairs: Iterable[tuple[str, object]]) -> dict[str, str]:
    """The `fields` of a cut, from named values of any kind; empty ones are dropped.

    >>> as_fields([("age", 7), ("gender", None)])
    {'age': '7'}
    """
    return {str(key): str(value) for key, value in pairs if value not in (None, "")}
