"""Which low precisions keep their promise on this processor: asked once, said by name.

ONNX Runtime has other kernels for other processors. One that sums a lone row in another order than
the same row of a batch breaks the law that rows are strangers, and only running it tells. So one
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
"""Stands for a precision that this processor offers."""

PRODUCTS = Path(__file__).with_name("rows.onnx")
"""One product for each low precision, with the precision's name as that of its output."""

_BATCHES = (2, 3, 4, 5, 7, 8, 16, 33)


class UnsupportedPrecision(NearfutureError):  # noqa: N818 - what it says, not that it failed
    """In this precision rows are no strangers on this processor, so that it is not offered here."""

    code = "unsupported"


@cache
def offered() -> tuple[str, ...]:
    """The precisions in which a row has the same bits in any batch on this processor.

    The first call measures, a few milliseconds long; its answer holds for the whole process.

    >>> offered()[0]
    'float32'
    """
    return (FLOAT32, *row_independent(PRODUCTS))


def row_independent(graph: Path) -> list[str]:
    """The outputs of a graph in which each row has the bits that it has alone.

    Args:
        graph: one input (B, K) and any outputs whose rows belong to those of the input.
    """
    session = ort.InferenceSession(
        str(graph), session_options(1), providers=["CPUExecutionProvider"]
    )
    (given,) = session.get_inputs()
    random = np.random.default_rng(0)
    x = random.uniform(-1, 1, (max(_BATCHES), given.shape[1])).astype(np.float32)
    names = [value.name for value in session.get_outputs()]
    alone = [session.run(None, {given.name: x[b : b + 1]}) for b in range(len(x))]
    same = dict.fromkeys(names, True)
    for batch in _BATCHES:
        together = session.run(None, {given.name: x[:batch]})
        for place, name in enumerate(names):
            expected = np.concatenate([alone[b][place] for b in range(batch)])
            same[name] &= np.array_equal(together[place], expected)
    return [name for name in names if same[name]]


def refuse_unsupported(precision: str) -> None:
    """Raise `UnsupportedPrecision` for one that is known, but breaks its promise here."""
    if precision not in LOW_PRECISIONS or precision in offered():
        return
    raise UnsupportedPrecision(
        f"{precision} is not offered on this processor: ONNX Runtime has no kernel for it here "
        f"that gives a stream the same results whatever streams are beside it; choose "
        f"{' or '.join(reversed(offered()))}, or let {AUTO!r} choose"
    )


def fastest(precisions: Collection[str]) -> str:
    """The fastest for many streams among some low precisions that this processor offers.

    >>> fastest([])
    'float32'
    """
    here = (one for one in LOW_PRECISIONS if one in precisions and one in offered())
    return next(here, FLOAT32)
