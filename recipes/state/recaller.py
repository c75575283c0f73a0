"""A recurrent layer that learns to recall, and how often it is right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nearfuture.budget import Cell
from nearfuture.layers import GRU, LSTM, RNN, Bidirectional, Recurrent, final_state
from recipes.state.task import RecallTask

CELLS: dict[Cell, Callable[[int, int], Recurrent]] = {"rnn": RNN, "gru": GRU, "lstm": LSTM}


@dataclass(frozen=True, kw_only=True)
class LearningOptions:
    """How a recaller learns: Adam, with a learning rate that falls linearly to 0.

    Args:
        steps: batches that it learns from.
        rows: sequences in a batch.
        lr: the first learning rate.
        gradient_norm: longer gradients are cut to this length, since those of an RNN may explode.
    """

    steps: int = 400
    rows: int = 32
    lr: float = 1e-2
    gradient_norm: float = 1.0


class Recaller(nn.Module):
    """A recurrent layer, in one direction or in both, and a linear classifier of its final state.

    Args:
        cell: the kind of recurrent layer.
        hidden_size: H, width of the state of each direction.
        task: what it is asked.
        bidirectional: read the sequence backwards as well.

    >>> task = RecallTask(before=(0, 0), after=(1, 3))
    >>> batch = task.batch(2, torch.Generator())
    >>> tuple(Recaller("gru", 8, task)(batch.x, batch.lengths).shape)
    (2, 4)
    """

    def __init__(
        self, cell: Cell, hidden_size: int, task: RecallTask, *, bidirectional: bool = False
    ) -> None:
        super().__init__()
        layer = CELLS[cell](task.input_size, hidden_size)
        self.layer: Recurrent | Bidirectional = Bidirectional(layer) if bidirectional else layer
        self.classifier = nn.Linear(self.layer.output_size, task.symbols)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Return the logits of each symbol (B, S)."""
        logits: Tensor = self.classifier(final_state(self.layer, x, lengths))
        return logits


def learn(model: Recaller, task: RecallTask, options: LearningOptions, *, seed: int) -> None:
    """Train a recaller in place, on batches that follow from the seed."""
    generator = torch.Generator().manual_seed(seed)
    parameters = list(model.parameters())
    optimizer = torch.optim.Adam(parameters, lr=options.lr)
    model.train()
    for step in range(options.steps):
        for group in optimizer.param_groups:
            group["lr"] = options.lr * (1 - step / options.steps)
        batch = task.batch(options.rows, generator)
        loss = F.cross_entropy(model(batch.x, batch.lengths), batch.answers)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(parameters, options.gradient_norm)
        optimizer.step()
    model.eval()


@torch.no_grad()
def accuracy(model: Recaller, task: RecallTask, *, rows: int = 512, seed: int) -> float:
    """Return the share of right answers on new sequences."""
    batch = task.batch(rows, torch.Generator().manual_seed(seed))
    right = model(batch.x, batch.lengths).argmax(dim=-1) == batch.answers
    return float(right.double().mean())
