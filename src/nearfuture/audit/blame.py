"""Where it enters: run a model twice, watch every operation, and find the first that mixes frames.

An operation is to blame where its output changes at a frame before any that changed in its input.
Frames are counted in input frames of the model, however an operation lays them out in memory.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearfuture.audit.report import Culprit
from nearfuture.audit.subject import Subject
from nearfuture.audit.target import OnnxTarget, TorchTarget

Array = NDArray[Any]


_MOVE_ONLY = {"reshape", "view", "transpose", "permute", "flatten", "unflatten", "contiguous", "t"}
"""Operations that put values elsewhere in memory, frames or not: none of them mixes any."""


_WINDOWS = re.compile(r"(conv|avg_pool|max_pool|lp_pool|averagepool|maxpool)", re.IGNORECASE)
"""Operations whose last axis is time, whatever its size."""


@dataclass(frozen=True)
class Event:
    """One operation of a run.

    Attributes:
        where, what, operation, source: as in `Culprit`.
        inputs: arrays that went in.
        outputs: arrays that came out.
    """

    where: str
    what: str
    operation: str
    source: str | None
    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]


class Blame:
    """Compares traces of a subject.

    Args:
        subject: a model that can be looked into: torch, or an ONNX file.
    """

    def __init__(self, subject: Subject) -> None:
        self.subject = subject

    @property
    def possible(self) -> bool:
        """Whether there is anything to look into."""
        target = self.subject.target
        if isinstance(target, TorchTarget):
            return True
        return isinstance(target, OnnxTarget) and target.path is not None and _has_onnx()

    def over_time(
        self,
        base: tuple[Array, Sequence[int]],
        probed: tuple[Array, Sequence[int]],
        changed_from: int,
        other_length: tuple[Array, Sequence[int]] | None,
    ) -> list[Culprit]:
        """Places that carry a change to frames before it, the farthest first.

        Args:
            base: one row (1, T, …) and its length.
            probed: the same with everything before frame `changed_from` unchanged.
            changed_from: the first input frame that differs.
            other_length: the row at another length, which tells which axis is time.
        """
        first, second = self._trace(*base), self._trace(*probed)
        resized = self._trace(*other_length) if other_length else None
        if resized is None or len(resized) != len(first):
            resized = None
        clocks = _Clocks(base[0].shape[1])
        found = []
        for i, (a, b) in enumerate(zip(first, second, strict=False)):
            if (a.where, a.operation) != (b.where, b.operation):
                break  # the runs went different ways
            reach, guilty = clocks.reach(a, b, resized[i] if resized else None, changed_from)
            if reach > 0:
                found.append(_culprit(guilty, reach))
        fold = clocks.fold_of(first[-1].outputs[0]) if first and first[-1].outputs else None
        if not found and fold is not None:
            found.append(_culprit(fold, math.inf))
        movers = [culprit for culprit in found if culprit.operation.lower() not in _MOVE_ONLY]
        return _once(movers or found)

    def over_rows(
        self,
        base: tuple[Array, Sequence[int]],
        probed: tuple[Array, Sequence[int]],
        other_rows: tuple[Array, Sequence[int]],
    ) -> list[Culprit]:
        """Places where row 0 begins to change with the other rows."""
        first, second, third = (self._trace(*run) for run in (base, probed, other_rows))
        found = []
        for i, (a, b) in enumerate(zip(first, second, strict=False)):
            if (a.where, a.operation) != (b.where, b.operation):
                break
            c = third[i] if len(third) == len(first) else None
            if _row_changed(a.outputs, b.outputs, c.outputs if c else None) and not _row_changed(
                a.inputs, b.inputs, c.inputs if c else None
            ):
                found.append(_culprit(a, math.inf))
        return _once(found)

    def _trace(self, x: Array, lengths: Sequence[int]) -> list[Event]:
        positional, named = self.subject.arguments(x, lengths)
        target = self.subject.target
        if isinstance(target, TorchTarget):
            from nearfuture.audit.torch_trace import trace

            return trace(target, positional, named, seed=self.subject.seed)
        assert isinstance(target, OnnxTarget)
        from nearfuture.audit.onnx_trace import trace as onnx_trace

        return onnx_trace(target, positional, named)


def _culprit(event: Event, frames: float) -> Culprit:
    return Culprit(
        where=event.where,
        what=event.what,
        operation=event.operation,
        source=event.source,
        frames=frames,
    )


def _once(found: list[Culprit]) -> list[Culprit]:
    """Each place once, with the farthest it reaches; the farthest place first, else in order."""
    best: dict[tuple[str, str, str | None], Culprit] = {}
    for culprit in found:
        key = (culprit.where, culprit.operation, culprit.source)
        if key not in best or best[key].frames < culprit.frames:
            best[key] = culprit
    return sorted(best.values(), key=lambda culprit: -culprit.frames)


@dataclass(frozen=True)
class _Clock:
    """How an axis of time counts: entry `i` stands for input frame `(i - offset) · rate`.

    Padding on the left shifts entries by an offset, which a window without padding uses up.
    """

    axis: int
    rate: Fraction = Fraction(1)
    offset: int = 0

    def frame(self, index: int) -> Fraction:
        return (index - self.offset) * self.rate


class _Clocks:
    """The clocks of all arrays of a run, followed from operation to operation.

    An operation that turns frames into something without time (a mean, a last state) folds them;
    where that comes back into frames, the fold is to blame, not the sum that brings it back.
    """

    def __init__(self, frames: int) -> None:
        self.frames = frames
        self._sizes = {frames}  # of axes of time, where no other length tells
        self._of: dict[int, _Clock] = {}
        self._folds: dict[int, Event] = {}

    def reach(
        self, a: Event, b: Event, resized: Event | None, changed_from: int
    ) -> tuple[float, Event]:
        """How many input frames before its own input the output of an operation changes.

        Args:
            a: the operation in the unchanged run.
            b: the same in the changed one.
            resized: the same at another length.
            changed_from: the input frame from which on the model's input differs.

        Returns:
            The frames, and the operation to blame for them.
        """
        sources = []
        fold: Event | None = None
        for i, array in enumerate(a.inputs):
            other = resized.inputs[i] if resized and i < len(resized.inputs) else None
            axis = _time_axis(array, other, self._sizes)
            if i >= len(b.inputs):
                continue
            if axis is None:
                if _changed(array, b.inputs[i]):
                    fold = self._folds.get(id(array), fold)
                continue
            clock = self._of.get(id(array))
            if clock is None or clock.axis != axis:
                clock = _Clock(axis) if clock is None else replace(clock, axis=axis)
            sources.append((array, other, clock, _first_change(array, b.inputs[i], axis)))
        came = [c.frame(first) for _, _, c, first in sources if first is not None]
        before = min(came, default=Fraction(changed_from))
        reach = 0.0
        if resized is None and sources and _WINDOWS.match(a.operation):
            self._sizes.add(a.outputs[0].shape[-1])
        for i, array in enumerate(a.outputs):
            other = resized.outputs[i] if resized and i < len(resized.outputs) else None
            axis = _time_axis(array, other, self._sizes)
            if i >= len(b.outputs):
                continue
            if axis is None and resized is None:
                axis = self._stretched(array, sources)
            if axis is None:
                if _changed(array, b.outputs[i]) and _timeless(array, other, self._sizes):
                    origin = a if came else fold
                    if origin is not None:
                        self._folds[id(array)] = origin
                continue
            index = _first_change(array, b.outputs[i], axis)
            clock = self._through(array, other, axis, index, sources)
            self._of[id(array)] = clock
            same = {
                first
                for source, _, c, first in sources
                if source.shape[c.axis] == array.shape[axis]
            }
            if index is not None and index not in same and clock.frame(index) < before:
                whole = math.ceil(before - clock.frame(index))
                reach = max(reach, math.inf if index == 0 else whole)
        return reach, fold or a

    def _stretched(
        self, array: Array, sources: list[tuple[Array, Array | None, _Clock, int | None]]
    ) -> int | None:
        """The axis of time of an output that is an input made longer or shorter, as by padding."""
        for source, _, clock, _ in sources:
            axis = clock.axis
            same = source.ndim == array.ndim and all(
                i == axis or source.shape[i] == array.shape[i] for i in range(array.ndim)
            )
            if same and array.shape[axis] > 1:
                self._sizes.add(array.shape[axis])
                return axis
        return None

    def fold_of(self, array: Array) -> Event | None:
        """The fold that an array without time came from."""
        return self._folds.get(id(array))

    def _through(
        self,
        array: Array,
        other: Array | None,
        axis: int,
        index: int | None,
        sources: list[tuple[Array, Array | None, _Clock, int | None]],
    ) -> _Clock:
        """The clock of an output, from those of the inputs."""
        changed = [source for source in sources if source[3] is not None]
        if not (changed or sources):
            return _Clock(axis, _ratio(self.frames, array.shape[axis]))
        source, resized, clock, first = min(
            changed or sources, key=lambda s: math.inf if s[3] is None else s[2].frame(s[3])
        )
        now, was = array.shape[axis], source.shape[clock.axis]
        if other is not None and resized is not None and other.shape[axis] != now:
            grown = was - resized.shape[clock.axis], now - other.shape[axis]
            rate = clock.rate * _ratio(grown[0], grown[1])
        else:
            rate = clock.rate * _ratio(was, now)
        offset = clock.offset if rate == clock.rate else 0
        if index is not None and first is not None and rate == clock.rate:
            if index > first and now > was:
                offset += min(index - first, now - was)
            elif index < first:
                offset = max(0, offset - (first - index))
        return _Clock(axis, rate, offset)


def _ratio(was: int, now: int) -> Fraction:
    """How many times slower the second axis is, as a small whole number or one over it."""
    if now >= 1.5 * was:
        return Fraction(1, round(now / was))
    return Fraction(max(1, round(was / now)) if was >= 1.5 * now else 1)


def _changed(a: Array, b: Array) -> bool:
    return a.shape != b.shape or bool(((a != b) & ~((a != a) & (b != b))).any())


def _timeless(a: Array, resized: Array | None, sizes: set[int]) -> bool:
    """Whether no axis follows the length of the sequence."""
    if resized is not None and resized.ndim == a.ndim:
        return a.shape == resized.shape
    return not sizes.intersection(a.shape)


def _first_change(a: Array, b: Array, axis: int) -> int | None:
    """The first entry along an axis at which two arrays differ."""
    if a.shape != b.shape:
        return None
    other = (a != b) & ~((a != a) & (b != b))
    changed = other.any(axis=tuple(j for j in range(a.ndim) if j != axis))
    return int(changed.argmax()) if changed.any() else None


def _time_axis(a: Array, resized: Array | None, sizes: set[int]) -> int | None:
    """The one axis that follows the length of the sequence; None where it is none, or two."""
    if resized is not None and resized.ndim == a.ndim:
        moved = [i for i in range(a.ndim) if a.shape[i] != resized.shape[i]]
    else:
        moved = [i for i in range(a.ndim) if a.shape[i] in sizes]
    return moved[0] if len(moved) == 1 else None


def _row_changed(
    before: Sequence[Array], after: Sequence[Array], more: Sequence[Array] | None
) -> bool:
    """Whether row 0 of any of several arrays changed along its axis of rows."""
    for i, (a, b) in enumerate(zip(before, after, strict=False)):
        c = more[i] if more and i < len(more) else None
        if c is None or c.ndim != a.ndim or a.shape != b.shape:
            continue
        moved = [j for j in range(a.ndim) if a.shape[j] != c.shape[j]]
        if len(moved) == 1:
            x, y = np.take(a, 0, axis=moved[0]), np.take(b, 0, axis=moved[0])
            if bool(((x != y) & ~((x != x) & (y != y))).any()):
                return True
    return False


def _has_onnx() -> bool:
    from importlib.util import find_spec

    return find_spec("onnx") is not None
