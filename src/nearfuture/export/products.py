"""The large matrix products of a graph: what a low precision makes smaller and faster.

Shapes: `K` features in, `N` features out.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray

LARGE = 1 << 14
"""Weights of the smallest product that is worth it: below, the work around it weighs more."""


@dataclass(frozen=True)
class Product:
    """`x W (+ b)` with constant `W`: a MatMul, or a Gemm, in a graph.

    Attributes:
        node: the operation.
        x: the value that is multiplied.
        weight: the initializer `W`, (K, N), or (N, K) where `transposed`.
        bias: the initializer `b` (N,), or "".
        output: the value of the product, bias included.
        absorbed: a later Add of the bias, which the product takes over; None where there is none.
        shape: (K, N).
    """

    node: onnx.NodeProto
    x: str
    weight: str
    transposed: bool
    bias: str
    output: str
    absorbed: onnx.NodeProto | None
    shape: tuple[int, int]


def products(graph: onnx.GraphProto, large: int = LARGE) -> list[Product]:
    """The large products of a graph, but for those of the features: what a logarithm is taken of.

    Args:
        graph: not changed.
        large: weights that a product has at least.
    """
    initial = {tensor.name: tensor for tensor in graph.initializer}
    features = _below_a_logarithm(graph)
    readers = _readers(graph)
    found = []
    for node in graph.node:
        if node.op_type not in ("MatMul", "Gemm") or node.name in features:
            continue
        weight = initial.get(node.input[1])
        if weight is None or len(weight.dims) != 2 or np.prod(weight.dims) < large:
            continue
        if weight.data_location != onnx.TensorProto.EXTERNAL:
            continue  # our exports keep every large one outside
        if node.op_type == "Gemm":
            options = {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}
            plain = options.get("alpha", 1) == options.get("beta", 1) == 1
            bias = node.input[2] if len(node.input) > 2 else ""
            if not plain or options.get("transA", 0) or (bias and bias not in initial):
                continue
            transposed, add = bool(options.get("transB", 0)), None
        else:
            bias, add = _bias_behind(node, readers, initial, weight.dims[1])
            transposed = False
        rows, columns = weight.dims
        found.append(
            Product(
                node=node,
                x=node.input[0],
                weight=weight.name,
                transposed=transposed,
                bias=bias,
                output=(node if add is None else add).output[0],
                absorbed=add,
                shape=(columns, rows) if transposed else (rows, columns),
            )
        )
    return found


def _bias_behind(
    node: onnx.NodeProto,
    readers: dict[str, list[onnx.NodeProto]],
    initial: dict[str, onnx.TensorProto],
    width: int,
) -> tuple[str, onnx.NodeProto | None]:
    behind = readers.get(node.output[0], [])
    if len(behind) == 1 and behind[0].op_type == "Add":
        for name in behind[0].input:
            if name in initial and list(initial[name].dims) == [width]:
                return name, behind[0]
    return "", None


def _readers(graph: onnx.GraphProto) -> dict[str, list[onnx.NodeProto]]:
    readers: dict[str, list[onnx.NodeProto]] = {}
    for node in graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    return readers


def _below_a_logarithm(graph: onnx.GraphProto) -> set[str]:
    """The names of the nodes that a Log reads, directly or not."""
    made = {name: node for node in graph.node for name in node.output}
    waiting = [name for node in graph.node if node.op_type == "Log" for name in node.input]
    below: set[str] = set()
    while waiting:
        node = made.get(waiting.pop())
        if node is not None and node.name not in below:
            below.add(node.name)
            waiting += node.input
    return below


def weight_key(graph: onnx.GraphProto, weight: str) -> str:
    """Where a weight lies: the same in all graphs that share it."""
    at = place(graph, weight)
    return f"{at['location']}+{at['offset']}"


def read_weight(graph: onnx.GraphProto, product: Product, folder: Path) -> NDArray[np.float32]:
    """The weight (K, N) of a product, not yet read from the file in which bundles keep it."""
    at = place(graph, product.weight)
    features, outputs = product.shape
    values = np.memmap(
        folder / at["location"],
        np.float32,
        mode="r",
        offset=int(at["offset"]),
        shape=(outputs, features) if product.transposed else (features, outputs),
    )
    return values.T if product.transposed else values


def place(graph: onnx.GraphProto, weight: str) -> dict[str, str]:
    """The file, the offset and the length of a weight."""
    tensor = next(one for one in graph.initializer if one.name == weight)
    return {entry.key: entry.value for entry in tensor.external_data}
