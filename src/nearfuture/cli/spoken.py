"""Recordings with what is said in them, as a user names them: files, or a source of many."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nearfuture.cli.recordings import stems
from nearfuture.error import NearfutureError

if TYPE_CHECKING:
    from nearfuture.audio import Audio
    from nearfuture.data.item import Item


@dataclass(frozen=True)
class Spoken:
    """A recording with its text, neither of which is read yet; `stem` names the files for it."""

    name: str
    stem: str
    audio: Callable[[], "Audio"]
    text: Callable[[], str]
    speaker: str = ""


def spoken(
    files: Sequence[Path], text: str | None, data: Path | None
) -> tuple[list[Spoken], list[str]]:
    """What to align, and a line for each that the source already knows to be useless."""
    if (data is None) == (not files):
        raise NearfutureError("name recordings to align, or --data SOURCE with them: one of both")
    if text is not None and len(files) != 1:
        raise NearfutureError(
            f"--text is what is said in one recording, not in "
            f"{len(files) if files else 'those of --data'}: put a text file beside each"
        )
    if data is not None:
        from nearfuture.data.source import read_source

        source = read_source(data)
        called = stems([item.path for item in source.items])
        return [_of_item(item, called) for item in source.items], list(source.problems)
    called = stems(files)
    return [_of_file(path, text, called) for path in files], []


def _of_file(path: Path, text: str | None, called: Mapping[Path, str]) -> Spoken:
    from nearfuture.audio import read

    def said() -> str:
        if text is None:
            return _read_text(path.with_suffix(".txt"))
        given_file = text.lower().endswith(".txt") or os.path.isfile(text)
        return _read_text(Path(text)) if given_file else _normalised(text, "--text")

    return Spoken(name=str(path), stem=called[path], audio=lambda: read(path), text=said)


def _of_item(item: "Item", called: Mapping[Path, str]) -> Spoken:
    from nearfuture.audio.probe import read_part

    whole = item.name == str(item.path)
    return Spoken(
        name=item.name,
        stem=called[item.path] if whole else re.sub(r"[^\w.-]+", "_", Path(item.name).name),
        audio=lambda: read_part(
            item.path, start_s=item.start_s, duration_s=item.duration_s, channel=item.channel
        ),
        text=lambda: item.text,
        speaker=item.speaker,
    )


def _read_text(path: Path) -> str:
    try:
        return _normalised(path.read_text(encoding="utf-8-sig"), str(path))
    except OSError as error:
        raise NearfutureError(
            f"cannot read the text {path}: {(error.strerror or 'error').lower()}; say what is said "
            f"with --text, or put a text file beside the recording"
        ) from error
    except UnicodeDecodeError as error:
        raise NearfutureError(f"{path} is not UTF-8 text: {error.reason}") from error


def _normalised(text: str, name: str) -> str:
    from nearfuture.text import normalise

    said = normalise(text)
    if not said:
        raise NearfutureError(f"{name} has no words: there is nothing to align")
    return said
