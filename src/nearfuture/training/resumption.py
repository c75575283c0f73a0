"""What may be another thing when a training goes on, and what it is told about that."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from nearfuture.training.options import TrainingOptions

_FROM_STEPS = ("steps", "warmup", "watch_every", "report_every", "save_every")
_ROUNDING = ("threads", "processes", "newton_schulz", "bfloat16")

MAY_CHANGE = frozenset((*_FROM_STEPS, *_ROUNDING, "teacher"))
"""The options without which a training is still itself: how long, how computed, by whom taught."""


def said(
    changes: Mapping[str, tuple[Any, Any]], options: TrainingOptions, step: int
) -> tuple[str, ...]:
    """A line for each thing that has changed and matters.

    Args:
        changes: before and now, by the name of the option.
        options: those of now.
        step: where the training stands.

    >>> said({"threads": (2, 1)}, TrainingOptions(), 0)[0]
    'threads 2 → 1: the weights will differ in their last digits from those of an uninterrupted ...'
    """
    lines = []
    if "steps" in changes:
        steps, now = changes["steps"]
        warmup, _ = changes.get("warmup", (options.warmup, None))
        before = dataclasses.replace(options, steps=steps, warmup=warmup)
        old, new = before.share_at(step), options.share_at(step)
        lines.append(
            f"steps {steps} → {now}: the learning rate follows from their number, so that after "
            f"step {step} it is {new:.0%} of its greatest value, where it was {old:.0%}"
            if step < now
            else f"steps {steps} → {now}: {step} are done, so that nothing is left to train"
        )
    rounding = [
        f"{name} {told[0]} → {told[1]}" for name, told in changes.items() if name in _ROUNDING
    ]
    if rounding:
        lines.append(
            f"{', '.join(rounding)}: the weights will differ in their last digits from those of an "
            f"uninterrupted training"
        )
    if "teacher" in changes:
        lines.append("the bidirectional model is another one: it teaches as it is now")
    return tuple(lines)
