"""Ten questions about what is often misunderstood, each answered by a measurement.

>>> import numpy as np
>>> from nearfuture import audit
>>> from nearfuture.lab.graphs import open_graph
>>> x = np.ones((1, 8, 4), np.float32)
>>> first, second, both = map(open_graph, ("gru-1", "gru-2", "bidirectional-1"))
>>> print(audit.lookahead(lambda x: second(first(x)), x), audit.lookahead(both, x))
0 inf
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from nearfuture.budget import recurrent_cost, small
from nearfuture.lab.dependency import examine
from nearfuture.lab.graphs import open_graph
from nearfuture.lab.page import Page
from nearfuture.lab.pages.who_looks_at_whom import FRAME_MS, Family, stack_of

FRAMES = 12

Question = Literal[
    "stacked",
    "first",
    "predicts",
    "vanishing",
    "width",
    "promise",
    "add-up",
    "cost",
    "leak",
    "padding",
]
Figure = dict[str, Any]

RIGHT: dict[Question, str] = {
    "stacked": "b",
    "first": "c",
    "predicts": "b",
    "vanishing": "c",
    "width": "a",
    "promise": "c",
    "add-up": "b",
    "cost": "c",
    "leak": "a",
    "padding": "b",
}
"""The right answer of each question, in the order in which they are asked."""


def questions() -> list[str]:
    """List the questions in their order."""
    return list(RIGHT)


def figure(question: Question = "stacked") -> Figure:
    """Measure what answers a question."""
    return {"right": RIGHT[question], **_FIGURES[question]()}


def _example(frames: int = FRAMES, width: int = 4) -> NDArray[np.float32]:
    values = np.random.default_rng(7).normal(size=(1, frames, width))
    return values.astype(np.float32)


def _matrices(*stacks: tuple[str, Family, int, int], marks: bool = False) -> Figure:
    """Who looks at whom, in stacks by their name: family, τ and layers."""
    found = [
        {"name": name, "measured": examine(stack_of(family, tau, layers), FRAMES).measured}
        for name, family, tau, layers in stacks
    ]
    return {"kind": "matrices", "frames": FRAMES, "matrices": found, "marks": marks}


def _bars(unit: str, digits: int, **values: float) -> Figure:
    bars = [{"name": name, "value": value} for name, value in values.items()]
    return {"kind": "bars", "unit": unit, "digits": digits, "bars": bars}


def _first() -> Figure:
    """When the first output exists, in recordings of one and of five seconds."""

    def first_ms(family: Family, tau: int, frames: int) -> float:
        field = stack_of(family, tau, 1)[-1].field
        return FRAME_MS * min(field.needed(0), frames)

    second = 1000 // FRAME_MS
    return _bars(
        "ms",
        0,
        unidirectional=first_ms("unidirectional", 0, 5 * second),
        row=first_ms("row-convolution", 3, 5 * second),
        twin1=first_ms("bidirectional", 0, second),
        twin5=first_ms("bidirectional", 0, 5 * second),
    )


def _predicts() -> Figure:
    """How far the first output is from its final value, while the inputs arrive."""
    graph, x = open_graph("bidirectional-1"), _example()
    final = graph(x)[0, 0]
    gaps = [float(np.abs(graph(x[:, :n])[0, 0] - final).max()) for n in range(1, FRAMES + 1)]
    return {"kind": "curve", "curves": [{"name": "gap", "values": gaps}]}


def _vanishing() -> Figure:
    """How much each direction's last state still owes to the input where it began."""

    def effect(name: str, changed: int, seen: range) -> list[float]:
        graph, x = open_graph(name), _example()
        other = x.copy()
        other[0, changed] += 0.5
        return [float(np.abs(graph(other) - graph(x))[0, t].max()) for t in seen]

    ahead = effect("bidirectional-1", 0, range(FRAMES))
    back = effect("bidirectional-1", FRAMES - 1, range(FRAMES - 1, -1, -1))
    one = effect("gru-1", 0, range(FRAMES))
    curves = {"one-direction": one, "forwards": ahead, "backwards": back}
    named = [{"name": name, "values": values} for name, values in curves.items()]
    return {"kind": "curve", "curves": named}


def _promise() -> Figure:
    """Everything that the bundled model waits for with τ = 8."""
    latency = small().latency(8)
    items = {item.name.replace(" ", "-"): item.ms for item in latency.items}
    return _bars("ms", 0, **items, sum=latency.worst_ms)


def _cost() -> Figure:
    """Weights of an upper layer with H = 2560, against one direction."""

    def upper(**options: Any) -> int:
        one, two = (
            recurrent_cost("gru", 2560, 2560, layers=layers, biases=0, **options).parameters
            for layers in (1, 2)
        )
        return two - one

    alone = upper()
    return _bars(
        "times",
        2,
        one=1.0,
        sumshared=upper(bidirectional=True, merge="sum", share_input=True) / alone,
        sum2=upper(bidirectional=True, merge="sum") / alone,
        concat=upper(bidirectional=True) / alone,
    )


def _padding() -> Figure:
    """How far each output drifts when six frames of zeros are read behind the sequence."""
    graph, x = open_graph("bidirectional-1"), _example()
    padded = np.concatenate([x, np.zeros_like(x[:, :6])], axis=1)
    drift = np.abs(graph(padded)[0, :FRAMES] - graph(x)[0]).max(axis=1)
    return {"kind": "curve", "curves": [{"name": "drift", "values": drift}]}


def _width() -> Figure:
    """A state of four values, and how many inputs the last output still depends on."""
    found = _matrices(("one-layer", "unidirectional", 0, 1))
    depends = int(np.asarray(found["matrices"][0]["measured"])[-1].sum())
    return {**found, "depends": depends, "width": open_graph("gru-1").width}


_FIGURES: dict[Question, Callable[[], Figure]] = {
    "stacked": lambda: _matrices(
        ("two-layers", "unidirectional", 0, 2), ("both-directions", "bidirectional", 0, 1)
    ),
    "first": _first,
    "predicts": _predicts,
    "vanishing": _vanishing,
    "width": _width,
    "promise": _promise,
    "add-up": lambda: _matrices(
        ("one-row", "row-convolution", 3, 1), ("two-rows", "row-convolution", 3, 2)
    ),
    "cost": _cost,
    "leak": lambda: _matrices(
        ("one-layer", "unidirectional", 0, 1),
        ("both-directions", "bidirectional", 0, 1),
        marks=True,
    ),
    "padding": _padding,
}


PAGE = Page(
    name="quiz",
    endpoints={"questions": questions, "figure": figure},
    module=__name__,
    behind=("lab/pages/quiz.py", "audit/run.py", "budget/cost.py", "budget/latency.py"),
)
