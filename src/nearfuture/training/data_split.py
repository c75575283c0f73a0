"""Which recordings a training learns from, and which validate it, from their sources' splits."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from nearfuture.data import CorpusReport, Cut, CutFilter, Skipped, assign_splits, check
from nearfuture.data.check import UNUSED
from nearfuture.data.split import SplitBy
from nearfuture.error import NearfutureError
from nearfuture.text import Vocabulary, plural

_DEV_SHARES = (0.05, 0.06, 0.08, 0.1, 0.13, 0.16, 0.2)  # of the audio, until they are enough
_LEAST_DEV = 20  # recordings, of ten times as many
_MAX_DEV = 0.2  # of the recordings
_SHOWN = 3  # names in a note


@dataclass(frozen=True, kw_only=True)
class DataSplit:
    """The rows of sources to train on, and those to validate on.

    Attributes:
        reports: What each source holds, and what is wrong with it.
        train: The rows to train on.
        dev: The rows to validate on.
        dev_name: How those were chosen, in words.
        skipped: Rows that would be in either and break the limits.
        notes: A line for each source that has more than that, besides its split "test".
    """

    reports: tuple[CorpusReport, ...]
    train: tuple[Cut, ...]
    dev: tuple[Cut, ...]
    dev_name: str
    skipped: tuple[Skipped, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The names of the sources."""
        return " + ".join(report.path.resolve().name for report in self.reports)

    @property
    def symbols(self) -> tuple[str, ...]:
        """The characters that the texts are written with."""
        return Vocabulary.from_texts([cut.text for cut in (*self.train, *self.dev)]).symbols

    @property
    def fingerprint(self) -> str:
        """A digest of the rows of both sides, wherever their files lie."""
        rows = [
            [(cut.path.name, cut.text, cut.start_s, cut.duration_s) for cut in cuts]
            for cuts in (self.train, self.dev)
        ]
        return hashlib.sha256(repr(rows).encode()).hexdigest()


def split_sources(
    paths: Sequence[Path],
    *,
    seed: int,
    cut_filter: CutFilter,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> DataSplit:
    """Check sources and decide which rows to train on and which to validate on.

    Rows of the split "train" are trained on, those of "dev" validate, those of "test" are not
    used; a source without splits is all "train". Where a source has splits, its rows without one
    are in the notes. The first source that has a "dev" validates. Where none has, about 5 % are set
    aside, and 20 of 200 or more at least: whole speakers where none of them is too much of it,
    single recordings otherwise. Fewer than 20 rows are all trained on and validated on.

    Args:
        paths: Whatever `read_source` reads.
        seed: Decides what is set aside.
        cut_filter: Recordings that it rejects are skipped.
        progress: Called with the number of recordings checked, and of all.

    Raises:
        NearfutureError: There is nothing to train on.
    """
    reports = tuple(check(path, cut_filter=cut_filter, progress=progress) for path in paths)
    train: list[Cut] = []
    dev: list[Cut] = []
    skipped: list[Skipped] = []
    notes: list[str] = []

    def usable(cuts: Sequence[Cut], report: CorpusReport) -> list[Cut]:
        rejected = {recording.name: recording for recording in report.rejected}
        skipped.extend(rejected[cut.name] for cut in cuts if cut.name in rejected)
        return [cut for cut in cuts if cut.name not in rejected]

    for report in reports:
        splits = {cut.split for cut in report.cuts}
        kind = "train" if any(splits) else ""
        train += usable([cut for cut in report.cuts if cut.split == kind], report)
        of_dev = [cut for cut in report.cuts if cut.split == "dev"]
        if dev and of_dev:
            notes.append(_note(report, [cut.name for cut in of_dev], "do not validate"))
        dev = dev or usable(of_dev, report)
        unused = [
            name for issue in report.issues if issue.kind == UNUSED for name, _ in issue.examples
        ]
        if unused:
            notes.append(_note(report, unused, UNUSED))
    if not train:
        reasons = _reasons(reports, skipped)
        raise NearfutureError(
            f"there is nothing to train on: {reasons}", code="not_found", parameter="data"
        )
    if dev:
        name = "of the split dev"
    else:
        has_dev = any(cut.split == "dev" for report in reports for cut in report.cuts)
        why = "none of the split dev can be used" if has_dev else "none has the split dev"
        train, dev, name = _set_aside(train, seed, why)
    return DataSplit(
        reports=reports,
        train=tuple(train),
        dev=tuple(dev),
        dev_name=name,
        skipped=tuple(skipped),
        notes=tuple(notes),
    )


def _note(report: CorpusReport, names: Sequence[str], what: str) -> str:
    """Say what becomes of recordings of a source, with the first names."""
    shown = ", ".join(names[:_SHOWN]) + (" …" if len(names) > _SHOWN else "")
    return f"{report.path}: {plural(len(names), 'recording')} {what}: {report.short(shown)}"


def _reasons(reports: Sequence[CorpusReport], skipped: Sequence[Skipped]) -> str:
    """Explain why there is nothing to train on."""
    reasons = [str(recording) for recording in skipped[:_SHOWN]]
    for report in reports:
        splits = {cut.split for cut in report.cuts}
        wrong = [f"{name}: {why}" for issue in report.issues for name, why in issue.examples]
        if not report.cuts:
            reasons.append("; ".join(wrong[:_SHOWN]) or f"{report.path} has no rows")
        elif any(splits) and "train" not in splits:
            names = ", ".join(sorted(name or "none" for name in splits))
            reasons.append(f"{report.path} has the splits {names}, none of them train")
    return "; ".join(reasons)


def _set_aside(cuts: Sequence[Cut], seed: int, why: str) -> tuple[list[Cut], list[Cut], str]:
    """Split rows that no source splits: those to train on, those to validate on, and a name."""
    if len(cuts) < _LEAST_DEV:
        return list(cuts), list(cuts), "that were trained on, since there are too few others"
    plain = [dataclasses.replace(cut, split="") for cut in cuts]
    ways: list[SplitBy] = ["random"]
    if all(cut.speaker for cut in cuts) and len({cut.speaker for cut in cuts}) > 1:
        ways.insert(0, "speaker")
    least = _LEAST_DEV if len(cuts) >= 10 * _LEAST_DEV else 1
    for way in ways:
        for share in _DEV_SHARES:
            split = assign_splits(plain, by=way, dev=share, test=0.0, seed=seed)
            dev = [cut for cut in split if cut.split == "dev"]
            if len(dev) >= least:
                break
        if way == "random" or len(dev) <= _MAX_DEV * len(cuts):
            break
    train = [cut for cut in split if cut.split == "train"]
    speakers = plural(len({cut.speaker for cut in dev}), "speaker")
    who = f"of {speakers}" if way == "speaker" else "at random"
    return train, dev, f"set aside {who}, since {why}"
