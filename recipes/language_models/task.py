"""What a model is to predict: the next symbol, or symbols that were erased.

Shapes: `B` rows, `T` symbols, `V` symbols of the text.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from nearfuture import NearfutureError, audit
from nearfuture.audit import Report
from recipes.language_models.model import CharacterModel, Kind

ERASED_SHARE = 0.15
"""The share of symbols that are erased (Devlin et al. 2019, §3.1).

All of them are replaced by the symbol for erased ones; BERT leaves a tenth as they are and replaces
another tenth by random words, so that fine-tuning on texts without erased words starts closer.
"""


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Inputs and targets as a loss reads them.

    Attributes:
        inputs: (B, T) int64.
        targets: (B, T) int64, aligned with the outputs.
        counted: (B, T) bool, which targets the loss counts.
    """

    inputs: Tensor
    targets: Tensor
    counted: Tensor


def random_windows(numbers: Tensor, rows: int, frames: int, generator: torch.Generator) -> Tensor:
    """Cut `rows` windows (B, T + 1) of a text (N,) at random places.

    Raises:
        NearfutureError: for a text shorter than a window.
    """
    last = len(numbers) - frames
    if last < 1:
        raise NearfutureError(
            f"a window has {frames + 1} symbols, but the text only {len(numbers)}: take fewer "
            f"`frames`",
            parameter="frames",
        )
    starts = torch.randint(last, (rows,), generator=generator)
    return numbers[starts[:, None] + torch.arange(frames + 1)]


def batch(kind: Kind, windows: Tensor, generator: torch.Generator) -> Batch:
    """Make inputs and targets of windows (B, T + 1), as the kind of model asks for.

    Args:
        kind: a masked model guesses erased symbols, any other the next symbol.
        windows: symbols of the text; a model reads the first T.
        generator: decides what is erased.

    >>> windows = torch.tensor([[3, 1, 4, 1]])
    >>> made = batch("one_way", windows, torch.Generator())
    >>> made.inputs.tolist(), made.targets.tolist()
    ([[3, 1, 4]], [[1, 4, 1]])
    """
    inputs = windows[:, :-1]
    if kind != "masked":
        return Batch(
            inputs=inputs,
            targets=windows[:, 1:],
            counted=torch.ones_like(inputs, dtype=torch.bool),
        )
    erased = torch.rand(inputs.shape, generator=generator) < ERASED_SHARE
    # At least one, so that every row has a target.
    fallback = torch.randint(inputs.shape[1], (len(inputs), 1), generator=generator)
    erased |= (torch.arange(inputs.shape[1]) == fallback) & ~erased.any(dim=1, keepdim=True)
    return Batch(inputs=inputs, targets=inputs, counted=erased)


def read(model: CharacterModel, made: Batch) -> Tensor:
    """The inputs as the model reads them: a masked one sees the erased symbol where it guesses."""
    if model.kind != "masked":
        return made.inputs
    return made.inputs.masked_fill(made.counted, model.erased)


def audit_labels(model: CharacterModel, made: Batch, *, rows: int = 4, frames: int = 24) -> Report:
    """Whether the model can read its targets in its inputs: `audit.labels`, before any step.

    Args:
        model: trained or not; only what its outputs depend on counts.
        made: a batch as in training.
        rows: rows of it that the audit reads.
        frames: symbols of each row that it reads.
    """
    return audit.labels(
        model.eval(),
        read(model, made)[:rows, :frames],
        made.targets[:rows, :frames],
        where=made.counted[:rows, :frames],
    )
