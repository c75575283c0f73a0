"""Public corpora that `nearfuture data fetch` knows: where they are, and how they are laid out."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from nearfuture.data.cut import Cut
from nearfuture.data.sources import folder
from nearfuture.data.sources.builder import SourceBuilder
from nearfuture.data.sources.plain_text import decoded, lines, read_text
from nearfuture.error import NearfutureError

_DEBIAN = "http://deb.debian.org/debian/pool/main/a/asterisk-core-sounds"
_DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


@dataclass(frozen=True, kw_only=True)
class Archive:
    """A file to fetch.

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
    """A corpus that anyone may fetch.

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
    """The corpus of a name.

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


def _librispeech(part: str, hours: float, megabytes: int, md5: str) -> PublicCorpus:
    return PublicCorpus(
        name=f"librispeech-{part}",
        about="English audiobooks",
        hours=hours,
        megabytes=megabytes,
        licence="CC BY 4.0",
        rate=16000,
        archives=(
            Archive(
                url=f"https://www.openslr.org/resources/12/{part}.tar.gz",
                name=f"{part}.tar.gz",
                checksum=f"md5:{md5}",
            ),
        ),
        read=folder.read,
    )


_ALL = (
    PublicCorpus(
        name="fsdd",
        about="Free Spoken Digit Dataset: English digits, 6 speakers",
        hours=0.36,
        megabytes=20,
        licence="CC BY-SA 4.0",
        rate=8000,
        archives=(
            # GitHub makes this archive when asked, and publishes no checksum of it.
            Archive(
                url="https://github.com/Jakobovski/free-spoken-digit-dataset/archive/refs/tags/"
                "v1.0.10.tar.gz",
                name="free-spoken-digit-dataset-1.0.10.tar.gz",
            ),
        ),
        read=_read_fsdd,
    ),
    PublicCorpus(
        name="prompts",
        about="English telephone prompts of Asterisk, one speaker",
        hours=0.42,
        megabytes=18,
        licence="CC BY-SA 3.0",
        rate=8000,
        archives=(
            Archive(
                url=f"{_DEBIAN}/asterisk-core-sounds-en-wav_1.6.1-1_all.deb",
                name="asterisk-core-sounds-en-wav_1.6.1-1_all.deb",
                checksum="sha256:2be3ea287d83299d143815fa804f11179a75b7affd4a758b98b55f5afc18a35d",
            ),
            Archive(  # the texts
                url=f"{_DEBIAN}/asterisk-core-sounds-en_1.6.1-1_all.deb",
                name="asterisk-core-sounds-en_1.6.1-1_all.deb",
                checksum="sha256:973e797d28e37fa6ca3c0a9d6fa717e77cf1268ae916bf09fd3503113cdffa50",
            ),
        ),
        read=_read_prompts,
    ),
    PublicCorpus(
        name="speech-commands",
        about="Speech Commands 0.02: 35 English words, 2,618 speakers",
        hours=29,
        megabytes=2429,
        licence="CC BY 4.0",
        rate=16000,
        archives=(
            Archive(
                url="https://storage.googleapis.com/download.tensorflow.org/data/"
                "speech_commands_v0.02.tar.gz",
                name="speech_commands_v0.02.tar.gz",
                checksum="sha256:af14739ee7dc311471de98f5f9d2c9191b18aedfe957f4a6ff791c709868ff58",
            ),
        ),
        read=_read_speech_commands,
    ),
    PublicCorpus(
        name="mini-librispeech",
        about="English audiobooks, a small part for training and validation",
        hours=7,
        megabytes=458,
        licence="CC BY 4.0",
        rate=16000,
        archives=(
            Archive(
                url="https://www.openslr.org/resources/31/train-clean-5.tar.gz",
                name="train-clean-5.tar.gz",
                checksum="md5:5df7d4e78065366204ca6845bb08f490",
            ),
            Archive(
                url="https://www.openslr.org/resources/31/dev-clean-2.tar.gz",
                name="dev-clean-2.tar.gz",
                checksum="md5:6d7ab67ac6a1d2c993d050e16d61080d",
            ),
        ),
        read=folder.read,
    ),
    # The sums of https://www.openslr.org/resources/12/md5sum.txt.
    _librispeech("dev-clean", 5.4, 337, "42e2234ba48799c1f50f24a7926300a1"),
    _librispeech("dev-other", 5.3, 314, "c8d0bcc9cca99d4f8b62fcc847357931"),
    _librispeech("test-clean", 5.4, 346, "32fa31d27d2e1cad72775fee3f4849a9"),
    _librispeech("test-other", 5.1, 328, "fb5a50374b501bb3bac4815ee91d3135"),
    _librispeech("train-clean-100", 100.6, 6387, "2a93770f6d5c6c964bc36631d331a522"),
    _librispeech("train-clean-360", 363.6, 23000, "c0e676e450a7ff2f54aeade5171606fa"),
    _librispeech("train-other-500", 496.7, 30000, "d1a0fd59409feb2c614ce4d30c387708"),
)

CORPORA = {corpus.name: corpus for corpus in _ALL}
"""All public corpora, by name."""
