"""Which axis of an array inside a model is that of rows, and where another row enters one.

Method: run three rows twice, with all but one replaced in the second run, and two rows once, which
shows which axis of each array follows the number of rows. Another row enters where that one row of
an output changes and that of no input does. Where rows were reduced to something without an axis of
rows (a mean), the reduction is named, not the sum that brings it back.

Example: `y = x + x.mean(0)`, row 0 kept.

    operation    row 0 of inputs    output
    mean         unchanged          has no rows, changes: remembered
    add          unchanged          row 0 changes: the mean is named
"""

from __future__ import annotations

import numpy as np

from nearfuture.audit.attribution.operation import Array, Operation, unequal


class RowAxes:
    """The row that is kept, followed from operation to operation.

    Args:
        row: its place, 0 or -1.
    """

    def __init__(self, row: int) -> None:
        self._row = row
        self._reductions: dict[int, Operation] = {}

    def entry(
        self, operation: Operation, probed: Operation, resized: Operation
    ) -> Operation | None:
        """Return the operation by which another row enters this one's outputs, if one does.

        Args:
            operation: in the unchanged run.
            probed: the same in the run in which the other rows changed.
            resized: the same in a run of fewer rows.
        """
        reduction = None
        for arrays in zip(operation.inputs, probed.inputs, resized.inputs, strict=False):
            axis = _row_axis(arrays[0], arrays[2])
            if axis is not None and self._changed(*arrays[:2], axis):
                return None
            if axis is None and _differ(*arrays[:2]):
                reduction = self._reductions.get(id(arrays[0]), reduction)
        entry = None
        for arrays in zip(operation.outputs, probed.outputs, resized.outputs, strict=False):
            axis = _row_axis(arrays[0], arrays[2])
            if axis is not None and self._changed(*arrays[:2], axis):
                entry = reduction or operation
            elif axis is None and _differ(*arrays[:2]):
                self._reductions[id(arrays[0])] = reduction or operation
        return entry

    def _changed(self, a: Array, b: Array, axis: int) -> bool:
        return _differ(np.take(a, self._row, axis=axis), np.take(b, self._row, axis=axis))


def _row_axis(a: Array, fewer: Array) -> int | None:
    """Return the first axis that follows the number of rows."""
    if a.ndim != fewer.ndim:
        return None
    return next((i for i in range(a.ndim) if a.shape[i] != fewer.shape[i]), None)


def _differ(a: Array, b: Array) -> bool:
    return a.shape == b.shape and bool(unequal(a, b).any())
