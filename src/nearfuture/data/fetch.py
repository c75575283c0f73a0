"""A public corpus from the network to a folder that training reads."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from nearfuture.data.check import check
from nearfuture.data.corpus import DEFAULT, ENVIRONMENT
from nearfuture.data.download import RECORD, download, verify
from nearfuture.data.formats.lhotse_manifest import the_library
from nearfuture.data.importing import write_corpus
from nearfuture.data.item import Collector, Item
from nearfuture.data.public import PublicCorpus
from nearfuture.data.report import Report
from nearfuture.data.unpack import unpack
from nearfuture.error import NearfutureError

_DOWNLOADS = "download"
_UNPACKED = "unpacked"
_MANIFEST = "manifest.tsv"


def corpora_folder(to: Path | None = None) -> Path:
    """The folder of all corpora: the one given, or that of `NEARFUTURE_CORPORA`.

    Raises:
        NearfutureError: where neither is there.

    >>> corpora_folder(Path("corpora"))
    PosixPath('corpora')
    """
    if to is not None:
        return to
    if told := os.environ.get(ENVIRONMENT):
        return Path(told)
    if DEFAULT.is_dir():
        return DEFAULT
    raise NearfutureError(
        f"where should corpora go? Say --to DIR, or let {ENVIRONMENT} name a folder, in which "
        f"training looks, too"
    )


def fetched(corpus: PublicCorpus, root: Path) -> Path | None:
    """The folder of a corpus, if it is there; its manifest is the last thing that is written."""
    folder = root / corpus.name
    return folder if (folder / _MANIFEST).is_file() else None


def fetch(
    corpus: PublicCorpus,
    root: Path,
    *,
    mirror: str | None = None,
    progress: Callable[[str, int, int | None], None] | None = None,
) -> Report:
    """Fetch a corpus into `root`/name, check it, and write its cuts.jsonl.gz and manifest.tsv.

    Whatever stops on the way goes on from there next time. Archives are removed once all is
    written; their sizes and checksums are kept in fetched.json.

    Args:
        corpus: one of `CORPORA`.
        root: the folder of all corpora.
        mirror: address of a folder that holds the same archives under the names that
            `nearfuture data list` tells.
        progress: called with what is being done, how much of it is done, and how much there is.

    Raises:
        NearfutureError: where it is there already, where the host cannot be reached or has another
            file, or where no space is left.
    """
    if there := fetched(corpus, root):
        raise NearfutureError(
            f"{corpus.name} is there already, in {there}: remove that folder to fetch it again"
        )
    the_library()  # known to be missing before hours of fetching, not after
    folder = root / corpus.name
    downloads, unpacked = folder / _DOWNLOADS, folder / _UNPACKED
    try:
        shutil.rmtree(unpacked, ignore_errors=True)  # of a fetch that was stopped
        for archive in corpus.archives:
            path = downloads / archive.name
            url = archive.url if mirror is None else f"{mirror.rstrip('/')}/{archive.name}"
            download(url, path, progress=_named(progress, f"fetching {archive.name}"))
            verify(path, url, archive.checksum, folder / RECORD)
            unpack(path, unpacked, progress=_named(progress, f"unpacking {archive.name}"))
        audio = folder / "audio"
        shutil.rmtree(audio, ignore_errors=True)
        unpacked.rename(audio)
        found = Collector(folder)
        corpus.read(audio, found)
        report = check(found.source(), progress=_named(progress, "checking"))
        report = replace(report, items=_with_short_names(report.items, folder))
        write_corpus(
            report.items, folder, root=folder, progress=_named(progress, "writing cuts.jsonl.gz")
        )
        _write_manifest(report.items, folder)
    except OSError as error:
        raise NearfutureError(f"cannot write to {folder}: {error.strerror or error}") from error
    finally:
        for empty in (downloads, folder):  # where nothing came
            with contextlib.suppress(OSError):
                empty.rmdir()
    shutil.rmtree(downloads, ignore_errors=True)
    return report


def _named(
    progress: Callable[[str, int, int | None], None] | None, doing: str
) -> Callable[[int, int | None], None] | None:
    if progress is None:
        return None
    return lambda done, total: progress(doing, done, total)


def _with_short_names(items: tuple[Item, ...], folder: Path) -> tuple[Item, ...]:
    prefix = f"{folder}{os.sep}"
    return tuple(replace(item, name=item.name.removeprefix(prefix)) for item in items)


def _write_manifest(items: tuple[Item, ...], folder: Path) -> None:
    """The list that people read, and that the command for digits reads."""
    rows = [("path", "transcript", "speaker", "split")]
    for item in items:
        path = item.path.relative_to(folder).as_posix()
        rows.append((path, item.text, item.speaker, item.split))
    text = "".join("\t".join(row) + "\n" for row in rows)
    scratch = folder / f"{_MANIFEST}.part"
    scratch.write_text(text, encoding="utf-8")
    scratch.replace(folder / _MANIFEST)
