"""The exponential moving average of a model's weights: what is validated, kept and exported."""

from __future__ import annotations

import copy

import torch

from nearfuture.model import Recognizer


class EMA:
    """An exponential moving average of everything a model has learnt.

    `a ← a + (1 - d) (w - a)` with `d = min(decay, (1 + n) / (10 + n))` after n updates (the warm-up
    of TensorFlow's `ExponentialMovingAverage`), over weights and the running statistics of batch
    norms alike, since those belong to these weights. With a decay of 0 it is the model itself.

    Args:
        model: What is averaged; the average begins as a copy of it.
        decay: d, from 0 to below 1.

    Attributes:
        model: The average, in evaluation mode.
        updates: n.
    """

    def __init__(self, model: Recognizer, decay: float) -> None:
        self.source, self.decay = model, decay
        self.model = copy.deepcopy(model).eval().requires_grad_(False)
        self.updates = 0

    @torch.no_grad()
    def update(self) -> None:
        """Follow the model by one step."""
        decay = min(self.decay, (1 + self.updates) / (10 + self.updates)) if self.decay else 0.0
        for mean, value in zip(
            self.model.state_dict().values(), self.source.state_dict().values(), strict=True
        ):
            mean.lerp_(value, 1 - decay)
        self.updates += 1

    def restart(self) -> None:
        """Become the model as it is now."""
        self.model.load_state_dict(self.source.state_dict())
        self.updates = 0
