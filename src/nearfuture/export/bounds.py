"""Which values of a graph lie in [-1, 1], whatever a stream has heard: no recording has to tell."""

from __future__ import annotations

import onnx
from onnx import numpy_helper

_MOVES = {"Unsqueeze", "Squeeze", "Reshape", "Slice", "Gather", "Identity", "Transpose"}
"""Operations that only move the values of their first input about."""


def within_one(graph: onnx.GraphProto) -> set[str]:
    """The values that a gated cell's state, which begins at 0 and moves towards a tanh, bounds.

    A state is an input `….hidden`, and `where(the row goes on, new state, state)` is one again.
    What only moves such values about, or puts zeros in their place, stays within.

    Args:
        graph: of GRU or LSTM layers; other cells make no such promise.
    """
    states = {value.name for value in graph.input if value.name.endswith(".hidden")}
    inside = set(states)
    for node in graph.node:  # they are in order
        if node.op_type == "Where" and node.input[2] in states:
            states.add(node.output[0])
            inside |= {node.input[1], node.output[0]}
    zeros = {tensor.name for tensor in graph.initializer if _is_zero(tensor)}
    for node in graph.node:
        values = _values(node)
        if values and all(name in inside or name in zeros for name in values):
            inside.update(node.output)
    return inside


def _values(node: onnx.NodeProto) -> list[str]:
    """What the node moves about; nothing where it computes."""
    if node.op_type == "Where":
        return list(node.input[1:])
    if node.op_type == "Concat":
        return list(node.input)
    return list(node.input[:1]) if node.op_type in _MOVES else []


def _is_zero(tensor: onnx.TensorProto) -> bool:
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        return False
    values = numpy_helper.to_array(tensor)
    return values.dtype.kind == "f" and values.size == 1 and not values.any()
