"""The large matrix products of a graph, which a low precision makes smaller and faster.

Shapes: `K` features in, `N` features out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

LARGE = 1 << 14
"""Weights of the smallest product that is worth it: below, the work around it costs more."""


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

    def weights(self, graph: onnx.GraphProto, folder: Path) -> NDArray[np.float32]:
        """The weight (K, N)."""
        if not self.transposed:
            return map_weight(graph, self.weight, self.shape, folder)
        return map_weight(graph, self.weight, self.shape[::-1], folder).T


def products(graph: onnx.GraphProto, large: int = LARGE) -> list[Product]:
    """Find the large products of a graph, but for those of the features: what a Log reads.

    Args:
        graph: not changed.
        large: weights that a product has at least.
    """
    initializers = {tensor.name: tensor for tensor in graph.initializer}
    features = _nodes_before_logarithms(graph)
    readers = _readers(graph)
    operations = []
    for node in graph.node:
        if node.op_type not in ("MatMul", "Gemm") or node.name in features:
            continue
        weight = initializers.get(node.input[1])
        if weight is None or not is_large(weight, 2, large):
            continue
        transposed, bias, add = False, "", None
        if node.op_type == "Gemm":
            options = attributes(node)
            bias = node.input[2] if len(node.input) > 2 else ""
            plain = options.get("alpha", 1) == options.get("beta", 1) == 1
            if not plain or options.get("transA", 0) or (bias and bias not in initializers):
                continue
            transposed = bool(options.get("transB", 0))
        else:
            bias, add = _added_bias(readers.get(node.output[0], []), initializers, weight.dims[1])
        rows, columns = weight.dims
        operations.append(
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
    return operations


def is_large(weight: onnx.TensorProto, dimensions: int, large: int = LARGE) -> bool:
    """Whether a weight is worth a low precision; our exports keep every large one outside."""
    outside = weight.data_location == onnx.TensorProto.EXTERNAL
    return outside and len(weight.dims) == dimensions and np.prod(weight.dims) >= large


def attributes(node: onnx.NodeProto) -> dict[str, Any]:
    """The attributes of a node by name."""
    return {
        attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute
    }


def _added_bias(
    readers: Sequence[onnx.NodeProto], initializers: Mapping[str, onnx.TensorProto], width: int
) -> tuple[str, onnx.NodeProto | None]:
    """The bias that the only reader of a product adds, and that reader."""
    if len(readers) == 1 and readers[0].op_type == "Add":
        for name in readers[0].input:
            if name in initializers and list(initializers[name].dims) == [width]:
                return name, readers[0]
    return "", None


def _readers(graph: onnx.GraphProto) -> dict[str, list[onnx.NodeProto]]:
    readers: dict[str, list[onnx.NodeProto]] = {}
    for node in graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    return readers


def _nodes_before_logarithms(graph: onnx.GraphProto) -> set[str]:
    """The names of the nodes that a Log reads, directly or not."""
    producers = {name: node for node in graph.node for name in node.output}
    pending = [name for node in graph.node if node.op_type == "Log" for name in node.input]
    before: set[str] = set()
    while pending:
        node = producers.get(pending.pop())
        if node is not None and node.name not in before:
            before.add(node.name)
            pending += node.input
    return before


def weight_key(graph: onnx.GraphProto, weight: str) -> str:
    """Identify a weight by its place in a file: the same in all graphs that share it."""
    place = _place(graph, weight)
    return f"{place['location']}+{place['offset']}"


def map_weight(
    graph: onnx.GraphProto, weight: str, shape: tuple[int, ...], folder: Path
) -> NDArray[np.float32]:
    """Map a weight of this shape from the file in which bundles keep it, without reading it."""
    place = _place(graph, weight)
    return np.memmap(
        folder / place["location"], np.float32, "r", offset=int(place["offset"]), shape=shape
    )


def _place(graph: onnx.GraphProto, weight: str) -> dict[str, str]:
    """The file, the offset and the length of a weight."""
    tensor = next(tensor for tensor in graph.initializer if tensor.name == weight)
    return {entry.key: entry.value for entry in tensor.external_data}
