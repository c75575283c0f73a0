"""Recordings with their reference texts, as the command line names them: files, or a data set."""

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
    from nearfuture.data import Cut


@dataclass(frozen=True)
class ReferencedRecording:
    """A recording and its reference text, neither of which is read yet.

    Attributes:
        name: The name of the recording in messages.
        stem: The stem of the files for it.
        audio: Read the recording.
        text: Read the text, in the characters of a vocabulary.
        speaker: The speaker; empty where unknown.
    """

    name: str
    stem: str
    audio: Callable[[], "Audio"]
    text: Callable[[], str]
    speaker: str = ""


def referenced_recordings(
    files: Sequence[Path], text: str | None, data: Path | None
) -> tuple[list[ReferencedRecording], list[str]]:
    """List the recordings to align, and why others of the data set cannot be used.

    Args:
        files: Recordings, each with a text file beside it.
        text: The text of the one recording instead, or the path of its text file.
        data: A data set instead.
    """
    if (data is None) == (not files):
        raise NearfutureError(
            "name recordings to align, or `data` SOURCE with them: one of both", code="conflict"
        )
    if text is not None and len(files) != 1:
        raise NearfutureError(
            f"`text` is what is said in one recording, not in "
            f"{len(files) if files else 'those of `data`'}: put a text file beside each",
            code="conflict",
            parameter="text",
        )
    if data is not None:
        from nearfuture.data import read_source

        source = read_source(data)
        by_path = stems([cut.path for cut in source.cuts])
        return [_of_cut(cut, by_path) for cut in source.cuts], list(source.problems)
    by_path = stems(files)
    return [_of_file(path, text, by_path) for path in files], []


def _of_file(path: Path, text: str | None, by_path: Mapping[Path, str]) -> ReferencedRecording:
    from nearfuture.audio import read

    def reference() -> str:
        if text is None:
            return _read_text(path.with_suffix(".txt"))
        is_file = text.lower().endswith(".txt") or os.path.isfile(text)
        return _read_text(Path(text)) if is_file else _normalised(text, "`text`")

    return ReferencedRecording(
        name=str(path), stem=by_path[path], audio=lambda: read(path), text=reference
    )


def _of_cut(cut: "Cut", by_path: Mapping[Path, str]) -> ReferencedRecording:
    whole = cut.name == str(cut.path)
    return ReferencedRecording(
        name=cut.name,
        stem=by_path[cut.path] if whole else re.sub(r"[^\w.-]+", "_", Path(cut.name).name),
        audio=cut.read,
        text=lambda: cut.text,
        speaker=cut.speaker,
    )


def _read_text(path: Path) -> str:
    try:
        return _normalised(path.read_text(encoding="utf-8-sig"), str(path))
    except OSError as error:
        raise NearfutureError(
            f"cannot read the text {path}: {(error.strerror or 'error').lower()}; say what is said "
            f"with `text`, or put a text file beside the recording",
            code="not_found",
        ) from error
    except UnicodeDecodeError as error:
        raise NearfutureError(f"{path} is not UTF-8 text: {error.reason}") from error


def _normalised(text: str, name: str) -> str:
    from nearfuture.text import normalise

    normalised = normalise(text)
    if not normalised:
        raise NearfutureError(f"{name} has no words: there is nothing to align")
    return normalised
