"""Which low precisions keep rows independent on this processor.

ONNX Runtime has other kernels for other processors. One that sums a lone row in another order than
the same row of a batch breaks the law that rows are independent, and only a run shows that. So one
product for each low precision is run, `rows.onnx`: rows alone, then beside others, bit for bit.

Shapes: `B` rows, `K` features in.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from pathlib import Path

import numpy as np
import onnxruntime as ort

from nearfuture.error import NearfutureError
from nearfuture.runtime.precision import FLOAT32, LOW_PRECISIONS
from nearfuture.runtime.session import session_options

AUTO = "auto"
"""The fastest precision that this processor offers."""

PRODUCTS = Path(__file__).with_name("rows.onnx")
"""One product for each low precision, with the precision's name as that of its output."""

_BATCHES = (2, 3, 4, 5, 7, 8, 16, 33)


class UnsupportedPrecision(NearfutureError):  # noqa: N818 - what it says, not that it failed
    """An error for a precision whose rows change each other on this processor."""

    code = "unsupported"

    code = "unsupported"


@cache
def offered() -> tuple[str, ...]:
    """Return the precisions in which a row has the same bits in any batch on this processor.

    The first call measures, a few milliseconds long; its answer holds for the whole process.

    >>> offered()[0]
    'float32'
    """
    return (FLOAT32, *row_independent(PRODUCTS))


def row_independent(graph: Path) -> list[str]:
    """Return the outputs of a graph in which each row has the bits that it has alone.

    Args:
        graph: one input (B, K) and any outputs whose rows belong to those of the input.
    """
    session = ort.InferenceSession(
        str(graph), session_options(1), providers=["CPUExecutionProvider"]
    )
    (inputs,) = session.get_inputs()
    random = np.random.default_rng(0)
    x = random.uniform(-1, 1, (max(_BATCHES), inputs.shape[1])).astype(np.float32)
    names = [output.name for output in session.get_outputs()]
    single = [session.run(None, {inputs.name: x[b : b + 1]}) for b in range(len(x))]
    independent = dict.fromkeys(names, True)
    for size in _BATCHES:
        batch = session.run(None, {inputs.name: x[:size]})
        for i, name in enumerate(names):
            expected = np.concatenate([outputs[i] for outputs in single[:size]])
            independent[name] &= np.array_equal(batch[i], expected)
    return [name for name in names if independent[name]]


def refuse_unsupported(precision: str) -> None:
    """Raise `UnsupportedPrecision` for a low precision that this processor does not offer."""
    if precision not in LOW_PRECISIONS or precision in offered():
        return
    raise UnsupportedPrecision(
        f"{precision} is not offered on this processor: ONNX Runtime has no kernel for it here "
        f"that gives a stream the same results whatever streams are beside it; choose "
        f"{' or '.join(reversed(offered()))}, or let {AUTO!r} choose",
        parameter="precision",
    )


def fastest(precisions: Collection[str]) -> str:
    """Return the fastest of some low precisions, for many streams, on this processor.

    >>> fastest([])
    'float32'
    """
    both = (name for name in LOW_PRECISIONS if name in precisions and name in offered())
    return next(both, FLOAT32)
