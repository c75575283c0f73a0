"""A folder of recordings with a text file beside each, or LibriSpeech's one for each folder."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from nearfuture.data.formats.plain_text import NotUTF8, lines, read_text
from nearfuture.data.item import Collector, split_named

__all__ = ["AUDIO", "read"]

_READABLE = "wav flac ogg opus oga mp3 aiff aif aifc au w64 rf64 caf"
_CONVERTIBLE = "sph m4a mp4 aac webm wma amr"  # to be named, not passed over
AUDIO = frozenset(f".{ending}" for ending in f"{_READABLE} {_CONVERTIBLE}".split())
_TRANSCRIPTS = ".trans.txt"
_NO_TRANSCRIPTS = {"readme", "license", "licence", "copying", "changelog", "notes", "speakers"}
_LIBRISPEECH = re.compile(r"(\d+)-\d+-\d+")


def read(path: Path, found: Collector) -> None:
    """Every recording below a folder; hidden files are left alone."""
    for folder, names in _folders(path):
        inside = map(split_named, folder.relative_to(path).parts)
        split = next((one for one in inside if one in ("train", "dev", "test")), "")
        audio = [name for name in names if Path(name).suffix.lower() in AUDIO]
        texts = {name for name in names if name.lower().endswith(".txt")}
        said = _transcripts(folder, texts, found)
        used = set()
        for name in audio:
            stem = Path(name).stem
            if stem in said:
                speaker = _LIBRISPEECH.fullmatch(stem)
                found.add(
                    folder / name,
                    said[stem],
                    speaker=speaker.group(1) if speaker else "",
                    split=split,
                )
                continue
            beside = next((t for t in (f"{stem}.txt", f"{stem}.TXT") if t in texts), None)
            if beside is None:
                found.fault(
                    "no transcript", folder / name, f"there is no {stem}.txt beside the recording"
                )
                continue
            used.add(beside)
            try:
                transcript = read_text(folder / beside)
            except NotUTF8 as error:
                found.fault("not UTF-8", folder / beside, _without(error, folder / beside))
                continue
            found.add(folder / name, transcript, split=split)
        if audio:
            _unheard(folder, texts - used, found)


def _folders(path: Path) -> Iterator[tuple[Path, list[str]]]:
    for folder, inside, names in os.walk(path):
        inside[:] = sorted(name for name in inside if not name.startswith("."))
        yield Path(folder), sorted(name for name in names if not name.startswith("."))


def _transcripts(folder: Path, texts: set[str], found: Collector) -> dict[str, str]:
    """What LibriSpeech's files say: each line the stem of a recording, a space, its text."""
    said = {}
    for name in sorted(texts):
        if name.lower().endswith(_TRANSCRIPTS):
            try:
                rows = lines(read_text(folder / name))
            except NotUTF8 as error:
                found.fault("not UTF-8", folder / name, _without(error, folder / name))
                continue
            for _, line in rows:
                stem, _, transcript = line.strip().partition(" ")
                said[stem] = transcript
    return said


def _unheard(folder: Path, texts: set[str], found: Collector) -> None:
    for name in sorted(texts):
        stem = Path(name).stem
        if not name.lower().endswith(_TRANSCRIPTS) and stem.lower() not in _NO_TRANSCRIPTS:
            found.fault(
                "text without audio", folder / name, f"there is no recording {stem} beside it"
            )


def _without(error: NotUTF8, path: Path) -> str:
    return str(error).removeprefix(f"{path} ")
