"""Which axis of an array inside a model is time, and which input frame each of its entries is.

Shapes: `T` input frames.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from fractions import Fraction

from nearfuture.audit.attribution.operation import Array, Operation, unequal

_WINDOWS = re.compile(r"(conv|avg_pool|max_pool|lp_pool|averagepool|maxpool)", re.IGNORECASE)
"""Operations whose last axis is time, whatever its size."""


@dataclass(frozen=True)
class TimeAxis:
    """An axis of time: entry `i` stands for input frame `(i - offset) · rate`.

    Padding on the left adds an offset, which a window without padding uses up.
    """

    axis: int
    rate: Fraction = Fraction(1)
    offset: int = 0

    def frame(self, index: int) -> Fraction:
        """Return the input frame of an entry."""
        return (index - self.offset) * self.rate


@dataclass(frozen=True)
class _Timed:
    """An input of an operation that has a time axis.

    Attributes:
        array: its values.
        resized: its values at another length, if there was such a run.
        time: its time axis.
        first: the first entry along it that changed; None where none did.
    """

    array: Array
    resized: Array | None
    time: TimeAxis
    first: int | None

    @property
    def frame(self) -> Fraction | float:
        """The first input frame that changed; inf where none did."""
        return math.inf if self.first is None else self.time.frame(self.first)


class TimeAxes:
    """The time axes of all arrays of a run, followed from operation to operation.

    An operation may reduce time to something without a time axis (a mean, a last state). Where that
    is broadcast to frames again, the reduction is the culprit, not the sum that brings it back.

    Args:
        frames: T.
        changed_from: the input frame from which on the model's input differs between two runs.
    """

    def __init__(self, frames: int, changed_from: int) -> None:
        self.frames = frames
        self.changed_from = changed_from
        self._sizes = {frames}  # of time axes, where no run of another length tells
        self._of: dict[int, TimeAxis] = {}
        self._reductions: dict[int, Operation] = {}

    def reach(
        self, operation: Operation, probed: Operation, resized: Operation | None
    ) -> tuple[float, Operation]:
        """Return how many input frames before its changed input an operation's output changes.

        Args:
            operation: in the unchanged run.
            probed: the same in the changed run.
            resized: the same in a run of another length, if there is one.

        Returns:
            The frames, and the operation that is the culprit for them.
        """
        sources: list[_Timed] = []
        reduction: Operation | None = None
        for i, (array, changed) in enumerate(zip(operation.inputs, probed.inputs, strict=False)):
            other = resized.inputs[i] if resized and i < len(resized.inputs) else None
            axis = _time_axis(array, other, self._sizes)
            if axis is None:
                if _changed(array, changed):
                    reduction = self._reductions.get(id(array), reduction)
                continue
            time = replace(self._of.get(id(array), TimeAxis(axis)), axis=axis)
            sources.append(_Timed(array, other, time, _first_change(array, changed, axis)))
        first = min((source.frame for source in sources), default=math.inf)
        before = self.changed_from if math.isinf(first) else first
        if resized is None and sources and _WINDOWS.match(operation.name):
            self._sizes.add(operation.outputs[0].shape[-1])
        reach = 0.0
        for i, (array, changed) in enumerate(zip(operation.outputs, probed.outputs, strict=False)):
            other = resized.outputs[i] if resized and i < len(resized.outputs) else None
            axis = _time_axis(array, other, self._sizes)
            if axis is None and resized is None:
                axis = self._stretched(array, sources)
            if axis is None:
                if _changed(array, changed) and _timeless(array, other, self._sizes):
                    origin = reduction if math.isinf(first) else operation
                    if origin is not None:
                        self._reductions[id(array)] = origin
                continue
            index = _first_change(array, changed, axis)
            time = self._through(array, other, axis, index, sources)
            self._of[id(array)] = time
            unmoved = {
                source.first
                for source in sources
                if source.array.shape[source.time.axis] == array.shape[axis]
            }
            if index is not None and index not in unmoved and time.frame(index) < before:
                frames = math.ceil(before - time.frame(index))
                reach = max(reach, math.inf if index == 0 else frames)
        return reach, reduction or operation

    def reduction_of(self, array: Array) -> Operation | None:
        """Return the operation that reduced time to this array."""
        return self._reductions.get(id(array))

    def _stretched(self, array: Array, sources: list[_Timed]) -> int | None:
        """Return the time axis of an output that is an input made longer or shorter."""
        for source in sources:
            axis = source.time.axis
            same = source.array.ndim == array.ndim and all(
                i == axis or source.array.shape[i] == array.shape[i] for i in range(array.ndim)
            )
            if same and array.shape[axis] > 1:
                self._sizes.add(array.shape[axis])
                return axis
        return None

    def _through(
        self,
        array: Array,
        other: Array | None,
        axis: int,
        index: int | None,
        sources: list[_Timed],
    ) -> TimeAxis:
        """Return the time axis of an output, from that of the input that changed first."""
        if not sources:
            return TimeAxis(axis, _ratio(self.frames, array.shape[axis]))
        source = min(sources, key=lambda source: source.frame)
        time, first = source.time, source.first
        now, was = array.shape[axis], source.array.shape[time.axis]
        if (
            other is not None
            and source.resized is not None
            and other.ndim == array.ndim
            and source.resized.ndim == source.array.ndim  # the longer run may take another path
            and other.shape[axis] != now
        ):
            shrunk = was - source.resized.shape[time.axis], now - other.shape[axis]
            rate = time.rate * _ratio(*shrunk)
        else:
            rate = time.rate * _ratio(was, now)
        if rate != time.rate:
            return TimeAxis(axis, rate)
        offset = time.offset
        if index is not None and first is not None:
            if index > first and now > was:
                offset += min(index - first, now - was)
            elif index < first:
                offset = max(0, offset - (first - index))
        return TimeAxis(axis, rate, offset)


def _ratio(was: int, now: int) -> Fraction:
    """Return how many times slower the second axis is: a small integer, or one over it.

    >>> _ratio(100, 50), _ratio(50, 100), _ratio(100, 98)
    (Fraction(2, 1), Fraction(1, 2), Fraction(1, 1))
    """
    if now >= 1.5 * was:
        return Fraction(1, round(now / was))
    return Fraction(max(1, round(was / now)) if was >= 1.5 * now else 1)


def _changed(a: Array, b: Array) -> bool:
    return a.shape != b.shape or bool(unequal(a, b).any())


def _timeless(a: Array, resized: Array | None, sizes: set[int]) -> bool:
    """Whether no axis follows the length of the sequence."""
    if resized is not None and resized.ndim == a.ndim:
        return a.shape == resized.shape
    return not sizes.intersection(a.shape)


def _first_change(a: Array, b: Array, axis: int) -> int | None:
    """Return the first entry along an axis at which two arrays differ."""
    if a.shape != b.shape:
        return None
    changed = unequal(a, b).any(axis=tuple(j for j in range(a.ndim) if j != axis))
    return int(changed.argmax()) if changed.any() else None


def _time_axis(a: Array, resized: Array | None, sizes: set[int]) -> int | None:
    """Return the one axis that follows the sequence's length; None where it is none, or two."""
    if resized is not None and resized.ndim == a.ndim:
        moved = [i for i in range(a.ndim) if a.shape[i] != resized.shape[i]]
    else:
        moved = [i for i in range(a.ndim) if a.shape[i] in sizes]
    return moved[0] if len(moved) == 1 else None
