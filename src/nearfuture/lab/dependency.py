"""Who looks at whom in a stack of graphs: measured, declared, and by which way.

A stack is audited as a whole and layer by layer. A cell of its matrix is then explained by a way
through the layers' own matrices: at each layer, from the frame of its output to a frame of its
input that it reads and from which the rest of the way is open.

With two layers, one that reads the frame before and one that reads the frame behind, the output of
frame 4 reads input 4 by way of frame 5 between them: ahead by one, then back by one.

Shapes: `T` frames.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from nearfuture import audit
from nearfuture.budget import ReceptiveField
from nearfuture.lab.graphs import Graph

Matrix = NDArray[np.bool_]


@dataclass(frozen=True)
class Dependency:
    """What a stack depends on.

    Attributes:
        measured: (T, T), output by input.
        declared: (T, T), what the receptive fields allow.
        lookahead: in frames, measured; inf for the rest of the sequence.
        layers: (T, T) of each layer alone, measured.
        field: of the whole stack, declared.
    """

    measured: Matrix
    declared: Matrix
    lookahead: float
    layers: tuple[Matrix, ...]
    field: ReceptiveField

    def emitted(self, frames: int) -> list[int]:
        """Return how many outputs exist after 0, 1, … frames; all of them at the end."""
        waiting = [self.field.emitted(arrived) for arrived in range(frames)]
        return [*waiting, self.field.total(frames)]

    def way(self, output: int, source: int) -> list[int] | None:
        """Return the frames from an output down to an input, one between any two layers.

        None where the output does not depend on the input.
        """
        reach = np.eye(len(self.measured), dtype=bool)
        below = [reach]  # below[k]: what the input of layer k depends on
        for layer in self.layers:
            reach = layer @ reach
            below.append(reach)
        if not (self.measured[output, source] and reach[output, source]):
            return None
        way = [output]
        for layer, rest in zip(reversed(self.layers), reversed(below[:-1]), strict=True):
            open_frames = np.flatnonzero(layer[way[-1]] & rest[:, source])
            way.append(int(min(open_frames, key=lambda frame: abs(frame - way[-1]))))
        return way


def examine(stack: Sequence[Graph], frames: int) -> Dependency:
    """Measure a stack of graphs, the first of which reads the input.

    >>> from nearfuture.lab.graphs import open_graph
    >>> found = examine([open_graph("gru-1"), open_graph("row-convolution-2")], 8)
    >>> found.lookahead, found.way(3, 5), found.way(3, 6), found.way(3, 1)
    (2, [3, 5, 5], None, [3, 3, 1])
    """

    def run(x: NDArray[np.float32]) -> NDArray[np.float32]:
        for graph in stack:
            x = graph(x)
        return x

    example = np.ones((1, frames, stack[0].width), np.float32)
    report = audit.model(run, example)
    assert report.matrix is not None
    assert report.lookahead is not None
    field = stack[0].field
    for graph in stack[1:]:
        field = field.then(graph.field)
    allowed = np.eye(frames, dtype=bool)
    for graph in stack:
        allowed = _declared(graph.field, frames) @ allowed
    return Dependency(
        measured=report.matrix,
        declared=allowed,
        lookahead=report.lookahead,
        layers=tuple(_alone(graph, frames) for graph in stack),
        field=field,
    )


@cache
def _alone(graph: Graph, frames: int) -> Matrix:
    """The matrix of one layer, measured once in a process."""
    matrix = audit.model(graph, np.ones((1, frames, graph.width), np.float32)).matrix
    assert matrix is not None
    return matrix


def _declared(field: ReceptiveField, frames: int) -> Matrix:
    matrix = np.zeros((frames, frames), bool)
    for output in range(frames):
        first = output // field.block * field.block
        begin = 0 if math.isinf(field.left) else max(0, first - int(field.left))
        end = frames if math.isinf(field.right) else first + field.block + int(field.right)
        matrix[output, begin:end] = True
    return matrix
