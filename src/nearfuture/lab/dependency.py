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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from nearfuture.budget import ReceptiveField
from nearfuture.lab.graphs import Graph
from nearfuture.lab.own_layers import TorchLayer

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

    @cached_property
    def _below(self) -> list[Matrix]:
        """(T, T) for each layer: what its input depends on; and what the last output does."""
        below = [np.eye(len(self.measured), dtype=bool)]
        for layer in self.layers:
            below.append(layer @ below[-1])
        return below

    def way(self, output: int, source: int) -> list[int] | None:
        """Return the frames from an output down to an input, one between any two layers.

        None where the output does not depend on the input.
        """
        *below, reach = self._below
        if not (self.measured[output, source] and reach[output, source]):
            return None
        way = [output]
        for layer, rest in zip(reversed(self.layers), reversed(below), strict=True):
            open_frames = np.flatnonzero(layer[way[-1]] & rest[:, source])
            way.append(int(min(open_frames, key=lambda frame: abs(frame - way[-1]))))
        return way


def examine(stack: Sequence[Graph | TorchLayer], frames: int) -> Dependency:
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

    from nearfuture import audit

    measured = audit.matrix(run, _example(stack[0], frames))
    field = stack[0].field
    for graph in stack[1:]:
        field = field.then(graph.field)
    allowed = np.eye(frames, dtype=bool)
    for graph in stack:
        allowed = _declared(graph.field, frames) @ allowed
    return Dependency(
        measured=measured,
        declared=allowed,
        lookahead=_lookahead(run, measured, stack[0].width),
        layers=tuple(_alone(graph, frames) for graph in stack),
        field=field,
    )


@cache
def _alone(graph: Graph | TorchLayer, frames: int) -> Matrix:
    """The matrix of one layer, measured once in a process."""
    from nearfuture import audit

    return audit.matrix(graph, _example(graph, frames))


def _example(graph: Graph | TorchLayer, frames: int) -> NDArray[np.float32]:
    return np.ones((1, frames, graph.width), np.float32)


def _lookahead(
    run: Callable[[NDArray[np.float32]], NDArray[np.float32]], measured: Matrix, width: int
) -> float:
    """How far the output that looks farthest looks ahead; inf for the rest of the sequence.

    Where it reads the last frame there is, a sequence of more than twice as many frames tells
    whether it would read more, and how many.
    """
    frames = len(measured)
    last = np.array([row.nonzero()[0].max(initial=0) for row in measured])
    output = int((last - np.arange(frames)).argmax())
    if last[output] < frames - 1 or output == frames - 1:
        return max(0, int(last[output]) - output)
    longer = np.random.default_rng(0).normal(size=(2 * frames + 1, width)).astype(np.float32)
    probes = np.repeat(longer[None], len(longer) + 1, axis=0)  # one for each frame, and one of all
    at = np.arange(len(longer))
    probes[at, at] += 1.0
    y = run(probes)[:, output]
    read = (y[:-1] != y[-1]).any(axis=1).nonzero()[0]
    return math.inf if read[-1] == at[-1] else int(read[-1]) - output


def _declared(field: ReceptiveField, frames: int) -> Matrix:
    matrix = np.zeros((frames, frames), bool)
    for output in range(frames):
        first = output // field.block * field.block
        begin = 0 if math.isinf(field.left) else max(0, first - int(field.left))
        end = frames if math.isinf(field.right) else first + field.block + int(field.right)
        matrix[output, begin:end] = True
    return matrix
