"""Who looks at whom: the dependency matrix of a stack of layers, measured.

>>> import numpy as np
>>> from nearfuture import audit
>>> from nearfuture.lab.graphs import open_graph
>>> gru, row_convolution = open_graph("gru-1"), open_graph("row-convolution-3")
>>> report = audit.model(lambda x: row_convolution(gru(x)), np.ones((1, 8, 4), np.float32))
>>> print(report.lookahead)
3
>>> print(report.matrix.astype(int))
[[1 1 1 1 0 0 0 0]
 [1 1 1 1 1 0 0 0]
 [1 1 1 1 1 1 0 0]
 [1 1 1 1 1 1 1 0]
 [1 1 1 1 1 1 1 1]
 [1 1 1 1 1 1 1 1]
 [1 1 1 1 1 1 1 1]
 [1 1 1 1 1 1 1 1]]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from nearfuture.lab.dependency import Dependency, examine
from nearfuture.lab.endpoint import Between, Text
from nearfuture.lab.graphs import Graph, open_graph
from nearfuture.lab.own_layers import WORDS, TorchLayer, available, parse
from nearfuture.lab.page import Page
from nearfuture.lab.refusal import Refusal

FRAMES = 16
FRAME_MS = 40
LONGEST = 120

Family = Literal[
    "unidirectional",
    "row-convolution",
    "bidirectional",
    "causal-attention",
    "sliding-attention",
    "chunked-attention",
    "full-attention",
]


def stack_of(family: Family, tau: int, layers: int) -> list[Graph]:
    """The layers of a model, from below: a new family is a line here, and one in each language."""
    numbers = range(1, layers + 1)
    if family == "row-convolution":
        pairs = [(f"gru-{number}", f"row-convolution-{tau}") for number in numbers]
        return [open_graph(name) for pair in pairs for name in pair]
    name = {"unidirectional": "gru"}.get(family, family)
    return [open_graph(f"{name}-{number}") for number in numbers]


def matrix(
    family: Family = "row-convolution",
    tau: Annotated[int, Between(0, 6)] = 3,
    layers: Annotated[int, Between(1, 3)] = 1,
) -> dict[str, Any]:
    """Measure who looks at whom, with the way of every dependency through the layers."""
    return _measured(stack_of(family, tau, layers))


def own(stack: Annotated[str, Text(LONGEST)] = "gru 8, lookahead 2, attention 4") -> dict[str, Any]:
    """Measure a stack of layers that somebody has typed; it needs torch.

    Args:
        stack: from below, see `own_layers.parse`.
    """
    if not available():
        raise Refusal("no-torch", "this needs torch: pip install 'nearfuture[train]'")
    return _measured(parse(stack))


def installed() -> dict[str, Any]:
    """Whether layers can be typed here, and the words for them."""
    return {"torch": available(), "words": list(WORDS)}


def _measured(stack: Sequence[Graph | TorchLayer]) -> dict[str, Any]:
    found = examine(stack, FRAMES)
    return {
        "frames": FRAMES,
        "frame_ms": FRAME_MS,
        "measured": found.measured,
        "declared": found.declared,
        "lookahead": found.lookahead,
        "layers": [_kind(graph) for graph in stack],
        "ways": [[found.way(t, s) for s in range(FRAMES)] for t in range(FRAMES)],
        "emitted": found.emitted(FRAMES),
        "agree": bool((found.measured == found.declared).all()),
        "farthest": _farthest(found),
    }


def _kind(graph: Graph | TorchLayer) -> str:
    return graph.name.rpartition("-")[0]


def _farthest(found: Dependency) -> int:
    """The most future frames that any output of these frames was seen to read."""
    outputs, inputs = found.measured.nonzero()
    return int((inputs - outputs).max())


PAGE = Page(
    name="who-looks-at-whom",
    endpoints={"matrix": matrix, "own": own, "installed": installed},
    module=__name__,
    behind=(
        "audit/run.py",
        "audit/probing/matrix.py",
        "lab/dependency.py",
        "lab/own_layers.py",
        "budget/field.py",
    ),
    unrecorded=("own", "installed"),
)
