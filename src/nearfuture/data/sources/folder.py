"""A folder of recordings with a text file beside each, or LibriSpeech's one for each folder."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path

from nearfuture.data.cut import SPLITS, Cut, split_named
from nearfuture.data.sources.builder import SourceBuilder
from nearfuture.data.sources.plain_text import LinesById, TextError, read_text

_READABLE = "wav flac ogg opus oga mp3 aiff aif aifc au w64 rf64 caf"
_MEDIA = "m4a mp4 mov 3gp mkv webm aac wma amr"  # with the extra of that name; named without
AUDIO = frozenset(f".{ending}" for ending in f"{_READABLE} {_MEDIA} sph".split())
_TRANSCRIPTS = ".trans.txt"
_NO_TRANSCRIPTS = {"readme", "license", "licence", "copying", "changelog", "notes", "speakers"}
_LIBRISPEECH = re.compile(r"(\d+)-\d+-\d+")


def read(path: Path, builder: SourceBuilder, *, speaker_folders: bool = False) -> None:
    """Add every recording below a folder; hidden files are ignored, links are followed.

    Args:
        path: the folder.
        builder: gathers the recordings.
        speaker_folders: whether the first folder that is no split names who speaks.
    """
    for folder, names in _folders(path, builder):
        _read_folder(path, folder, names, builder, speaker_folders)


def _read_folder(
    root: Path, folder: Path, names: list[str], builder: SourceBuilder, speaker_folders: bool
) -> None:
    inside = folder.relative_to(root).parts
    split = next((split for split in map(split_named, inside) if split in SPLITS), "")
    speaker = next((part for part in inside if split_named(part) not in SPLITS), "")
    speaker = speaker if speaker_folders else ""
    audio = [name for name in names if Path(name).suffix.lower() in AUDIO]
    texts = {name for name in names if name.lower().endswith(".txt")}
    listed, lists = _transcripts(folder, texts, builder)
    by_form = {unicodedata.normalize("NFC", name): name for name in texts}
    used = set()
    for name in audio:
        stem = unicodedata.normalize("NFC", Path(name).stem)
        if stem in listed.contradicted:
            continue  # named already
        if stem in listed.values:
            reader = _LIBRISPEECH.fullmatch(stem)
            reads = speaker or (reader.group(1) if reader else "")
            text = listed.values.pop(stem)
            builder.add(Cut(name="", path=folder / name, text=text, speaker=reads, split=split))
            continue
        spellings = (f"{Path(name).stem}.txt", f"{stem}.txt", f"{stem}.TXT")
        beside = next((t for t in spellings if t in texts), by_form.get(f"{stem}.txt"))
        if beside is None:
            where = f"{stem}.txt beside the recording"
            where += f" and no line for it in {lists[0]}" if lists else ""
            builder.skip("no transcript", folder / name, f"there is no {where}")
            continue
        used.add(beside)
        try:
            text = read_text(folder / beside)
        except TextError as error:
            builder.skip(error.skip_code, folder / beside, error.reason)
            continue
        builder.add(Cut(name="", path=folder / name, text=text, speaker=speaker, split=split))
    for stem in listed.values:
        reason = f"{lists[0]} has a text for it: no recording"
        builder.skip("text without audio", folder / stem, reason)
    if audio:
        _skip_unused(folder, texts - used, builder)


def _folders(path: Path, builder: SourceBuilder) -> Iterator[tuple[Path, list[str]]]:
    """Every folder and its files; where a link leads back to a folder, it is read once."""
    seen = set()

    def unreadable(error: OSError) -> None:
        reason = (error.strerror or type(error).__name__).lower()
        builder.skip("cannot be read", error.filename, f"the folder cannot be read: {reason}")

    for folder, inside, names in os.walk(path, onerror=unreadable, followlinks=True):
        real = os.path.realpath(folder)
        if real in seen:
            inside.clear()
            continue
        seen.add(real)
        inside[:] = sorted(name for name in inside if not name.startswith("."))
        yield Path(folder), sorted(name for name in names if not name.startswith("."))


def _transcripts(
    folder: Path, texts: set[str], builder: SourceBuilder
) -> tuple[LinesById, list[str]]:
    """The lines of LibriSpeech's files (stem of a recording, text), and the files' names."""
    listed = LinesById()
    lists = sorted(name for name in texts if name.lower().endswith(_TRANSCRIPTS))
    for name in lists:
        try:
            listed.read(folder / name, builder, suffix=f" of {folder}")
        except TextError as error:
            builder.skip(error.skip_code, folder / name, error.reason)
    return listed, lists


def _skip_unused(folder: Path, texts: set[str], builder: SourceBuilder) -> None:
    for name in sorted(texts):
        stem = Path(name).stem
        if not name.lower().endswith(_TRANSCRIPTS) and stem.lower() not in _NO_TRANSCRIPTS:
            reason = f"there is no recording {stem} beside it"
            builder.skip("text without audio", folder / name, reason)
