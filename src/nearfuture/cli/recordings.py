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
    """A recording that is not opened yet; the names of its output files begin with `stem`."""

    name: str
    stem: str

    @property
    def label(self) -> str:
        """The recording's name in messages."""
        return "standard input" if self.name == "-" else self.name

    def reader(self) -> "AudioReader":
        """Open the recording; a context manager.

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
    """The recordings, each once and in order, and an error message for each name without any.

    Args:
        names: files; folders, for the recordings below them; patterns that the shell has not
            expanded; `-`, standard input.

    Raises:
        NearfutureError: a name is a misspelt option rather than a file.
    """
    for name in names:
        if name.startswith("-") and name != "-" and not os.path.lexists(name):
            raise NearfutureError(
                f"there is no option {name}, and no file of that name: --help lists the options",
            )
    paths: list[str] = []
    failures: list[str] = []
    for name in names:
        try:
            paths += _expanded(name)
        except NearfutureError as error:
            failures.append(str(error))
    paths = list(dict.fromkeys(paths))
    by_path = stems([Path(path) for path in paths if path != "-"])
    return [
        NamedRecording(path, "stdin" if path == "-" else by_path[Path(path)]) for path in paths
    ], failures


def stems(paths: Iterable[Path]) -> dict[Path, str]:
    """The stem of each recording's output files: its name, and the folders that distinguish it.

    Where only the suffix distinguishes two recordings, it stays.
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


def _expanded(name: str) -> list[str]:
    if name == "-" or os.path.isfile(name):
        return [name]
    if os.path.isdir(name):
        if below := _below(Path(name)):
            return below
        raise NearfutureError(
            f"{name} has no recordings in it (.wav, .flac, .ogg, .mp3 and others)", code="not_found"
        )
    if glob.has_magic(name) and not os.path.lexists(name):
        matching = sorted(glob.glob(name, recursive=True))
        if matching:
            return [path for match in matching for path in _expanded(match)]
        raise NearfutureError(f"no file matches {name}", code="not_found")
    return [name]  # a pipe, or whatever opening it says


def _below(folder: Path) -> list[str]:
    """The recordings below a folder, by name; hidden files and folders are ignored."""
    from nearfuture.data.sources import AUDIO

    paths = []
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        paths += [
            str(Path(parent) / file)
            for file in sorted(files)
            if not file.startswith(".") and Path(file).suffix.lower() in AUDIO
        ]
    return paths
