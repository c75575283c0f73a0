"""Recordings with their reference texts, as the command line names them: files, or a data set."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nearfuture.cli.recordings import stems
from nearfuture.error import NearfutureError

if TYPE_CHECKING:
    from nearfuture.data import Cut


@dataclass(frozen=True)
class Reference:
    """A recording and its reference text, neither of which is read yet.

    Attributes:
        cut: The recording; its text is empty where it is beside the recording.
        stem: The stem of the files for it.
        text_option: The text on the command line instead, or the path of a text file.
    """

    cut: "Cut"
    stem: str
    text_option: str | None = None

    def text(self) -> str:
        """Read the text, normalised.

        Raises:
            NearfutureError: where it cannot be read, or has no words.
        """
        if self.cut.text:
            return self.cut.text
        if self.text_option is None:
            return _read_text(self.cut.path.with_suffix(".txt"))
        if self.text_option.lower().endswith(".txt") or os.path.isfile(self.text_option):
            return _read_text(Path(self.text_option))
        return _normalised(self.text_option, "`text`")


def references(
    files: Sequence[Path], text: str | None, data: Path | None
) -> tuple[list[Reference], list[str]]:
    """List the recordings to align, and why others of the data set cannot be used.

    Args:
        files: Recordings, each with a text file beside it.
        text: The text of the one recording instead, or the path of its text file.
        data: A data set instead.
    """
    from nearfuture.data import Cut, read_source

    if (data is None) == (not files):
        raise NearfutureError(
            "name recordings to align, or a source of them with `data`: either one, not both",
            code="conflict",
        )
    if text is not None and len(files) != 1:
        raise NearfutureError(
            f"`text` is the transcript of one recording, not of "
            f"{len(files) if files else 'those of `data`'}: put a text file beside each",
            code="conflict",
            parameter="text",
        )
    if data is None:
        by_path = stems(files)
        cuts = [Cut(name=str(path), path=path, text="") for path in files]
        return [Reference(cut, by_path[cut.path], text) for cut in cuts], []
    source = read_source(data)
    by_path = stems(cut.path for cut in source.cuts)
    listed = []
    for cut in source.cuts:
        is_part = cut.name != str(cut.path)
        part = re.sub(r"[^\w.-]+", "_", Path(cut.name).name)
        listed.append(Reference(cut, part if is_part else by_path[cut.path]))
    return listed, list(source.problems)


def _read_text(path: Path) -> str:
    try:
        return _normalised(path.read_text(encoding="utf-8-sig"), str(path))
    except OSError as error:
        raise NearfutureError(
            f"cannot read the text {path}: {(error.strerror or 'error').lower()}; give the "
            f"transcript with `text`, or put a text file beside the recording",
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
