"""Public corpora that `nearfuture data fetch` offers: where they are, and how they are laid out."""

from __future__ import annotations

import gzip
import re
import tomllib
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nearfuture.data.cut import Cut
from nearfuture.data.sources import folder
from nearfuture.data.sources.builder import SourceBuilder
from nearfuture.data.sources.plain_text import decoded, lines, read_text
from nearfuture.error import NearfutureError

_DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


@dataclass(frozen=True, kw_only=True)
class Archive:
    """A file of a public corpus to download.

    Attributes:
        url: where it is.
        name: of the file on disk and on a mirror.
        checksum: "md5:…" or "sha256:…" of its publisher; "" where there is none.
    """

    url: str
    name: str
    checksum: str = ""


@dataclass(frozen=True, kw_only=True)
class PublicCorpus:
    """A public corpus that can be downloaded.

    Attributes:
        name: on the command line, and of its folder.
        about: what it contains.
        hours: of audio, about.
        megabytes: to fetch, about.
        licence: of the recordings.
        rate: samples per second.
        archives: what to fetch.
        read: adds the recordings in the unpacked folder, with texts, speakers and splits.
    """

    name: str
    about: str
    hours: float
    megabytes: int
    licence: str
    rate: int
    archives: tuple[Archive, ...]
    read: Callable[[Path, SourceBuilder], None]


def public_corpus(name: str) -> PublicCorpus:
    """Return the public corpus of this name.

    Raises:
        NearfutureError: for a name that is not in `CORPORA`.

    >>> public_corpus("fsdd").licence
    'CC BY-SA 4.0'
    """
    if name not in CORPORA:
        raise NearfutureError(
            f"there is no corpus {name!r} to fetch: choose one of {', '.join(CORPORA)}",
            code="not_found",
            parameter="name",
        )
    return CORPORA[name]


def _read_fsdd(path: Path, builder: SourceBuilder) -> None:
    """Files `recordings/7_jackson_32.wav`; its authors keep takes 0 to 4 of each for testing."""
    for file in sorted(path.glob("*/recordings/*.wav")):
        parts = re.fullmatch(r"(\d)_([^_]+)_(\d+)", file.stem)
        if parts is None:
            builder.skip("not usable", file, "its name is not digit_speaker_take.wav")
            continue
        digit, speaker, take = parts.groups()
        split = "test" if int(take) < 5 else "train"
        text = _DIGITS[int(digit)]
        builder.add(Cut(name="", path=file, text=text, speaker=speaker, split=split))


def _read_speech_commands(path: Path, builder: SourceBuilder) -> None:
    """A folder for each word; two lists say which files are for validation and testing."""
    splits: dict[str, str] = {}
    for name, split in (("validation_list.txt", "dev"), ("testing_list.txt", "test")):
        if not (path / name).is_file():
            raise NearfutureError(
                f"{path} is not Speech Commands: it has no {name}", code="not_found"
            )
        splits |= {line.strip(): split for _, line in lines(read_text(path / name))}
    for file in sorted(path.glob("[!_.]*/*.wav")):
        split = splits.get(file.relative_to(path).as_posix(), "train")
        speaker = file.stem.partition("_nohash_")[0]
        text = file.parent.name
        builder.add(Cut(name="", path=file, text=text, speaker=speaker, split=split))


def _read_prompts(path: Path, builder: SourceBuilder) -> None:
    """One list of `name: text`; a text that is only a note, e.g. [beep], is no speech."""
    lists, sounds = sorted(path.rglob("core-sounds-en.txt.gz")), sorted(path.rglob("activated.wav"))
    if not lists or not sounds:
        raise NearfutureError(
            f"{path} does not hold Asterisk's prompts and core-sounds-en.txt.gz", code="not_found"
        )
    try:
        text = decoded(gzip.decompress(lists[0].read_bytes()), lists[0])
    except (OSError, EOFError, zlib.error) as error:
        raise NearfutureError(f"cannot read {lists[0]}: {error}", code="damaged") from error
    for number, line in lines(text):
        name, colon, prompt = line.partition(":")
        if line.startswith(";"):
            continue
        if not colon:
            builder.skip("not usable", f"{lists[0]}, line {number}", "it is not 'name: text'")
        elif not re.fullmatch(r"\s*[\[<(][^\])>]*[\])>]\s*", prompt):
            file = sounds[0].parent / f"{name.strip()}.wav"
            builder.add(Cut(name="", path=file, text=prompt, speaker="allison"))


_READERS = {
    "fsdd": _read_fsdd,
    "prompts": _read_prompts,
    "speech-commands": _read_speech_commands,
}
"""The corpora that have a layout of their own; the others have LibriSpeech's."""


def _corpus(name: str, row: dict[str, Any]) -> PublicCorpus:
    archives = tuple(Archive(**archive) for archive in row.pop("archives"))
    reader = _READERS.get(name, folder.read)
    return PublicCorpus(name=name, archives=archives, read=reader, **row)


_CATALOGUE = Path(__file__).with_name("catalogue.toml").read_text(encoding="utf-8")
CORPORA = {name: _corpus(name, row) for name, row in tomllib.loads(_CATALOGUE).items()}
"""All public corpora of `catalogue.toml`, by name."""
