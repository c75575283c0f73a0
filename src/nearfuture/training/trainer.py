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
from pathlib import Path

import torch
from torch import Tensor

from nearfuture.data import Skipped
from nearfuture.error import NearfutureError
from nearfuture.layers import SequenceBatchNorm
from nearfuture.model import Recognizer
from nearfuture.training.checkpoint import BEST, CHECKPOINT, Checkpoint
from nearfuture.training.data import TrainingData
from nearfuture.training.distributed import Group
from nearfuture.training.ema import EMA
from nearfuture.training.gradient import GradientResult, Step, compute_gradients, statistics
from nearfuture.training.local_batch import BatchTotals, LocalBatch
from nearfuture.training.log import Speed, TensorBoardLog
from nearfuture.training.muon import newton_schulz_dtype
from nearfuture.training.optimizer import Optimizer
from nearfuture.training.options import TrainingOptions
from nearfuture.training.progress import StepProgress
from nearfuture.training.resumption import describe_changes
from nearfuture.training.teacher import check_teacher, fingerprint

_BATCHES_FOR_FEATURES = 4  # which their normalisation is fitted to
_BATCHES_TRIED = 64  # to find those


class Trainer:
    """Trains a `Recognizer` on batches, every head together, with CTC.

    The loss is the mean over heads of CTC's negative log-likelihood per target character, plus the
    divergences that the options ask for, per frame. An utterance with samples that are not finite,
    with characters that the model cannot write, or with more of them than its frames can spell is
    skipped before it reaches the model, and named; the others of its batch are trained on. A step
    of which nothing remains, or whose loss or gradient is not finite, is skipped and named; it
    touches no weight, average, moment or statistic.

    With several processes each computes its share of the batch, and sums of losses, counts and
    gradients are added up, so that a step is the same however many there are, but for rounding
    (which Muon may make 1e-4 where it computes in bfloat16) and for dropout, which each draws for
    itself. The main process saves, reports and validates.

    Args:
        model: Trained in place. Its features are normalised by the first batches, unless it comes
            with statistics of its own, which its weights are used to.
        data: The batches, and what validates.
        options: How to train. The steps are those of the schedule, never epochs.
        folder: `checkpoint.safetensors` and the TensorBoard log are kept there, and the best model
            in `best.safetensors`; a training found there is resumed.
        teacher: A model whose distributions the heads learn; nothing is blanked out of its
            features.
        group: The processes that share the work.

    Attributes:
        notes: A line for each way in which a training that is resumed is not the one that was
            begun.

    Raises:
        NearfutureError: Options fit neither the model nor the checkpoint in the folder, or the
            teacher has other features or symbols.
    """

    def __init__(
        self,
        model: Recognizer,
        data: TrainingData,
        options: TrainingOptions,
        folder: Path,
        *,
        teacher: Recognizer | None = None,
        group: Group | None = None,
    ) -> None:
        self.group = group or Group()
        self.model, self.data, self.options = model.to(self.group.device), data, options
        check_teacher(teacher, model, options.distillation)
        self.teacher = teacher and teacher.to(self.group.device).eval().requires_grad_(False)
        if self.teacher:
            self.teacher.features.train()  # by the same transform as the student's
        self.folder = folder
        self.path, self.best_path = folder / CHECKPOINT, folder / BEST
        self.checkpoint = Checkpoint(
            ema=EMA(model, options.ema),
            optimizer=Optimizer(model, options.optimizer),
            options=options.stored(),
            data=data.about,
            run={
                "teacher": None if teacher is None else fingerprint(teacher),
                # Sums of floating-point numbers depend on how they are split and rounded.
                "threads": torch.get_num_threads(),
                "processes": self.group.world_size,
                "newton_schulz": str(newton_schulz_dtype(self.group.device)).split(".")[-1],
            },
        )
        for module in model.modules():
            if isinstance(module, SequenceBatchNorm):
                module.shared = self.group.world_size > 1
        self.notes: tuple[str, ...] = ()
        self._between_steps = True
        self._named: set[str] = set()
        self._speed = Speed()
        # No process writes a checkpoint before all have looked for one.
        if self.group.any(self.path.exists()):
            changes = self.checkpoint.restore(self.path)
            self.notes = describe_changes(changes, options.schedule, self.checkpoint.step)
        else:
            folder.mkdir(parents=True, exist_ok=True)
            if not model.features.fitted and self.group.is_main:
                self._fit_features()
            self.group.broadcast(model.state_dict().values())
            self.checkpoint.ema.restart()
        self.group.barrier()

    def _fit_features(self) -> None:
        """Fit the features' normalisation to the first usable batches, whoever trains on them."""
        frames: list[Tensor] = []
        skipped: list[Skipped] = []
        for step in range(_BATCHES_TRIED):
            batch = LocalBatch.of(self.data.batches.batch(step), self.model)
            skipped += batch.skipped
            features, counts = self.model.features(*batch.pcm(self.model, self.group.device))
            rows = [row[:n] for row, n in zip(features, counts.tolist(), strict=True)]
            if usable := [row for row in rows if len(row) and row.isfinite().all()]:
                frames.append(torch.cat(usable))
            if len(frames) == _BATCHES_FOR_FEATURES:
                break
        if not frames:
            raise NearfutureError(
                f"none of the first {_BATCHES_TRIED} batches can be trained on: "
                f"{'; '.join(map(str, skipped[:3]))}",
                parameter="data",
            )
        self.model.features.fit(torch.cat(frames))

    def run(
        self,
        report: Callable[[StepProgress], None] = lambda _: None,
        *,
        stop: Callable[[], bool] = lambda: False,
    ) -> bool:
        """Train until the last step, or until `stop` says so; whether the last step was done.

        The checkpoint is written before the first step, every `save_every` steps, after every
        validation and at the end, however it ends; but not where the optimiser itself was
        interrupted, since half a step is none.

        Args:
            report: Called after each step, in the main process.
            stop: Asked before each step; one process that says so stops all.
        """
        state, schedule = self.checkpoint, self.options.schedule
        if not self._between_steps:
            state.restore(self.path)
            self._between_steps = True
        if not self.path.exists():
            self._save()
        log = TensorBoardLog(self.folder, state.step)
        self._speed = Speed()
        try:
            if self._validation_is_due():  # and it was interrupted
                self._validate(log)
            while state.step < schedule.total_steps and not self.group.any(stop()):
                progress = self._step(log)
                if self._validation_is_due():
                    progress = dataclasses.replace(progress, validation=self._validate(log))
                    self._save()
                elif state.step % schedule.save_every == 0:
                    self._save()
                if self.group.is_main:
                    report(progress)
        finally:
            log.close()
            if self._between_steps:
                self._save()
        return state.step >= schedule.total_steps

    def _validation_is_due(self) -> bool:
        step, schedule = self.checkpoint.step, self.options.schedule
        due = step % schedule.validate_every == 0 or step >= schedule.total_steps
        fresh = step > 0 and self.checkpoint.validated_step != step
        return bool(self.data.validation) and due and fresh

    def _save(self) -> None:
        if self.group.is_main:
            self.checkpoint.save(self.path)

    def _validate(self, log: TensorBoardLog) -> Mapping[str, float]:
        """Compute the metrics of the averaged model and keep it if it is the best."""
        state, key = self.checkpoint, self.options.checkpoint_metric
        metrics: Mapping[str, float] = {}
        if self.group.is_main:
            model = state.ema.model
            if self.group.device.type != "cpu":
                model = copy.deepcopy(model).cpu()
            metrics = self.data.metrics(model)
        if metrics:
            if key not in metrics:
                raise NearfutureError(
                    f"`checkpoint_metric` is {key!r}, but the metrics are {', '.join(metrics)}: "
                    f"choose one of those",
                    code="not_found",
                    parameter="checkpoint_metric",
                )
            log.add(state.step, {f"validation/{name}": value for name, value in metrics.items()})
            finite = {name: value for name, value in metrics.items() if math.isfinite(value)}
            state.history.append({"step": state.step, "validation": finite})
            # Of equals the later one: it has learnt more.
            if key in finite and finite[key] <= state.best.get(key, math.inf):
                state.best = {**finite, "step": state.step}
                state.save_model(self.best_path)
        state.validated_step = state.step
        return metrics

    def _step(self, log: TensorBoardLog) -> StepProgress:
        began = time.perf_counter()
        state, options, group = self.checkpoint, self.options, self.group
        number, lr_scale = state.step, options.schedule.lr_scale(state.step)
        due = (number + 1) % options.schedule.report_every == 0 and group.is_main
        share = self.data.batches.batch(number, rank=group.rank, world_size=group.world_size)
        batch = LocalBatch.of(share, self.model)
        totals = self._totals(batch)
        skipped = self._gather(batch.skipped) if totals.skipped else ()
        skipped_count, result = int(totals.skipped), GradientResult()
        if totals.utterances:
            step = Step(number=number, batch=batch, totals=totals, measure_timing=due)
            result = compute_gradients(self.model, self.teacher, step, options, group)
            if not result.finite:
                names = ", ".join(group.gather(tuple(batch.names)))
                reason = f"not finite, batch skipped ({names})"
                skipped += (Skipped(f"step {number}", "not finite", reason),)
                skipped_count += int(totals.utterances)
        else:
            reason = "nothing to train on, batch skipped"
            skipped += (Skipped(f"step {number}", "empty batch", reason),)
        self._between_steps = False
        if result.finite:
            self._apply(result, lr_scale)
        state.step += 1
        state.skipped += skipped_count
        self._between_steps = True
        progress = StepProgress(
            step=state.step,
            steps=options.schedule.total_steps,
            epoch=batch.epoch,
            loss=result.loss,
            skipped=self._unnamed(skipped),
            skipped_total=state.skipped,
            seconds=time.perf_counter() - began,
            audio_seconds=totals.samples / self.model.config.features.rate,
            learning_rate=options.optimizer.rates[0] * lr_scale,
            gradient_norm=result.norm,
        )
        self._speed.add(seconds=progress.seconds, audio_seconds=progress.audio_seconds)
        if due:
            self._record(log, progress, result)
        return progress

    def _totals(self, batch: LocalBatch) -> BatchTotals:
        """Add up the counts of all processes."""
        own = dataclasses.asdict(BatchTotals.of(batch))
        counts = torch.tensor(list(own.values()), dtype=torch.float64).to(self.group.device)
        return BatchTotals(**dict(zip(own, self.group.sum(counts).tolist(), strict=True)))

    def _apply(self, result: GradientResult, lr_scale: float) -> None:
        """Take a step of everything that learns."""
        state = self.checkpoint
        state.optimizer.step(lr_scale)
        for value, new in zip(statistics(self.model), result.statistics, strict=True):
            value.copy_(new)
        state.ema.update()

    def _gather(self, skipped: tuple[Skipped, ...]) -> tuple[Skipped, ...]:
        """Collect what all processes skip."""
        own = tuple(json.dumps([item.name, item.code, item.reason]) for item in skipped)
        return tuple(Skipped(*json.loads(line)) for line in self.group.gather(own))

    def _unnamed(self, skipped: tuple[Skipped, ...]) -> tuple[Skipped, ...]:
        """Keep what has not been named before, however often it comes."""
        new = {item.name: item for item in reversed(skipped) if item.name not in self._named}
        self._named |= set(new)
        return tuple(reversed(new.values()))

    def _record(self, log: TensorBoardLog, progress: StepProgress, result: GradientResult) -> None:
        """Keep a record in the history and in the log."""
        record: dict[str, float] = {"step": progress.step, "skipped": progress.skipped_total}
        if math.isfinite(progress.loss):  # JSON has no other numbers
            record["loss"] = round(progress.loss, 4)
        self.checkpoint.history.append(record)
        metrics = {
            "learning_rate": progress.learning_rate,
            "gradient_norm": progress.gradient_norm,
            "skipped": progress.skipped_total,
            **result.metrics,
            **self._speed.metrics(),
        }
        log.add(progress.step, metrics)
        self._speed = Speed()
