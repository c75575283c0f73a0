"""A folder of recordings with a text file beside each, or LibriSpeech's one for each folder."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path

from nearfuture.data.formats.plain_text import NotText, Said, read_text
from nearfuture.data.item import SPLITS, Collector, split_named

_READABLE = "wav flac ogg opus oga mp3 aiff aif aifc au w64 rf64 caf"
_MEDIA = "m4a mp4 mov 3gp mkv webm aac wma amr"  # with the extra of that name; named without
AUDIO = frozenset(f".{ending}" for ending in f"{_READABLE} {_MEDIA} sph".split())
_TRANSCRIPTS = ".trans.txt"
_NO_TRANSCRIPTS = {"readme", "license", "licence", "copying", "changelog", "notes", "speakers"}
_LIBRISPEECH = re.compile(r"(\d+)-\d+-\d+")


def read(path: Path, found: Collector, *, speaker_folders: bool = False) -> None:
    """Every recording below a folder; hidden files are left alone, links are followed.

    Args:
        path: the folder.
        found: gathers what is there.
        speaker_folders: whether the first folder that is no split names who speaks.
    """
    for folder, names in _folders(path, found):
        inside = folder.relative_to(path).parts
        splits = [one for one in map(split_named, inside) if one in SPLITS]
        people = [one for one in inside if split_named(one) not in SPLITS]
        split = splits[0] if splits else ""
        speaker = people[0] if speaker_folders and people else ""
        audio = [name for name in names if Path(name).suffix.lower() in AUDIO]
        texts = {name for name in names if name.lower().endswith(".txt")}
        said, lists = _transcripts(folder, texts, found)
        by_form = {unicodedata.normalize("NFC", name): name for name in texts}
        used = set()
        for name in audio:
            stem = unicodedata.normalize("NFC", Path(name).stem)
            if stem in said.contradicted:
                continue  # named already
            if stem in said.by_id:
                reader = _LIBRISPEECH.fullmatch(stem)
                found.add(
                    folder / name,
                    said.by_id.pop(stem),
                    speaker=speaker or (reader.group(1) if reader else ""),
                    split=split,
                )
                continue
            own = (f"{Path(name).stem}.txt", f"{stem}.txt", f"{stem}.TXT")
            beside = next((t for t in own if t in texts), by_form.get(f"{stem}.txt"))
            if beside is None:
                where = f"{stem}.txt beside the recording"
                where += f" and no line for it in {lists[0]}" if lists else ""
                found.fault("no transcript", folder / name, f"there is no {where}")
                continue
            used.add(beside)
            try:
                transcript = read_text(folder / beside)
            except NotText as error:
                found.fault(error.kind, folder / beside, _without(error, folder / beside))
                continue
            found.add(folder / name, transcript, speaker=speaker, split=split)
        for stem in said.by_id:
            found.fault(
                "text without audio", folder / stem, f"{lists[0]} has a text for it: no recording"
            )
        if audio:
            _unheard(folder, texts - used, found)


def _folders(path: Path, found: Collector) -> Iterator[tuple[Path, list[str]]]:
    """Every folder and its files; what a link leads back to is read once."""
    seen = set()

    def unreadable(error: OSError) -> None:
        reason = (error.strerror or type(error).__name__).lower()
        found.fault("cannot be read", error.filename, f"the folder cannot be read: {reason}")

    for folder, inside, names in os.walk(path, onerror=unreadable, followlinks=True):
        real = os.path.realpath(folder)
        if real in seen:
            inside.clear()
            continue
        seen.add(real)
        inside[:] = sorted(name for name in inside if not name.startswith("."))
        yield Path(folder), sorted(name for name in names if not name.startswith("."))


def _transcripts(folder: Path, texts: set[str], found: Collector) -> tuple[Said, list[str]]:
    """What LibriSpeech's files say (a line: the stem of a recording, its text), and their names."""
    said = Said()
    lists = sorted(name for name in texts if name.lower().endswith(_TRANSCRIPTS))
    for name in lists:
        try:
            said.read(folder / name, found, of=f" of {folder}")
        except NotText as error:
            found.fault(error.kind, folder / name, _without(error, folder / name))
    return said, lists


def _unheard(folder: Path, texts: set[str], found: Collector) -> None:
    for name in sorted(texts):
        stem = Path(name).stem
        if not name.lower().endswith(_TRANSCRIPTS) and stem.lower() not in _NO_TRANSCRIPTS:
            found.fault(
                "text without audio", folder / name, f"there is no recording {stem} beside it"
            )


def _without(error: NotText, path: Path) -> str:
    return str(error).removeprefix(f"{path} ")
