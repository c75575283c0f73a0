"""The training loop: a pure function of the options and the data, one step at a time.

Batches, dropout and augmentation follow from the seed and the step alone, so a training that is
interrupted and resumed is the training that was not.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn, optim

from nearfuture.data import Utterance
from nearfuture.error import NearfutureError
from nearfuture.speech import Recognizer, ctc_loss
from nearfuture.training.augmentation import spec_augment
from nearfuture.training.checkpoint import Checkpoint

__all__ = ["Batches", "Progress", "Trainer", "TrainingOptions", "padded"]


class Batches(Protocol):
    """Where training utterances come from: the same ones for the same step, always."""

    def batch(self, step: int) -> list[Utterance]:
        """The utterances of a step."""


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """How a training goes.

    Attributes:
        steps: optimiser steps in all.
        learning_rate: its greatest value; it warms up over `warmup` steps and falls linearly to 0.
        warmup: steps.
        weight_decay: AdamW's.
        clip: greatest norm of the gradient.
        seed: of weights, dropout and augmentation.
        save_every: steps between checkpoints.
    """

    steps: int = 8000
    learning_rate: float = 3e-3
    warmup: int = 300
    weight_decay: float = 0.01
    clip: float = 1.0
    seed: int = 0
    save_every: int = 250

    def rate_at(self, step: int) -> float:
        """The learning rate of a step."""
        rising = min(1.0, (step + 1) / max(1, self.warmup))
        falling = max(0.0, (self.steps - step) / max(1, self.steps - self.warmup))
        return self.learning_rate * min(rising, falling)


@dataclass(frozen=True, kw_only=True)
class Progress:
    """What a training reports after each step.

    Attributes:
        step, steps: done, and in all.
        loss: nats per character, the mean over heads; not a number where nothing was trained on.
        skipped: a line for every utterance or batch that was left out in this step.
        seconds: of this step.
    """

    step: int
    steps: int
    loss: float
    skipped: tuple[str, ...]
    seconds: float


class Trainer:
    """Trains a `Recognizer` on batches, every head together, with CTC.

    The loss is the mean over heads of CTC's negative log-likelihood per target character. An
    utterance with samples that are not finite, with characters that the model cannot write, or
    with more of them than its frames can spell is left out and named; the others of its batch are
    trained on. A batch of which nothing is left, or whose loss or gradient is not finite, is
    skipped and named; it touches no weight.

    Args:
        model: trained in place. Its features are normalised by the first batches, unless it comes
            with statistics of its own, to which its weights are used.
        batches: the data.
        folder: `checkpoint.safetensors` is kept there, and a training found there is resumed.
        options: how to go about it.
        task: what to remember about the data in the checkpoint (JSON values).
    """

    def __init__(
        self,
        model: Recognizer,
        batches: Batches,
        folder: Path,
        options: TrainingOptions,
        *,
        task: dict[str, Any] | None = None,
    ) -> None:
        self.model, self.batches, self.options = model, batches, options
        self.path = folder / "checkpoint.safetensors"
        optimizer = optim.AdamW(
            model.parameters(),
            lr=options.learning_rate,
            betas=(0.9, 0.98),
            weight_decay=options.weight_decay,
        )
        self.checkpoint = Checkpoint(
            model=model,
            optimizer=optimizer,
            step=0,
            options={**dataclasses.asdict(options), **(task or {})},
            history=[],
        )
        self._between_steps = True
        if self.path.exists():
            self.checkpoint.restore(self.path)
        else:
            folder.mkdir(parents=True, exist_ok=True)
            if not model.features.fitted:
                self._fit_features()

    def _fit_features(self) -> None:
        """Fix the features' normalisation to the first batches."""
        frames = [torch.zeros(0, self.model.features.output_size)]
        for step in range(4):
            utterances, _ = self._usable(self.batches.batch(step))
            features, counts = self.model.features(*padded(utterances))
            frames += [row[:n] for row, n in zip(features, counts.tolist(), strict=True)]
        self.model.features.fit(torch.cat(frames))

    def _usable(self, utterances: list[Utterance]) -> tuple[list[Utterance], tuple[str, ...]]:
        """The utterances that can be trained on, and a line for each of the others."""
        usable, skipped = [], []
        for one in utterances:
            try:
                self.model.vocabulary.encode(one.text)
            except NearfutureError as error:
                skipped.append(f"{one.name}: {error}")
                continue
            if np.isfinite(one.samples).all():
                usable.append(one)
            else:
                skipped.append(f"{one.name}: it has samples that are not finite numbers")
        return usable, tuple(skipped)

    def run(
        self,
        report: Callable[[Progress], None],
        *,
        stop: Callable[[], bool] = lambda: False,
    ) -> bool:
        """Train until the last step, or until `stop` says so; whether the last step was done.

        The checkpoint is written before the first step, every `save_every` steps and at the end,
        however it ends; but not where the optimiser itself was interrupted, since half a step is
        none.
        """
        state = self.checkpoint
        if not self.path.exists():
            state.save(self.path)
        if not self._between_steps:
            state.restore(self.path)
            self._between_steps = True
        try:
            while state.step < self.options.steps and not stop():
                report(self._step())
                if state.step % self.options.save_every == 0:
                    state.save(self.path)
        finally:
            if self._between_steps:
                state.save(self.path)
        return state.step >= self.options.steps

    def _step(self) -> Progress:
        began = time.perf_counter()
        state, options = self.checkpoint, self.options
        torch.manual_seed(options.seed * 1_000_003 + state.step)
        utterances, skipped = self._usable(self.batches.batch(state.step))
        for group in state.optimizer.param_groups:
            group["lr"] = options.rate_at(state.step)
        state.optimizer.zero_grad(set_to_none=True)
        value, norm, counted = math.nan, math.nan, 0
        if utterances:
            loss, counted, impossible = self._loss(utterances)
            skipped += impossible
            value = loss.item() if counted else math.nan
            if math.isfinite(value):
                loss.backward()  # type: ignore[no-untyped-call]
                norm = nn.utils.clip_grad_norm_(self.model.parameters(), options.clip).item()
        self._between_steps = False
        if math.isfinite(norm):
            state.optimizer.step()
        elif counted == 0:
            skipped += (f"step {state.step}: nothing to train on, batch skipped",)
        else:
            names = ", ".join(one.name for one in utterances)
            skipped += (f"step {state.step}: not finite, batch skipped ({names})",)
        state.step += 1
        self._between_steps = True
        progress = Progress(
            step=state.step,
            steps=options.steps,
            loss=value,
            skipped=skipped,
            seconds=time.perf_counter() - began,
        )
        if state.step % 50 == 0 and math.isfinite(value):  # JSON has no other numbers
            state.history.append({"step": state.step, "loss": round(progress.loss, 4)})
        return progress

    def _loss(self, utterances: list[Utterance]) -> tuple[Tensor, int, tuple[str, ...]]:
        """The loss, how many utterances it counts, and a line for each of the others."""
        self.model.train()
        pcm, lengths = padded(utterances)
        with torch.no_grad():
            features, counts = self.model.features(pcm, lengths)
            generator = torch.Generator().manual_seed(int(torch.randint(2**62, ()).item()))
            features = spec_augment(features, counts, generator)
        heads, counts = self.model(features, counts)
        vocabulary = self.model.vocabulary
        targets = [vocabulary.encode(one.text) for one in utterances]
        names = [one.name for one in utterances]
        results = [
            ctc_loss(head, counts, targets, names=names, skip_impossible=True) for head in heads
        ]
        characters = max(1, sum(map(len, targets)))
        loss = torch.stack([result.loss for result in results]).mean() / characters
        return loss, results[0].counted, results[0].skipped


def padded(utterances: list[Utterance]) -> tuple[Tensor, Tensor]:
    """Utterances as PCM (B, N, 1), zero past their lengths, and the lengths (B,)."""
    lengths = [one.samples.size for one in utterances]
    pcm = np.zeros((len(utterances), max(lengths, default=0), 1), np.float32)
    for row, one in enumerate(utterances):
        pcm[row, : lengths[row], 0] = one.samples
    return torch.from_numpy(pcm), torch.tensor(lengths, dtype=torch.int64)
