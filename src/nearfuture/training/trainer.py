"""The training loop: a pure function of the options and the data, one step at a time.

Batches, dropout and augmentation follow from the seed and the step alone, so a training that is
interrupted and resumed is the training that was not.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nearfuture.data import Batches, Skipped
from nearfuture.error import NearfutureError
from nearfuture.layers import SequenceBatchNorm
from nearfuture.model import Recognizer
from nearfuture.training.averaging import Average
from nearfuture.training.checkpoint import Checkpoint
from nearfuture.training.distributed import Group
from nearfuture.training.gradient import Gradients, gradients, statistics
from nearfuture.training.log import Log, Speed
from nearfuture.training.muon import newton_schulz_dtype
from nearfuture.training.optimizer import Optimizer
from nearfuture.training.options import TrainingOptions
from nearfuture.training.part import Part
from nearfuture.training.resumption import said
from nearfuture.training.teacher import check_teacher, fingerprint

_BATCHES_FOR_FEATURES = 4  # which their normalisation is fitted to
_BATCHES_TRIED = 64  # to find those


@dataclass(frozen=True, kw_only=True)
class Progress:
    """What a training reports after each step.

    Attributes:
        step, steps: done, and in all.
        epoch: how often all recordings had been seen before this step.
        loss: CTC, nats per character, the mean over heads; not a number where nothing was trained
            on.
        skipped: every utterance or batch that was left out in this step, unless it was named
            before.
        left_out: utterances that were left out so far, each as often as it came.
        seconds: of this step, in this process.
        audio_seconds: trained on in this step, by all processes.
        rate: learning rate.
        gradient_norm: before it was clipped.
        watched: figures of the recordings kept apart, where they were looked at after this step.
    """

    step: int
    steps: int
    epoch: int = 0
    loss: float
    skipped: tuple[Skipped, ...] = ()
    left_out: int = 0
    seconds: float = 0.0
    audio_seconds: float = 0.0
    rate: float = 0.0
    gradient_norm: float = math.nan
    watched: Mapping[str, float] = field(default_factory=dict)


class Trainer:
    """Trains a `Recognizer` on batches, every head together, with CTC.

    The loss is the mean over heads of CTC's negative log-likelihood per target character, plus the
    divergences that the options ask for, per frame. An utterance with samples that are not finite,
    with characters that the model cannot write, or with more of them than its frames can spell is
    left out before the model hears it, and named; the others of its batch are trained on. A step of
    which nothing is left, or whose loss or gradient is not finite, is skipped and named; it touches
    no weight, average, moment or statistic.

    With several processes each computes its part of the batch, and sums of losses, counts and
    gradients are added up, so that a step is the same however many there are, but for rounding
    (which Muon may make 1e-4 where it computes in bfloat16) and for dropout, which each draws for
    itself. The first process saves, reports and watches.

    Args:
        model: trained in place. Its features are normalised by the first batches, unless it comes
            with statistics of its own, to which its weights are used.
        batches: the data.
        folder: `checkpoint.safetensors` and the curves are kept there, and the best model in
            `best.safetensors`; a training found there is resumed.
        options: how to go about it.
        task: what to remember about the data in the checkpoint (JSON values).
        watch: figures of a model on recordings that are kept apart; it is given the average.
        teacher: a model whose distributions the heads learn; nothing is blanked out of its
            features.
        group: the processes that share the work.

    Attributes:
        said: a line for each way in which a training that is resumed is not the one that was begun.

    Raises:
        NearfutureError: for options that fit neither the model nor the checkpoint in the folder,
            and for a teacher that hears or writes something else.
    """

    def __init__(
        self,
        model: Recognizer,
        batches: Batches,
        folder: Path,
        options: TrainingOptions,
        *,
        task: dict[str, Any] | None = None,
        watch: Callable[[Recognizer], Mapping[str, float]] | None = None,
        teacher: Recognizer | None = None,
        group: Group | None = None,
    ) -> None:
        self.group = group or Group()
        self.model, self.batches, self.options = model.to(self.group.device), batches, options
        check_teacher(teacher, model, options)
        self.teacher = teacher and teacher.to(self.group.device).eval().requires_grad_(False)
        if self.teacher:
            self.teacher.features.train()  # by the same transform as the student's
        self.folder, self.watch = folder, watch
        self.path, self.best_path = folder / "checkpoint.safetensors", folder / "best.safetensors"
        self.checkpoint = Checkpoint(
            average=Average(model, options.average),
            optimizer=Optimizer(model, options),
            options={
                **dataclasses.asdict(options),
                **(task or {}),
                "teacher": None if teacher is None else fingerprint(teacher),
                # Sums of floating-point numbers depend on how they are split and rounded.
                "threads": torch.get_num_threads(),
                "processes": self.group.ranks,
                "newton_schulz": str(newton_schulz_dtype(self.group.device)).split(".")[-1],
            },
        )
        for module in model.modules():
            if isinstance(module, SequenceBatchNorm):
                module.shared = self.group.ranks > 1
        self.said: tuple[str, ...] = ()
        self._between_steps = True
        self._named: set[str] = set()
        self._speed = Speed()
        # Nobody writes a checkpoint before everybody has looked for one.
        if self.group.any(self.path.exists()):
            changes = self.checkpoint.restore(self.path)
            self.said = said(changes, options, self.checkpoint.step)
        else:
            folder.mkdir(parents=True, exist_ok=True)
            if not model.features.fitted and self.group.first:
                self._fit_features()
            self.group.spread(model.state_dict().values())
            self.checkpoint.average.restart()
        self.group.wait()

    def _fit_features(self) -> None:
        """Fix the features' normalisation to the first usable batches, whoever trains on them."""
        frames: list[Tensor] = []
        skipped: list[Skipped] = []
        for step in range(_BATCHES_TRIED):
            part = Part.of(self.batches.batch(step), self.model)
            skipped += part.skipped
            features, counts = self.model.features(*part.pcm(self.model, self.group.device))
            rows = [row[:n] for row, n in zip(features, counts.tolist(), strict=True)]
            if usable := [row for row in rows if len(row) and row.isfinite().all()]:
                frames.append(torch.cat(usable))
            if len(frames) == _BATCHES_FOR_FEATURES:
                break
        if not frames:
            raise NearfutureError(
                f"none of the first {_BATCHES_TRIED} batches can be trained on: "
                f"{'; '.join(map(str, skipped[:3]))}"
            )
        self.model.features.fit(torch.cat(frames))

    def run(
        self,
        report: Callable[[Progress], None] = lambda _: None,
        *,
        stop: Callable[[], bool] = lambda: False,
    ) -> bool:
        """Train until the last step, or until `stop` says so; whether the last step was done.

        The checkpoint is written before the first step, every `save_every` steps, after every look
        at the recordings kept apart and at the end, however it ends; but not where the optimiser
        itself was interrupted, since half a step is none.

        Args:
            report: told after each step, in the first process.
            stop: asked before each step; one process that says so stops all.
        """
        state, options = self.checkpoint, self.options
        if not self._between_steps:
            state.restore(self.path)
            self._between_steps = True
        if not self.path.exists():
            self._save()
        log = Log(self.folder, state.step)
        self._speed = Speed()
        try:
            if self._due():  # and it was interrupted while it looked
                self._look(log)
            while state.step < options.steps and not self.group.any(stop()):
                progress = self._step(log)
                if self._due():
                    progress = dataclasses.replace(progress, watched=self._look(log))
                    self._save()
                elif state.step % options.save_every == 0:
                    self._save()
                if self.group.first:
                    report(progress)
        finally:
            log.close()
            if self._between_steps:
                self._save()
        return state.step >= options.steps

    def _due(self) -> bool:
        """Whether it is time to look at the recordings kept apart."""
        step, every = self.checkpoint.step, self.options.watch_every
        due = step > 0 and (step % every == 0 or step >= self.options.steps)
        return self.watch is not None and due and self.checkpoint.looked != step

    def _save(self) -> None:
        if self.group.first:
            self.checkpoint.save(self.path)

    def _look(self, log: Log) -> Mapping[str, float]:
        """What the average model makes of the recordings kept apart; keeps it if it is the best."""
        state, key, figures = self.checkpoint, self.options.keep_by, {}
        if self.watch is not None and self.group.first:
            model = state.average.model
            if self.group.device.type != "cpu":
                model = copy.deepcopy(model).cpu()
            figures = dict(self.watch(model))
            if key not in figures:
                raise NearfutureError(
                    f"the best model is kept by {key!r}, but what is watched is "
                    f"{', '.join(figures) or 'nothing'}; set keep_by to one of those"
                )
            log.add(state.step, {f"dev/{name}": value for name, value in figures.items()})
            finite = {name: value for name, value in figures.items() if math.isfinite(value)}
            state.history.append({"step": state.step, "watched": finite})
            # Of equals the later one: it has learnt more.
            if key in finite and finite[key] <= state.best.get(key, math.inf):
                state.best = {**finite, "step": state.step}
                state.save_model(self.best_path)
        state.looked = state.step
        return figures

    def _step(self, log: Log) -> Progress:
        began = time.perf_counter()
        state, options, group = self.checkpoint, self.options, self.group
        share = options.share_at(state.step)
        batch = self.batches.batch(state.step, rank=group.rank, ranks=group.ranks)
        part = Part.of(batch, self.model)
        counts = torch.tensor(part.counts(), dtype=torch.float64).to(group.device)
        utterances, characters, frames, left_out, samples = group.sum(counts).tolist()
        skipped = self._all(part.skipped) if left_out else ()
        found = Gradients()
        if utterances:
            found = gradients(
                self.model,
                part,
                options,
                group,
                teacher=self.teacher,
                step=state.step,
                characters=characters,
                frames=frames,
                timed=group.first and (state.step + 1) % options.report_every == 0,
            )
            if not found.finite:
                names = ", ".join(group.gather(tuple(part.names)))
                why = f"not finite, batch skipped ({names})"
                skipped += (Skipped(f"step {state.step}", "not finite", why),)
                left_out += utterances
        else:
            why = "nothing to train on, batch skipped"
            skipped += (Skipped(f"step {state.step}", "empty batch", why),)
        self._between_steps = False
        if found.finite:
            self._apply(found, share)
        state.step += 1
        state.left_out += int(left_out)
        self._between_steps = True
        progress = Progress(
            step=state.step,
            steps=options.steps,
            epoch=part.epoch,
            loss=found.loss,
            skipped=self._news(skipped),
            left_out=state.left_out,
            seconds=time.perf_counter() - began,
            audio_seconds=samples / self.model.config.features.rate,
            rate=options.learning_rate * share,
            gradient_norm=found.norm,
        )
        self._speed.add(seconds=progress.seconds, audio_seconds=progress.audio_seconds)
        if state.step % options.report_every == 0 and group.first:
            self._record(log, progress, found)
        return progress

    def _apply(self, found: Gradients, share: float) -> None:
        """A step of everything that learns."""
        state = self.checkpoint
        state.optimizer.step(share)
        for one, new in zip(statistics(self.model), found.statistics, strict=True):
            one.copy_(new)
        state.average.update()

    def _all(self, skipped: tuple[Skipped, ...]) -> tuple[Skipped, ...]:
        """What all processes skip."""
        lines = self.group.gather(
            tuple(json.dumps([one.name, one.code, one.reason]) for one in skipped)
        )
        return tuple(Skipped(*json.loads(line)) for line in lines)

    def _news(self, skipped: tuple[Skipped, ...]) -> tuple[Skipped, ...]:
        """What has not been named before, however often it comes."""
        news = {one.name: one for one in reversed(skipped) if one.name not in self._named}
        self._named |= set(news)
        return tuple(reversed(news.values()))

    def _record(self, log: Log, progress: Progress, found: Gradients) -> None:
        """Keep a line in the history, and the curves."""
        record: dict[str, float] = {"step": progress.step, "left_out": progress.left_out}
        if math.isfinite(progress.loss):  # JSON has no other numbers
            record["loss"] = round(progress.loss, 4)
        self.checkpoint.history.append(record)
        figures = {
            "learning rate": progress.rate,
            "gradient norm": progress.gradient_norm,
            "left out": progress.left_out,
            **found.figures,
            **self._speed.figures(),
        }
        log.add(progress.step, figures)
        self._speed = Speed()
