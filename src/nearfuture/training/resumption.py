"""What may change when a training is resumed, and what the user is warned of."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nearfuture.error import NearfutureError
from nearfuture.training.options import ScheduleOptions

_FROM_STEPS = ("steps", "epochs", "warmup", "validate_every", "report_every", "save_every")
_ROUNDING = ("threads", "processes", "newton_schulz", "bfloat16")

MAY_CHANGE = frozenset((*_FROM_STEPS, *_ROUNDING, "teacher"))
"""Fields without which a training is still itself: how long, how computed, by whom taught."""

_LONGEST_VALUE = 30  # characters of a value that a message shows


class OtherTrainingError(NearfutureError):
    """A checkpoint was written by a training with other options, other data or another model.

    Attributes:
        changes: The value in the checkpoint and the one now, by the name of the field.
    """

    code = "conflict"

    def __init__(self, path: Path, changes: Mapping[str, tuple[Any, Any]]) -> None:
        described = ", ".join(
            f"`{name}` {before} → {now}"
            if max(len(str(before)), len(str(now))) <= _LONGEST_VALUE
            else f"`{name}` changed"
            for name, (before, now) in changes.items()
        )
        super().__init__(
            f"{path} was started otherwise: {described}; resume with the same values, or start "
            f"afresh in another folder",
            parameter=next(iter(changes)),
        )
        self.changes = changes


def changed_fields(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Compare nested values and return those that differ, by the name of their field.

    >>> changed_fields({"optimizer": {"clip": 1.0}, "seed": 0}, {"optimizer": {"clip": 2.0}})
    {'clip': (1.0, 2.0), 'seed': (0, None)}
    """
    changes: dict[str, tuple[Any, Any]] = {}
    for name in {**before, **now}:
        old, new = before.get(name), now.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            changes |= changed_fields(old, new)
        elif old != new:
            changes[name] = old, new
    return changes


def describe_changes(
    changes: Mapping[str, tuple[Any, Any]], schedule: ScheduleOptions, step: int
) -> tuple[str, ...]:
    """Write a line for each change that matters.

    Args:
        changes: Values before and now, by the name of the field.
        schedule: The schedule of now.
        step: The number of steps done.

    >>> describe_changes({"threads": (2, 1)}, ScheduleOptions(), 0)[0]
    'threads 2 → 1: the weights will differ in their last digits from those of an uninterrupted ...'
    """
    lines = []
    if "steps" in changes:
        steps, now = changes["steps"]
        warmup, _ = changes.get("warmup", (schedule.warmup, None))
        before = dataclasses.replace(schedule, steps=steps, warmup=warmup)
        old, new = before.lr_scale(step), schedule.lr_scale(step)
        lines.append(
            f"steps {steps} → {now}: the learning rate follows from their number, so that after "
            f"step {step} it is {new:.0%} of its greatest value, where it was {old:.0%}"
            if step < now
            else f"steps {steps} → {now}: {step} are done, so that nothing remains to be trained"
        )
    rounding = [
        f"{name} {before} → {now}" for name, (before, now) in changes.items() if name in _ROUNDING
    ]
    if rounding:
        lines.append(
            f"{', '.join(rounding)}: the weights will differ in their last digits from those of an "
            f"uninterrupted training"
        )
    if "teacher" in changes:
        lines.append("the bidirectional model changed: it teaches as it is now")
    return tuple(lines)
