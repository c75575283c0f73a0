"""Recordings as a user names them: files, folders, patterns, standard input."""

import glob
import os
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nearfuture.error import NearfutureError

if TYPE_CHECKING:
    from nearfuture.audio import AudioReader


@dataclass(frozen=True)
class NamedRecording:
    """A recording that is not opened yet; `stem` names the files for it."""

    name: str
    stem: str

    @property
    def called(self) -> str:
        """Its name in messages."""
        return "standard input" if self.name == "-" else self.name

    def reader(self) -> "AudioReader":
        """Open it; a context manager.

        Raises:
            AudioError: as `nearfuture.audio.open_audio`.
        """
        from nearfuture.audio import AudioError, open_audio

        if self.name != "-":
            return open_audio(self.name)
        if sys.stdin is None:
            raise AudioError("standard input is closed: pipe a recording into it")
        if sys.stdin.isatty():
            raise AudioError("standard input is a terminal: pipe a recording into it")
        return open_audio(sys.stdin.buffer)


def named_recordings(names: Sequence[str]) -> tuple[list[NamedRecording], list[str]]:
    """What is meant, each once and in order, and a line for each name that means nothing.

    Args:
        names: files; folders, for the recordings below them; patterns that the shell has left as
            they are; `-`, standard input.

    Raises:
        NearfutureError: a name is a misspelt option rather than a file.
    """
    for name in names:
        if name.startswith("-") and name != "-" and not os.path.lexists(name):
            raise NearfutureError(
                f"there is no option {name}, and no file of that name: --help lists the options",
                code="invalid",
            )
    paths: list[str] = []
    failures: list[str] = []
    for name in names:
        try:
            paths += _meant(name)
        except NearfutureError as error:
            failures.append(str(error))
    paths = list(dict.fromkeys(paths))
    called = stems([Path(path) for path in paths if path != "-"])
    return [
        NamedRecording(path, "stdin" if path == "-" else called[Path(path)]) for path in paths
    ], failures


def stems(paths: Iterable[Path]) -> dict[Path, str]:
    """What to call the files for each recording: its name, and the folders that tell them apart.

    Where only the suffix tells two apart, it stays.
    """
    paths = list(dict.fromkeys(paths))
    if not paths:
        return {}
    root = os.path.commonpath([path.absolute().parent for path in paths])
    inside = {path: path.absolute().relative_to(root) for path in paths}
    plain = {path: "_".join(below.with_suffix("").parts) for path, below in inside.items()}
    shared = Counter(stem.casefold() for stem in plain.values())
    return {
        path: stem if shared[stem.casefold()] == 1 else "_".join(inside[path].parts)
        for path, stem in plain.items()
    }


def _meant(name: str) -> list[str]:
    if name == "-" or os.path.isfile(name):
        return [name]
    if os.path.isdir(name):
        if found := _below(Path(name)):
            return found
        raise NearfutureError(
            f"{name} has no recordings in it (.wav, .flac, .ogg, .mp3 and others)", code="not_found"
        )
    if glob.has_magic(name) and not os.path.lexists(name):
        matching = sorted(glob.glob(name, recursive=True))
        if matching:
            return [one for match in matching for one in _meant(match)]
        raise NearfutureError(f"no file matches {name}", code="not_found")
    return [name]  # a pipe, or whatever opening it says


def _below(folder: Path) -> list[str]:
    """The recordings below a folder, by name; what is hidden is left alone."""
    from nearfuture.data.sources import AUDIO

    found = []
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(one for one in folders if not one.startswith("."))
        found += [
            str(Path(parent) / file)
            for file in sorted(files)
            if not file.startswith(".") and Path(file).suffix.lower() in AUDIO
        ]
    return found
