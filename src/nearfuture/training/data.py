"""The data that a model is trained and validated on."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nearfuture.budget import RecognizerConfig
from nearfuture.data import (
    AcousticEnvironment,
    Batches,
    BatchingOptions,
    BucketingBatches,
    CutFilter,
    Skipped,
    Utterance,
    corpus_contents,
    corpus_folder,
    load_utterances,
)
from nearfuture.error import NearfutureError
from nearfuture.model import Recognizer
from nearfuture.text import plural
from nearfuture.training.data_split import DataSplit, split_sources
from nearfuture.training.distributed import Group
from nearfuture.training.options import DataOptions
from nearfuture.training.progress import ProgressEvent
from nearfuture.training.validation import validate

_MAX_VALIDATED = 200  # recordings
_SHOWN = 3  # reasons in a message
_AUGMENTATION_CORPORA = {"noise": "noises", "rir": "rooms"}


@dataclass(frozen=True, kw_only=True)
class TrainingData:
    """The data that a model is trained and validated on.

    Attributes:
        batches: The utterances of every step.
        symbols: The characters that the texts are written with.
        validation: Utterances that choose the best model; only the main process needs them. Without
            any the last model is kept.
        validation_name: What those are, in words.
        about: What the checkpoint remembers of all this (JSON values); with other data it is
            another training.
        skipped: Recordings that are used for neither, with the reason.
        notes: Lines about the data that are worth showing once.
        steps: Gives the number of steps in so many epochs; None where there are no epochs.
    """

    batches: Batches
    symbols: tuple[str, ...] = ()
    validation: Sequence[Utterance] = ()
    validation_name: str = "recordings kept apart"
    about: Mapping[str, Any] = field(default_factory=dict)
    skipped: tuple[Skipped, ...] = ()
    notes: tuple[str, ...] = ()
    steps: Callable[[int], int] | None = None

    def metrics(self, model: Recognizer) -> Mapping[str, float]:
        """Compute the metrics of a model on the validation utterances; none without any."""
        return validate(model, self.validation) if self.validation else {}


def read_training_data(
    options: DataOptions,
    config: RecognizerConfig,
    *,
    seed: int,
    group: Group,
    report: Callable[[ProgressEvent], None] = lambda _: None,
) -> TrainingData:
    """Read recordings with their texts as training data.

    Args:
        options: The sources, and what is skipped of them.
        config: The model, whose sampling rate and frames decide; its symbols do not.
        seed: Decides what is set aside for validation, and every batch.
        group: The processes; the main one alone loads what validates.
        report: Called with what is being done.

    Raises:
        NearfutureError: There is nothing to train on or nothing to validate on.
    """

    def checked(done: int, total: int) -> None:
        if done % 100 == 0:
            report(ProgressEvent(activity="checking recordings", count=(done, total)))

    report(ProgressEvent(activity="reading"))
    cut_filter = CutFilter(longest_s=options.longest, model=config)
    split = split_sources(options.data, seed=seed, cut_filter=cut_filter, progress=checked)
    report(ProgressEvent(activity="loading", reports=split.reports, notes=split.notes))
    data = load_split(split, options, cut_filter, seed=seed, group=group)
    validation = f"validation: {data.validation_name}"
    report(ProgressEvent(activity="loaded", skipped=data.skipped, notes=(*data.notes, validation)))
    return data


def load_split(
    split: DataSplit,
    options: DataOptions,
    cut_filter: CutFilter,
    *,
    seed: int,
    group: Group,
) -> TrainingData:
    """Plan the batches of one side of a split and load the other, which validates.

    No more recordings validate than there is time for.
    """
    rate = cut_filter.model.features.rate
    batches = BucketingBatches(
        split.train,
        rate=rate,
        options=BatchingOptions(batch_seconds=options.batch_seconds, seed=seed),
        cut_filter=cut_filter,
        environment=AcousticEnvironment.load(rate),
    )
    few = split.dev[:: math.ceil(len(split.dev) / _MAX_VALIDATED)]
    validation, missing = load_utterances(few if group.is_main else (), rate)
    if group.any(group.is_main and not validation):  # all processes end
        reasons = "; ".join(map(str, missing[:_SHOWN]))
        raise NearfutureError(
            f"there is nothing to validate on: none of the recordings {split.dev_name} can be "
            f"loaded: {reasons}",
            code="not_found",
            parameter="data",
        )
    number = plural(len(validation), "recording")
    if len(few) < len(split.dev):
        number = f"{len(validation)} of {len(split.dev)} recordings"
    return TrainingData(
        batches=batches,
        symbols=split.symbols,
        validation=validation,
        validation_name=f"{number} {split.dev_name}",
        about={
            "task": split.name,
            "recordings_sha256": split.fingerprint,
            "batch_seconds": options.batch_seconds,
            "longest": options.longest,
            "data": [f"{len(batches.cuts)} own recordings, {batches.hours:.2f} hours"],
            **{name: corpus_contents(name) for name in _AUGMENTATION_CORPORA},
        },
        skipped=(*split.skipped, *batches.skipped, *missing),
        notes=(_rate_note(split, rate), *map(_corpus_note, _AUGMENTATION_CORPORA)),
        steps=batches.steps,
    )


def _rate_note(split: DataSplit, rate: int) -> str:
    """Say at which rate the models hear, and whether recordings have more than that."""
    rates = [cut.rate or 0 for cut in split.train]
    higher = sum(own > rate for own in rates)
    note = f"sampling rate of the models: {rate} Hz"
    if higher:
        note += f"; {higher} of {plural(len(rates), 'recording')} have more, up to {max(rates)} Hz"
    return note


def _corpus_note(name: str) -> str:
    """Say which recordings of a corpus augment those that are trained on."""
    folder = corpus_folder(name)
    source = (
        f"{corpus_contents(name)} in {folder.resolve()}"
        if folder
        else "none, so they are synthetic"
    )
    return f"{_AUGMENTATION_CORPORA[name]}: {source}"
