"""All arrays of a result: each one that has frames is audited, by name.

Shapes: `N` rows, `U` output frames, `E` values of an output frame.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearfuture.audit.adapters import Adapter, CannotRun, Precision
from nearfuture.audit.audited_model import AuditedModel, select_output

Array = NDArray[Any]


@dataclass(frozen=True)
class OutputPart:
    """One array of a result that has an axis of time.

    Attributes:
        path: the keys and indices that lead to it.
        rows: its axis of rows; -1 for none.
        time: its axis of time.
        frames: U, its size along time.
        square: another axis follows the length too, as in attention weights.
        dtype: type of its values.
    """

    path: tuple[int | str, ...]
    rows: int
    time: int
    frames: int
    square: bool
    dtype: np.dtype[Any]

    @property
    def name(self) -> str:
        """The path of the array in the result, such as hidden.0."""
        return ".".join(map(str, self.path))

    def frames_of(self, result: Any, adapter: Adapter) -> Array:
        """Return (N, U, E) of a result."""
        for key in self.path:
            result = result[key]
        y = adapter.to_numpy(result)
        if self.rows < 0:
            y = np.moveaxis(y, self.time, 0)[None]
        else:
            y = np.moveaxis(y, (self.rows, self.time), (0, 1))
        return np.ascontiguousarray(y).reshape(*y.shape[:2], -1)


@dataclass(frozen=True)
class OtherOutputs:
    """The arrays of a result besides the one that was audited first.

    Attributes:
        parts: arrays with an axis of time.
        unread: names of parts that may hold frames, but cannot be read.
        notes: parts without frames.
    """

    parts: tuple[OutputPart, ...] = ()
    unread: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def other_outputs(model: AuditedModel, whole: Any, shorter: Any) -> OtherOutputs:
    """Find the arrays of a result that have frames, by a result for a shorter sequence.

    Args:
        model: the model.
        whole: its result for copies of the row.
        shorter: its result for copies of a shorter one; their number may differ.
    """
    if model.spec.output is not None:
        return OtherOutputs()
    adapter = model.adapter
    rows = [_row_count(model, result) for result in (whole, shorter)]
    leaves = dict(_leaves(shorter, adapter))
    main = select_output(whole, None, adapter)
    parts, unread, notes = [], [], []
    for path, value in _leaves(whole, adapter):
        name = ".".join(map(str, path))
        if not adapter.is_array(value):
            unread.append(f"{name!r} ({type(value).__name__})")
            continue
        if value is main:
            continue
        if path not in leaves or not adapter.is_array(leaves[path]):
            unread.append(repr(name))
            continue
        arrays = adapter.to_numpy(value), adapter.to_numpy(leaves[path])
        part = _part(model, path, arrays, rows)
        if part is not None:
            parts.append(part)
        elif arrays[0].ndim > 1:
            notes.append(
                f"output {name!r} of shape {arrays[0].shape} has one value for the whole "
                f"sequence, which counts as observed"
            )
    return OtherOutputs(tuple(parts), tuple(unread), tuple(notes))


def _row_count(model: AuditedModel, result: Any) -> int:
    y = model.select(result)
    layout = model.output_layout(y.ndim)
    return int(y.shape[layout.index("N")]) if "N" in layout else 1


def _leaves(result: Any, adapter: Adapter) -> Iterator[tuple[tuple[int | str, ...], Any]]:
    """Yield the paths and values of the arrays in a result, and of packed sequences."""
    if adapter.is_array(result) or type(result).__name__ == "PackedSequence":
        yield (), result
    elif isinstance(result, Mapping):
        for key, value in result.items():
            yield from (((key, *path), leaf) for path, leaf in _leaves(value, adapter))
    elif isinstance(result, list | tuple):
        for index, value in enumerate(result):
            yield from (((index, *path), leaf) for path, leaf in _leaves(value, adapter))


def _part(
    model: AuditedModel,
    path: tuple[int | str, ...],
    arrays: tuple[Array, Array],
    rows: Sequence[int],
) -> OutputPart | None:
    before, after = (array.shape for array in arrays)
    if len(before) != len(after):
        return None
    moved = [i for i, (a, b) in enumerate(zip(before, after, strict=True)) if a != b]
    row_axis = -1
    if "N" in model.layout:
        candidates = [i for i in range(len(before)) if (before[i], after[i]) == tuple(rows)]
        usual = model.layout.index("N")
        if not candidates:
            return None
        row_axis = usual if usual in candidates else candidates[0]
    times = [i for i in moved if i != row_axis]
    if not times:
        return None
    return OutputPart(path, row_axis, times[0], before[times[0]], len(times) > 1, arrays[0].dtype)


class SelectedOutputs(Adapter):
    """A model that returns some of its outputs, side by side: (N, U, ΣE).

    Args:
        adapter: the model.
        parts: outputs with the same number of frames and type.
    """

    def __init__(self, adapter: Adapter, parts: Sequence[OutputPart]) -> None:
        self.adapter, self.parts = adapter, parts
        self.name, self.unit = adapter.name, adapter.unit
        self.propagates_nan = adapter.propagates_nan

    def call(self, positional: list[Array], named: Mapping[str, Any], *, seed: int | None) -> Any:
        """Call the model and select its outputs."""
        result = self.adapter.call(positional, named, seed=seed)
        try:
            frames = [part.frames_of(result, self.adapter) for part in self.parts]
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise CannotRun(f"{self.name} returns another form: {error}") from error
        if len({each.shape[1] for each in frames}) > 1:
            raise CannotRun(f"outputs of {self.name} have other lengths now")
        return np.concatenate(frames, axis=2)

    def reset_each_call(self) -> Adapter | None:
        """Delegate to the model."""
        return self._selecting(self.adapter.reset_each_call())

    def in_precision(self, precision: Precision) -> Adapter | None:
        """Delegate to the model."""
        return self._selecting(self.adapter.in_precision(precision))

    def _selecting(self, adapter: Adapter | None) -> Adapter | None:
        return None if adapter is None else SelectedOutputs(adapter, self.parts)


def selecting(model: AuditedModel, parts: Sequence[OutputPart]) -> AuditedModel:
    """Return a model that returns these outputs."""
    spec = replace(model.spec, output_layout="NTC")
    return replace(model, adapter=SelectedOutputs(model.adapter, parts), spec=spec)
