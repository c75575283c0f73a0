"""What is measured, one unit at a time: each is a function of a cell, a size and a seed."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from nearfuture.budget import Cell
from nearfuture.layers import Bidirectional, Recurrent
from recipes.state.gradient import gradient_norms
from recipes.state.perturbation import state_difference
from recipes.state.recaller import CELLS, LearningOptions, Recaller, accuracy, learn
from recipes.state.task import RecallTask, with_another_symbol

KEPT = 20
"""The most frames for which a recaller learns to keep the symbol."""
SPAN = 100
"""Frames after the change, or before the end, for which it is then followed."""
WITHIN = 60
"""Frames on either side of the one whose gradient is measured."""
DISTANCES = (0, 2, 4, 6, 8, 10, 12, 15, 20)
"""Frames on either side of a symbol in the middle."""

_ROWS, _UNMARKED = 64, 5


@dataclass(frozen=True, kw_only=True)
class Memory:
    """How long a state shows a change, before and after learning to recall.

    Attributes:
        untrained: what is left of a change of the marked symbol after 0, 1, … `SPAN` frames, in
            float64, before the first step of the training.
        marked: the same as `untrained` after the training.
        unmarked: what is left of a change of a symbol that need not be kept, after the training.
        recall: share of right answers when up to `KEPT` frames follow, as in training.
        recall_far: the same where `SPAN` frames follow.
    """

    untrained: list[float]
    marked: list[float]
    unmarked: list[float]
    recall: float
    recall_far: float


def memory(cell: Cell, hidden_size: int, seed: int, options: LearningOptions) -> Memory:
    """Measure how long one layer shows a change in its state, before and after it learns."""
    torch.manual_seed(seed)
    task = RecallTask(before=(0, 0), after=(1, KEPT))
    model = Recaller(cell, hidden_size, task)
    layer = model.layer
    assert isinstance(layer, Recurrent)
    untrained = _left(layer.double(), 0, seed)
    layer.float()
    learn(model, task, options, seed=seed)
    far = RecallTask(before=(0, 0), after=(SPAN, SPAN))
    recall, recall_far = (accuracy(model, each, seed=seed + 1000) for each in (task, far))
    return Memory(
        untrained=untrained,
        marked=_left(layer.double(), 0, seed),
        unmarked=_left(layer.double(), _UNMARKED, seed),
        recall=recall,
        recall_far=recall_far,
    )


def _left(layer: Recurrent, frame: int, seed: int) -> list[float]:
    """What is left of a change of one frame; the first frame is the marked one."""
    task = RecallTask(before=(0, 0), after=(SPAN + frame, SPAN + frame))
    x = task.batch(_ROWS, torch.Generator().manual_seed(seed + 2000)).x
    left: list[float] = state_difference(layer, x, with_another_symbol(x, frame), frame).tolist()
    return left


@dataclass(frozen=True, kw_only=True)
class Gradients:
    """How a gradient fades with the distance, `‖∂h_t/∂x_s‖` by |t − s| from 0 to `WITHIN`.

    Attributes:
        alone: of a layer of one direction.
        ahead: of the same layer beside a backward direction.
        back: of the backward direction, whose weights are its own.
    """

    alone: list[float]
    ahead: list[float]
    back: list[float]


def gradients(cell: Cell, hidden_size: int, seed: int) -> Gradients:
    """Measure the gradients of one frame in the middle, in one direction and in both, in float64.

    The weights are those of the first step, as torch draws them, where it is decided what can be
    learnt.
    """
    torch.manual_seed(seed)
    task = RecallTask(before=(WITHIN, WITHIN), after=(WITHIN, WITHIN))
    layer = CELLS[cell](task.input_size, hidden_size).double()
    x = task.batch(4, torch.Generator().manual_seed(seed)).x
    alone = gradient_norms(layer, x, WITHIN).ahead
    both = gradient_norms(Bidirectional(layer), x, WITHIN)
    assert both.back is not None
    return Gradients(
        alone=alone[: WITHIN + 1].flip(0).tolist(),
        ahead=both.ahead[: WITHIN + 1].flip(0).tolist(),
        back=both.back[WITHIN:].tolist(),
    )


@dataclass(frozen=True, kw_only=True)
class Recall:
    """How often a recaller is right about a symbol in the middle of a sequence.

    Attributes:
        right: share of right answers by the frames on either side of it.
    """

    right: dict[int, float]


def recall_in_the_middle(
    cell: Cell,
    hidden_size: int,
    seed: int,
    options: LearningOptions,
    *,
    bidirectional: bool = False,
) -> Recall:
    """Train on a symbol with as many frames before it as after it, up to `KEPT`, and test it.

    In the middle, a backward direction is no shortcut: both directions pass as many frames. Nearer
    to the beginning, the backward direction has fewer to pass, which is another matter.
    """
    torch.manual_seed(seed)
    task = RecallTask(before=(0, KEPT), after=None)
    model = Recaller(cell, hidden_size, task, bidirectional=bidirectional)
    learn(model, task, options, seed=seed)
    tests = {k: RecallTask(before=(k, k), after=None) for k in DISTANCES}
    return Recall(right={k: accuracy(model, test, seed=seed + 1000) for k, test in tests.items()})
