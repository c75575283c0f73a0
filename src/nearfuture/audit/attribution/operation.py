"""One traced operation of a model, and how the operations of two runs are paired."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearfuture.audit.comparison import Comparison
from nearfuture.audit.report import Culprit

Array = NDArray[Any]


@dataclass(frozen=True)
class Operation:
    """One operation of a run.

    Attributes:
        where: path of the submodule that called it, or the name of an ONNX node.
        what: the submodule's class, or the node's type.
        name: the operation, such as `conv1d`.
        source: file and line of the user's code that called it, if known.
        call: how often the same submodule has called this operation before.
        inputs: arrays that went in.
        outputs: arrays that came out.
    """

    where: str
    what: str
    name: str
    source: str | None
    call: int
    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]

    @property
    def key(self) -> tuple[str, str, int]:
        """The identity of the operation in another run: path, operation and call number.

        The number of operations may depend on the length, as where a loop fills a mask; so the
        position in the run identifies nothing.
        """
        return self.where, self.name, self.call

    def with_outputs_in(self, used: Set[int]) -> Operation:
        """Return the operation without those outputs that nothing reads, such as a last state.

        Args:
            used: identities of the arrays that another operation reads, or the model returns.
        """
        if all(id(array) in used for array in self.outputs):
            return self
        return replace(self, outputs=tuple(a for a in self.outputs if id(a) in used))

    def culprit(self, frames: float = math.inf) -> Culprit:
        """Return this operation as a culprit that looks so many input frames ahead."""
        return Culprit(
            where=self.where, what=self.what, operation=self.name, source=self.source, frames=frames
        )


def paired(
    operations: Iterable[Operation], *runs: Sequence[Operation]
) -> Iterator[tuple[Operation, tuple[Operation | None, ...]]]:
    """Yield each operation with the same one of other runs; None where a run lacks it."""
    tables = [{operation.key: operation for operation in run} for run in runs]
    for operation in operations:
        yield operation, tuple(table.get(operation.key) for table in tables)


def unequal(a: Array, b: Array) -> Array:
    """Return where two arrays of one shape differ in any bit; NaN equals NaN."""
    return np.asarray((a != b) & ~((a != a) & (b != b)))


def valid_part_changed(
    padded: Array, changed: Array, alone: Array, *, left: bool, exact: bool
) -> bool:
    """Whether the part of an array that a run without padding has too differs between two runs.

    Args:
        padded: in the run with zeros as padding.
        changed: in the run with other padding, or without.
        alone: in the run without padding, which shows the size of the valid part.
        left: the padding stands on the left.
        exact: the two runs had the same shapes; otherwise they may differ by rounding.
    """
    if padded.ndim != alone.ndim:
        return False
    if not exact and padded.dtype.kind not in "fc":  # sizes and indices follow the length itself
        return False

    def valid(array: Array) -> Array:
        index = tuple(
            slice(whole - part, None) if left and whole != part else slice(part)
            for whole, part in zip(array.shape, alone.shape, strict=True)
        )
        return array[index]

    first, second = valid(padded), valid(changed)
    if first.shape != second.shape:
        return False
    if exact:
        return bool(unequal(first, second).any())
    parts = (_real(first).reshape(1, -1), _real(second).reshape(1, -1))
    return Comparison(*parts, exact=False).differ


def _real(array: Array) -> Array:
    """Return complex values as pairs, others as they are."""
    return np.stack([array.real, array.imag]) if np.iscomplexobj(array) else array
