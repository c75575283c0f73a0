"""Which axis of an output is time, and how many input frames one output frame stands for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearfuture.audit.adapters import CannotRun
from nearfuture.audit.audited_model import AuditedModel, axis_letters

Array = NDArray[Any]


@dataclass(frozen=True)
class OutputAxes:
    """What a call of another length showed.

    Attributes:
        model: the model, with its output layout where that had to be found.
        any_length: whether the length may be changed.
        second_call_error: what the second call raised, where a first call with the same input
            works.
        notes: how the output was understood.
    """

    model: AuditedModel
    any_length: bool = True
    second_call_error: str = ""
    notes: tuple[str, ...] = ()


def find_output_layout(model: AuditedModel, base: Array, whole: Any) -> OutputAxes:
    """Find the time axis of the output by changing the length.

    Args:
        model: the model.
        base: (T, …), the row that is probed.
        whole: the model's answer to it.
    """
    half = max(1, len(base) // 2)
    rows = model.rows or 1
    x, n = np.stack([base[:half]] * rows), [half] * rows
    tripped = ""
    try:
        shorter = model.call(x, n)
    except CannotRun as error:
        reset = model.adapter.reset_each_call()
        try:
            shorter = replace(model, adapter=reset or model.adapter).call(x, n)
        except CannotRun:
            note = f"it runs on {len(base)} frames only, so other lengths were not tried ({error})"
            return OutputAxes(model, any_length=False, notes=(note,))
        if reset:
            model, tripped = replace(model, adapter=reset), str(error)
    before, after = (list(model.select(answer).shape) for answer in (whole, shorter))
    guess = model.output_layout(len(before))
    row_axis = guess.find("N")
    if row_axis >= 0:  # the two calls had different numbers of rows
        before[row_axis] = after[row_axis] if len(before) == len(after) else before[row_axis]
    found = OutputAxes(model, second_call_error=tripped)
    if model.spec.output_layout is not None or len(before) != len(after):
        return found
    moved = [i for i, (a, b) in enumerate(zip(before, after, strict=True)) if a != b]
    if not moved:
        if model.knows_padding:
            return found
        layout = axis_letters(len(guess), row_axis, -1)
        note = (
            f"the output has shape {tuple(before)} whatever the length: one output for the whole "
            f"sequence, all of which counts as observed"
        )
    elif len(moved) == 1 and guess.find("T") != moved[0]:
        if row_axis == moved[0]:
            row_axis = 0 if moved[0] else 1
        layout = axis_letters(len(guess), row_axis if "N" in model.layout else -1, moved[0])
        note = f"output read as {layout}: that axis changes with the length"
    else:
        return found
    model = replace(model, spec=replace(model.spec, output_layout=layout))
    return replace(found, model=model, notes=(note,))


def measure_stride(model: AuditedModel, base: Array, outputs: int, *, any_length: bool) -> Fraction:
    """Return input frames per output frame, from the lengths at which an output is added."""
    frames = len(base)
    if outputs == frames:
        return Fraction(1)
    if outputs > frames:
        return Fraction(1, round(outputs / frames))
    if not any_length or outputs < 3:
        return Fraction(max(1, round(frames / outputs)))

    def has_at_most(count: int) -> Callable[[int], bool]:
        def holds(n: int) -> bool:
            try:
                return int(model.run(base[None, :n], [n]).frames.shape[1]) <= count
            except CannotRun:
                return True

        return holds

    ends = [_last(has_at_most(outputs - missing), 0, frames) for missing in (1, 2)]
    return Fraction(max(1, ends[0] - ends[1]))


def _last(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Return the largest n in [low, high) for which a condition holds that holds up to some n."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
