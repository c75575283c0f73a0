"""The weights of a small graph in eight bits, so that a page's models weigh little.

    w ≈ s · q,   q = round(w / s) from -127 to 127,   s = max |w| / 127 over each row

The graph multiplies them out again with `DequantizeLinear` and computes in float32: only the file
is smaller, to about a quarter, and whoever loads the graph needs to know nothing of it.

A row (0.5, -1.27) has s = 0.01 and becomes (50, -127).
"""

from __future__ import annotations

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

SMALLEST = 256
"""Values of a tensor that is worth the two nodes."""

_LEVELS = 127


def eight_bits(weight: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Whole numbers of the same shape, and the scale of each row along the last axis but one.

    >>> q, scale = eight_bits(np.array([[0.5, -1.27], [0.0, 0.0]], np.float32))
    >>> q.tolist(), [round(float(s), 4) for s in scale]
    ([[50, -127], [0, 0]], [0.01, 1.0])
    """
    axis = weight.ndim - 2
    others = tuple(each for each in range(weight.ndim) if each != axis)
    largest = np.abs(weight).max(axis=others)
    scale = np.where(largest > 0, largest / _LEVELS, 1).astype(np.float32)
    shape = [1] * weight.ndim
    shape[axis] = -1
    return np.rint(weight / scale.reshape(shape)).astype(np.int8), scale


def compact(model: onnx.ModelProto) -> None:
    """Store the large weights of a graph, matrices and more, in eight bits; in place."""
    graph = model.graph
    nodes = []
    for each in list(graph.initializer):
        weight = numpy_helper.to_array(each)
        if weight.dtype != np.float32 or weight.ndim < 2 or weight.size < SMALLEST:
            continue
        q, scale = eight_bits(weight)
        graph.initializer.remove(each)
        names = [f"{each.name}.q", f"{each.name}.scale"]
        graph.initializer.append(numpy_helper.from_array(q, names[0]))
        graph.initializer.append(numpy_helper.from_array(scale, names[1]))
        nodes.append(helper.make_node("DequantizeLinear", names, [each.name], axis=weight.ndim - 2))
    kept = list(graph.node)
    del graph.node[:]
    graph.node.extend([*nodes, *kept])


def weights(model: onnx.ModelProto) -> dict[str, NDArray[np.float32]]:
    """The float32 weights of a graph by name, those in eight bits multiplied out."""
    stored = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
    found = {name: value for name, value in stored.items() if value.dtype == np.float32}
    for node in model.graph.node:
        if node.op_type == "DequantizeLinear":
            q, scale = (stored[name] for name in node.input)
            shape = [1] * q.ndim
            shape[q.ndim - 2] = -1
            found[node.output[0]] = q * scale.reshape(shape)
            del found[node.input[1]]
    return found
