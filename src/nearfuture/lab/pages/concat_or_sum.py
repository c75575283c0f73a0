"""Concat or sum: what a second direction costs, layer by layer.

>>> from nearfuture.budget import recurrent_cost
>>> def weights(layers, **options):
...     return recurrent_cost("gru", 160, 2560, layers=layers, biases=0, **options).parameters
>>> print(round(weights(1, bidirectional=True) / weights(1), 2))
2.0
>>> print(round(weights(1, bidirectional=True, share_input=True) / weights(1), 2))
1.94
>>> upper = weights(2) - weights(1)
>>> for options in ({}, {"merge": "sum"}, {"merge": "sum", "share_input": True}):
...     both = {"bidirectional": True, **options}
...     print((weights(2, **both) - weights(1, **both)) / upper, options)
3.0 {}
2.0 {'merge': 'sum'}
1.5 {'merge': 'sum', 'share_input': True}
"""

from __future__ import annotations

from typing import Annotated, Any

from nearfuture.budget import Cell, Cost, Merge, recurrent_cost
from nearfuture.lab.endpoint import Between
from nearfuture.lab.page import Page

FRAME_MS = 40.0
DESIGNS: dict[str, tuple[Merge, bool]] = {
    "concat": ("concat", False),
    "concat-shared": ("concat", True),
    "sum": ("sum", False),
    "sum-shared": ("sum", True),
}
"""How two directions are merged, and whether they share their input weights."""


def costs(
    cell: Cell = "gru",
    inputs: Annotated[int, Between(40, 2560, 40)] = 160,
    hidden: Annotated[int, Between(64, 2560, 64)] = 2560,
    layers: Annotated[int, Between(1, 9)] = 7,
    merge: Merge = "concat",
    shared: bool = False,
) -> dict[str, Any]:
    """Count the weights and operations of every layer, in one direction and in both.

    Weights alone, without biases, which are few.
    """
    alone = _layers(cell, inputs, hidden, layers)
    both = {
        name: _layers(cell, inputs, hidden, layers, merge=how, share_input=share)
        for name, (how, share) in DESIGNS.items()
    }
    chosen = next(name for name, design in DESIGNS.items() if design == (merge, shared))
    separate = both[chosen.removesuffix("-shared")]
    return {
        "chosen": chosen,
        "layers": [
            {
                "one": one.parameters,
                "both": two.parameters,
                "times": two.parameters / one.parameters,
                # What sharing saves is one copy of W; the rest is halved between the directions.
                "common": apart.parameters - two.parameters,
                "each": (two.parameters - (apart.parameters - two.parameters)) // 2,
                "reads": _width(merge, inputs, hidden, number),
            }
            for number, (one, two, apart) in enumerate(
                zip(alone, both[chosen], separate, strict=True)
            )
        ],
        "one": _total(alone),
        "designs": {
            name: {**_total(each), "times": _sum(each).parameters / _sum(alone).parameters}
            for name, each in both.items()
        },
    }


def _layers(cell: Cell, inputs: int, hidden: int, layers: int, **options: Any) -> list[Cost]:
    """The cost of each layer: what a stack of so many costs more than one of one layer fewer."""
    below = Cost()
    found = []
    for number in range(1, layers + 1):
        stack = recurrent_cost(
            cell, inputs, hidden, layers=number, biases=0, bidirectional=bool(options), **options
        )
        found.append(
            Cost(
                parameters=stack.parameters - below.parameters,
                flops_per_frame=stack.flops_per_frame - below.flops_per_frame,
            )
        )
        below = stack
    return found


def _width(merge: Merge, inputs: int, hidden: int, number: int) -> int:
    """How many values a layer of two directions reads."""
    if number == 0:
        return inputs
    return 2 * hidden if merge == "concat" else hidden


def _sum(layers: list[Cost]) -> Cost:
    return sum(layers, Cost())


def _total(layers: list[Cost]) -> dict[str, float]:
    total = _sum(layers)
    return {
        "parameters": total.parameters,
        "flops_per_second": total.flops_per_second(FRAME_MS),
    }


PAGE = Page(
    name="concat-or-sum",
    endpoints={"costs": costs},
    module=__name__,
    behind=("budget/cost.py", "layers/bidirectional.py"),
)
