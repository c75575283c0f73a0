"""Which lengths a model accepts, which axis of its output is time, and what its stride is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearfuture.audit.adapters import CannotRun
from nearfuture.audit.audited_model import AuditedModel, axis_letters
from nearfuture.audit.outputs import OtherOutputs, other_outputs

Array = NDArray[Any]

_LONGEST_PERIOD = 32
"""A model may accept only every so manieth length; longer periods must divide the example."""


@dataclass(frozen=True)
class Axes:
    """The axes of input and output, as calls of other lengths show them.

    Attributes:
        model: the model, with its output layout where that had to be found.
        period: lengths that are shorter or longer by multiples of this many frames can be run; 0
            where the model accepts one length only.
        second_call_error: what the second call raised, where a first call with the same input
            works.
        others: the other outputs.
        notes: how the output was understood.
    """

    model: AuditedModel
    period: int
    others: OtherOutputs = field(default_factory=OtherOutputs)
    second_call_error: str = ""
    notes: tuple[str, ...] = ()


def find_axes(model: AuditedModel, base: Array, whole: Any) -> Axes:
    """Find the accepted lengths, and the time axis of the output by changing the length.

    Args:
        model: the model.
        base: (T, …), the row that is probed.
        whole: the model's result for it.
    """
    half = len(base) // 2
    tripped = ""
    try:
        shorter = _call(model, base[:half])
    except CannotRun as error:
        shorter, refused = None, error
        # A state that stays from the first call may be what the second fails on.
        if reset := model.adapter.reset_each_call():
            try:
                shorter = _call(replace(model, adapter=reset), base[:half])
            except CannotRun:
                pass
            else:
                model, tripped = replace(model, adapter=reset), str(error)
    period = 0
    for candidate in _periods(len(base)):
        try:
            result = _call(model, base[: len(base) - candidate])
        except CannotRun:
            continue
        period, shorter = candidate, result if shorter is None else shorter
        break
    if shorter is None:
        note = f"it runs on {len(base)} frames only, so other lengths were not tried ({refused})"
        return Axes(model, 0, notes=(note,))
    layout, note = _output_layout(model, whole, shorter)
    if layout:
        model = replace(model, spec=replace(model.spec, output_layout=layout))
    others = other_outputs(model, whole, shorter)
    return Axes(model, period or len(base) - half, others, tripped, (note,) if note else ())


def _call(model: AuditedModel, row: Array) -> Any:
    rows = model.rows or 1
    return model.call(np.stack([row] * rows), [len(row)] * rows)


def _periods(frames: int) -> Iterator[int]:
    """Yield numbers of frames by which a sequence may be shortened, the smallest first.

    >>> list(_periods(80))[-3:]
    [31, 32, 40]
    """
    yield from range(1, min(_LONGEST_PERIOD, frames - 1) + 1)
    yield from (n for n in range(_LONGEST_PERIOD + 1, frames // 2 + 1) if frames % n == 0)


def _output_layout(model: AuditedModel, whole: Any, shorter: Any) -> tuple[str, str]:
    """Return the layout that two results show, and how it was understood; "" where it is usual."""
    before, after = (list(model.select(result).shape) for result in (whole, shorter))
    guess = model.output_layout(len(before))
    row_axis = guess.find("N")
    if model.spec.output_layout is not None or len(before) != len(after):
        return "", ""
    if row_axis >= 0:  # the two calls had different numbers of rows
        before[row_axis] = after[row_axis]
    moved = [i for i, (a, b) in enumerate(zip(before, after, strict=True)) if a != b]
    if not moved:
        if model.knows_padding:
            return "", ""
        return axis_letters(len(guess), row_axis, -1), (
            f"the output has shape {tuple(before)} whatever the length: one output for the whole "
            f"sequence, all of which counts as observed"
        )
    if len(moved) == 1 and guess.find("T") != moved[0]:
        if row_axis == moved[0]:
            row_axis = 0 if moved[0] else 1
        layout = axis_letters(len(guess), row_axis if "N" in model.layout else -1, moved[0])
        return layout, f"output read as {layout}: that axis changes with the length"
    return "", ""


def measure_stride(model: AuditedModel, base: Array, outputs: int, period: int) -> Fraction:
    """Return input frames per output frame, from the lengths at which outputs are added.

    A length that cannot be run says nothing: only every `period`-th is tried.

    Args:
        model: the model.
        base: (T, …), the row that is probed.
        outputs: how many outputs it has.
        period: as in `Axes`.
    """
    frames = len(base)
    if outputs == frames:
        return Fraction(1)
    if outputs > frames:
        return Fraction(1, round(outputs / frames))
    usual = Fraction(max(1, round(frames / outputs)))
    if not period or outputs < 3:
        return usual

    def count(steps: int) -> int:
        n = frames - steps * period
        try:
            return int(model.run(base[None, :n], [n]).frames.shape[1])
        except CannotRun:  # it is too short
            return 0

    most = (frames - 1) // period
    first = _first_below(count, outputs, most)
    second = _first_below(count, count(first), most)
    fewer = count(first) - count(second)
    return Fraction((second - first) * period, fewer) if fewer > 0 and count(second) else usual


def _first_below(count: Any, limit: int, most: int) -> int:
    """Return the smallest number of steps after which a falling count is below a limit."""
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if count(middle) < limit else (middle, high)
    return high
