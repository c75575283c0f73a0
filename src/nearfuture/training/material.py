"""What a training is given: recordings to learn from, and others kept apart to watch it with."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nearfuture.budget import RecognizerConfig
from nearfuture.data import (
    AcousticEnvironment,
    Batches,
    BatchingOptions,
    BucketingBatches,
    CorpusReport,
    Cut,
    CutFilter,
    Skipped,
    Utterance,
    assign_splits,
    check,
    corpus_contents,
    corpus_folder,
    load_utterances,
)
from nearfuture.data.check import UNUSED
from nearfuture.data.split import SplitBy
from nearfuture.error import NearfutureError
from nearfuture.text import Vocabulary, counted
from nearfuture.training.distributed import Group

_APART = (0.05, 0.06, 0.08, 0.1, 0.13, 0.16, 0.2)  # of the audio, until they are enough
_LEAST_APART = 20  # recordings, of ten times as many
_MOST_APART = 0.2  # of the recordings
_VARIED_WITH = {"noise": "noises", "rir": "rooms"}
_WATCHED = 200  # recordings, at most
_SHOWN = 3  # names in a note


@dataclass(frozen=True, kw_only=True)
class Material:
    """What a model is trained on and watched with.

    Attributes:
        batches: to train on.
        watched: kept apart; in the first process, where they are never none.
        watched_name: what those are, in words.
        symbols: the characters of all texts.
        about: what to remember of all this, in JSON values; another training has another one.
        left_out: recordings that are in neither, with the reason.
        said: at which rate they are heard, and with what they are varied, in a line each.
        steps: how many steps so many epochs are; None where there are no epochs.
    """

    batches: Batches
    watched: list[Utterance]
    watched_name: str
    symbols: tuple[str, ...]
    about: dict[str, Any]
    left_out: tuple[Skipped, ...] = ()
    said: tuple[str, ...] = ()
    steps: Callable[[int], int] | None = None


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Rows of sources to train on, and those kept apart.

    Attributes:
        reports: what each source holds, and what is wrong with it.
        train: items to learn from.
        dev: items kept apart.
        dev_name: how they were chosen, in words.
        left_out: what would have been in either and breaks the limits.
        notes: a line for each source that has more than that, besides its split "test".
    """

    reports: tuple[CorpusReport, ...]
    train: tuple[Cut, ...]
    dev: tuple[Cut, ...]
    dev_name: str
    left_out: tuple[Skipped, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Of the sources."""
        return " + ".join(report.path.resolve().name for report in self.reports)

    @property
    def symbols(self) -> tuple[str, ...]:
        """The characters of all texts."""
        return Vocabulary.from_texts([item.text for item in (*self.train, *self.dev)]).symbols

    @property
    def fingerprint(self) -> str:
        """A digest of what there is to learn and to watch, wherever the files lie."""
        rows = [
            [(item.path.name, item.text, item.start_s, item.duration_s) for item in items]
            for items in (self.train, self.dev)
        ]
        return hashlib.sha256(repr(rows).encode()).hexdigest()


def select(
    paths: Sequence[Path],
    *,
    seed: int,
    cut_filter: CutFilter,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Selection:
    """Look through sources and say what is trained on and what is kept apart.

    Items of the split "train" are trained on, those of "dev" are kept apart, those of "test" are
    left alone; a source without splits is all "train". Where a source has splits, its items without
    one are in the notes. The first source that has a "dev" is the one that is watched. Where none
    has, about 5 % are set aside, and 20 of 200 or more at least: whole speakers where none of them
    is too much of it, single recordings otherwise. Fewer than 20 are all trained on and watched.

    Args:
        paths: whatever `read_source` reads.
        seed: decides what is set aside.
        cut_filter: recordings that it rejects are left out.
        progress: called with the recordings looked at, and all of them.

    Raises:
        NearfutureError: where there is nothing to train on.
    """
    reports = tuple(check(path, cut_filter=cut_filter, progress=progress) for path in paths)
    train: list[Cut] = []
    dev: list[Cut] = []
    left_out: list[Skipped] = []
    notes: list[str] = []

    def usable(cuts: Sequence[Cut], report: CorpusReport) -> list[Cut]:
        skipped = {one.name: one for one in report.skipped}
        left_out.extend(skipped[cut.name] for cut in cuts if cut.name in skipped)
        return [cut for cut in cuts if cut.name not in skipped]

    for report in reports:
        splits = {item.split for item in report.cuts}
        kind = "train" if any(splits) else ""
        train += usable([item for item in report.cuts if item.split == kind], report)
        apart = [item for item in report.cuts if item.split == "dev"]
        if dev and apart:
            notes.append(_note(report, [item.name for item in apart], "are not watched"))
        dev = dev or usable(apart, report)
        unused = [
            example for issue in report.issues if issue.kind == UNUSED for example in issue.examples
        ]
        if unused:
            notes.append(_note(report, [name for name, _ in unused], UNUSED))
    if not train:
        raise NearfutureError(f"there is nothing to train on: {_why(reports, left_out)}")
    if dev:
        name = "of the split dev"
    else:
        told = any(item.split == "dev" for report in reports for item in report.cuts)
        why = "none of the split dev can be used" if told else "none has the split dev"
        train, dev, name = _set_aside(train, seed, why)
    return Selection(
        reports=reports,
        train=tuple(train),
        dev=tuple(dev),
        dev_name=name,
        left_out=tuple(left_out),
        notes=tuple(notes),
    )


def _note(report: CorpusReport, names: Sequence[str], what: str) -> str:
    """What becomes of recordings of a source, with the first names."""
    shown = ", ".join(names[:_SHOWN]) + (" …" if len(names) > _SHOWN else "")
    return f"{report.path}: {counted(len(names), 'recording')} {what}: {report.short(shown)}"


def _why(reports: Sequence[CorpusReport], left_out: Sequence[Skipped]) -> str:
    """Why there is nothing to train on."""
    reasons = [str(one) for one in left_out[:_SHOWN]]
    for report in reports:
        splits = {item.split for item in report.cuts}
        wrong = [f"{name}: {why}" for issue in report.issues for name, why in issue.examples]
        if not report.cuts:
            reasons.append("; ".join(wrong[:_SHOWN]) or f"{report.path} has no rows")
        elif any(splits) and "train" not in splits:
            names = ", ".join(sorted(name or "none" for name in splits))
            reasons.append(f"{report.path} has the splits {names}, none of them train")
    return "; ".join(reasons)


def _set_aside(items: Sequence[Cut], seed: int, why: str) -> tuple[list[Cut], list[Cut], str]:
    """Items to train on, items kept apart, and what the latter are."""
    if len(items) < _LEAST_APART:
        return list(items), list(items), "that were trained on, since there are too few others"
    plain = [dataclasses.replace(item, split="") for item in items]
    ways: list[SplitBy] = ["random"]
    if all(item.speaker for item in items) and len({item.speaker for item in items}) > 1:
        ways.insert(0, "speaker")
    least = _LEAST_APART if len(items) >= 10 * _LEAST_APART else 1
    for way in ways:
        for share in _APART:
            split = assign_splits(plain, by=way, dev=share, test=0.0, seed=seed)
            dev = [item for item in split if item.split == "dev"]
            if len(dev) >= least:
                break
        if way == "random" or len(dev) <= _MOST_APART * len(items):
            break
    train = [item for item in split if item.split == "train"]
    speakers = counted(len({item.speaker for item in dev}), "speaker")
    who = f"of {speakers}" if way == "speaker" else "at random"
    return train, dev, f"set aside {who}, since {why}"


def recordings(
    selection: Selection,
    config: RecognizerConfig,
    *,
    seed: int,
    batch_seconds: float,
    cut_filter: CutFilter,
    group: Group,
) -> Material:
    """A user's own recordings as a model takes them.

    No more are watched than a look has time for, and only the process that looks loads them.
    """
    batches = BucketingBatches(
        selection.train,
        rate=config.features.rate,
        options=BatchingOptions(batch_seconds=batch_seconds, seed=seed),
        cut_filter=cut_filter,
        environment=AcousticEnvironment.load(config.features.rate),
    )
    few = selection.dev[:: math.ceil(len(selection.dev) / _WATCHED)]
    watched, missing = load_utterances(few if group.first else (), config.features.rate)
    if group.any(group.first and not watched):  # all of them end
        raise NearfutureError(
            f"there is nothing to watch: none of the recordings {selection.dev_name} can be "
            f"loaded: {'; '.join(map(str, missing[:_SHOWN]))}"
        )
    number = counted(len(watched), "recording")
    if len(few) < len(selection.dev):
        number = f"{len(watched)} of {len(selection.dev)} recordings"
    return Material(
        batches=batches,
        watched=watched,
        watched_name=f"{number} {selection.dev_name}",
        symbols=selection.symbols,
        about={
            "task": selection.name,
            "recordings_sha256": selection.fingerprint,
            "batch_seconds": batch_seconds,
            "longest": cut_filter.longest_s,
            "data": [f"{len(batches.cuts)} own recordings, {batches.hours:.2f} hours"],
            **_varied_with(),
        },
        said=(_heard_at(selection, config.features.rate), *_varied_in_words()),
        left_out=(*selection.left_out, *batches.skipped, *missing),
        steps=batches.steps,
    )


def _heard_at(selection: Selection, rate: int) -> str:
    """At which rate the models hear, and whether recordings have more than that."""
    rates = [item.rate or 0 for item in selection.train]
    more = sum(one > rate for one in rates)
    if not more:
        return f"the models hear {rate} Hz"
    return (
        f"the models hear {rate} Hz: {counted(more, 'recording')} of {len(rates)} would have more, "
        f"up to {max(rates)} Hz (--rate)"
    )


def _varied_with() -> dict[str, str]:
    """What of the corpora the recordings are varied with: with others it is another training."""
    return {name: corpus_contents(name) for name in _VARIED_WITH}


def _varied_in_words() -> tuple[str, ...]:
    lines = []
    for name, what in _VARIED_WITH.items():
        folder = corpus_folder(name)
        where = (
            f"{corpus_contents(name)} in {folder.resolve()}"
            if folder
            else "none, so they are made up"
        )
        lines.append(f"{what}: {where}")
    return tuple(lines)
