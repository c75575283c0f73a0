"""How a training goes: plain values that its checkpoint remembers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from nearfuture.error import NearfutureError
from nearfuture.training.augmentation import SpecAugment


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """How a training goes.

    Attributes:
        steps: optimiser steps in all. A training may be resumed with more or fewer; where the
            learning rate decays, it then follows from the new number.
        learning_rate: its greatest value.
        matrix_rate: the greatest learning rate of the encoder's matrices, which Muon moves; with 0
            AdamW moves them like everything else.
        warmup: steps over which it rises.
        decay: how it falls to 0 afterwards: in a line, along half a cosine, or not at all.
        weight_decay: AdamW's.
        clip: greatest norm of the gradient.
        augmentation: what is blanked out of the features.
        average: how slowly the averaged weights follow, which are what is evaluated, kept and
            exported: `a ← a + (1 - d) (w - a)` with `d = min(average, (1 + n) / (10 + n))` after
            n updates. With 0 they are the weights.
        bfloat16: matrix products of the encoder in bfloat16; heads and losses stay in float32.
        seed: of dropout and augmentation.
        save_every: steps between checkpoints.
        watch_every: steps between looks at the recordings that are kept apart.
        report_every: steps between records of the history and of TensorBoard.
        keep_by: of what that look finds, the figure by which the best model is kept: the lower,
            the better.
        distill: weight of the divergence from a teacher, nats per frame; 0 without one.
        shift_frames: by how many frames a head follows its teacher later; of heads not named, by
            none.
        delay_penalty: weight of the divergence of each frame from the next, nats per frame, which
            draws symbols to earlier frames.

    Raises:
        NearfutureError: for a value outside its range.

    >>> TrainingOptions(steps=1000, warmup=100).share_at(550)
    0.5
    """

    steps: int = 8000
    learning_rate: float = 2e-3
    matrix_rate: float = 3e-3
    warmup: int = 300
    decay: Literal["linear", "cosine", "none"] = "linear"
    weight_decay: float = 0.01
    clip: float = 1.0
    augmentation: SpecAugment = field(default_factory=SpecAugment)
    average: float = 0.999
    bfloat16: bool = False
    seed: int = 0
    save_every: int = 250
    watch_every: int = 500
    report_every: int = 50
    keep_by: str = "cer"
    distill: float = 0.0
    shift_frames: Mapping[int, int] = field(default_factory=dict)
    delay_penalty: float = 0.0

    def __post_init__(self) -> None:
        for name, value, least in (
            ("steps", self.steps, 1),
            ("warmup", self.warmup, 0),
            ("learning_rate", self.learning_rate, 0.0),
            ("matrix_rate", self.matrix_rate, 0.0),
            ("save_every", self.save_every, 1),
            ("watch_every", self.watch_every, 1),
            ("report_every", self.report_every, 1),
            ("distill", self.distill, 0.0),
            ("delay_penalty", self.delay_penalty, 0.0),
        ):
            if not least <= value < math.inf:
                raise NearfutureError(f"{name} is at least {least}, not {value}")
        if not self.clip > 0:
            raise NearfutureError(f"clip is a norm above 0, not {self.clip}; inf clips nothing")
        if not 0 <= self.average < 1:
            raise NearfutureError(f"average is a share from 0 to below 1, not {self.average}")
        if self.decay not in ("linear", "cosine", "none"):
            raise NearfutureError(f"decay is linear, cosine or none, not {self.decay!r}")
        if self.shift_frames and not self.distill:
            raise NearfutureError("shift_frames has no effect without a teacher: set distill")

    def share_at(self, step: int) -> float:
        """The learning rates of a step, as a share of their greatest values."""
        rising = min(1.0, (step + 1) / max(1, self.warmup))
        left = (self.steps - step) / max(1, self.steps - self.warmup)
        left = min(1.0, max(0.0, left))
        falling = {
            "linear": left,
            "cosine": (1 - math.cos(math.pi * left)) / 2,
            "none": 1.0,
        }[self.decay]
        return min(rising, falling)
