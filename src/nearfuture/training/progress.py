"""What a training reports while it goes on, and who shows it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nearfuture.data import CorpusReport, Skipped


@dataclass(frozen=True, kw_only=True)
class ProgressEvent:
    """The progress of an activity besides training steps.

    Attributes:
        activity: What is done, in a few words.
        count: How much of it is done and how much there is in all, where it takes long.
        steps: The steps a model is trained for, once they are known.
        step: How many of them are done.
        reports: What each source of recordings holds, once it has been checked.
        notes: Lines to show once: what is not used, what validates.
        skipped: Every recording that is skipped.
    """

    activity: str
    count: tuple[int, int] | None = None
    steps: int | None = None
    step: int = 0
    reports: tuple[CorpusReport, ...] = ()
    notes: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()


@dataclass(frozen=True, kw_only=True)
class StepProgress:
    """The result of a training step.

    Attributes:
        step: The number of steps done.
        steps: The number of steps in all.
        epoch: How often all recordings had been seen before this step.
        loss: CTC in nats per character, the mean over heads; NaN where nothing was trained on.
        skipped: Every utterance or batch that was skipped in this step, unless it was named before.
        skipped_total: The number of utterances skipped so far, each as often as it came.
        seconds: Duration of this step in this process.
        audio_seconds: Audio that all processes trained on in this step.
        learning_rate: AdamW's.
        gradient_norm: Norm of the gradient before it was clipped.
        validation: The metrics of the averaged model, where it was validated after this step.
    """

    step: int
    steps: int
    epoch: int = 0
    loss: float
    skipped: tuple[Skipped, ...] = ()
    skipped_total: int = 0
    seconds: float = 0.0
    audio_seconds: float = 0.0
    learning_rate: float = 0.0
    gradient_norm: float = math.nan
    validation: Mapping[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        """One line, with the errors where it was validated."""
        line = f"step {self.step} of {self.steps}, epoch {self.epoch + 1}, loss {self.loss:.3f}"
        metrics = dict(self.validation)
        if len(metrics) == 2:  # the mean of one head is that head
            metrics.popitem()
        names = {name: name.replace("cer", "CER").replace("_", " ") for name in metrics}
        return ", ".join(
            [line, *(f"{names[name]} {100 * rate:.2f} %" for name, rate in metrics.items())]
        )


class ProgressReporter:
    """Receives what a training reports; this one shows nothing and never stops a training."""

    def report(self, model: str, event: ProgressEvent | StepProgress) -> None:
        """Show what happens to a model, by its name."""

    def interruption(self) -> AbstractContextManager[Callable[[], bool]]:
        """A context around the steps that gives a function: whether to stop after this step."""
        return nullcontext(lambda: False)
