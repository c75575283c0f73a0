"""A public corpus from the network to a folder that training reads."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from nearfuture.data.check import check
from nearfuture.data.corpora.catalogue import PublicCorpus
from nearfuture.data.corpora.download import RECORD, download, verify
from nearfuture.data.corpora.location import MANIFEST, corpus_folder
from nearfuture.data.corpora.unpack import unpack
from nearfuture.data.corpora.writing import write_corpus
from nearfuture.data.cut import Cut
from nearfuture.data.report import CorpusReport
from nearfuture.data.sources.builder import SourceBuilder
from nearfuture.data.sources.lhotse_manifest import import_lhotse
from nearfuture.error import NearfutureError

_DOWNLOADS = "download"
_UNPACKED = "unpacked"

FetchProgress = Callable[[str, int, int | None], None]


def fetch(
    corpus: PublicCorpus,
    root: Path,
    *,
    mirror: str | None = None,
    progress: FetchProgress = lambda task, done, total: None,
) -> CorpusReport:
    """Fetch a corpus into `root`/name, check it, and write its cuts.jsonl.gz and manifest.tsv.

    A fetch that was stopped resumes where it stopped. Archives are removed once all is written;
    their sizes and checksums are kept in fetched.json.

    Args:
        corpus: one of `CORPORA`.
        root: the folder of all corpora.
        mirror: address of a folder that holds the same archives under the names that
            `nearfuture data list` shows.
        progress: called with the task, how much of it is done, and how much there is.

    Raises:
        NearfutureError: where the corpus exists already, where the host cannot be reached or has
            another file, or where no space is left.
    """
    if existing := corpus_folder(corpus.name, root):
        raise NearfutureError(
            f"{corpus.name} is there already, in {existing}: remove that folder to fetch it again",
            code="conflict",
        )
    import_lhotse()  # known to be missing before hours of fetching, not after

    def task(name: str) -> Callable[[int, int | None], None]:
        return lambda done, total: progress(name, done, total)

    folder = root / corpus.name
    downloads, unpacked = folder / _DOWNLOADS, folder / _UNPACKED
    try:
        shutil.rmtree(unpacked, ignore_errors=True)  # of a fetch that was stopped
        for archive in corpus.archives:
            path = downloads / archive.name
            url = archive.url if mirror is None else f"{mirror.rstrip('/')}/{archive.name}"
            download(url, path, progress=task(f"fetching {archive.name}"))
            verify(path, url, archive.checksum, folder / RECORD)
            unpack(path, unpacked, progress=task(f"unpacking {archive.name}"))
        audio = folder / "audio"
        shutil.rmtree(audio, ignore_errors=True)
        unpacked.rename(audio)
        builder = SourceBuilder(folder)
        corpus.read(audio, builder)
        report = check(builder.build(), progress=task("checking"))
        prefix = f"{folder}{os.sep}"
        cuts = tuple(replace(cut, name=cut.name.removeprefix(prefix)) for cut in report.cuts)
        report = replace(report, cuts=cuts)
        write_corpus(cuts, folder, root=folder, progress=task("writing cuts.jsonl.gz"))
        _write_manifest(cuts, folder)
    except OSError as error:
        raise NearfutureError(
            f"cannot write to {folder}: {error.strerror or error}", code="unavailable"
        ) from error
    finally:
        for empty in (downloads, folder):  # where nothing came
            with contextlib.suppress(OSError):
                empty.rmdir()
    shutil.rmtree(downloads, ignore_errors=True)
    return report


def _write_manifest(cuts: tuple[Cut, ...], folder: Path) -> None:
    """The list that people read."""
    rows = [("path", "transcript", "speaker", "split")]
    for cut in cuts:
        path = cut.path.relative_to(folder).as_posix()
        rows.append((path, cut.text, cut.speaker, cut.split))
    text = "".join("\t".join(row) + "\n" for row in rows)
    scratch = folder / f"{MANIFEST}.part"
    scratch.write_text(text, encoding="utf-8")
    scratch.replace(folder / MANIFEST)
