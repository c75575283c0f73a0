"""The graphs of a bundle in low precision: other operations in the place of the large products.

In int8 large convolutions over time and frequency are replaced as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import onnx

from nearfuture.export.graphs.weights import WeightFile, write_graphs
from nearfuture.export.quantization.frequency_convolution import (
    FrequencyConvolution,
    frequency_convolutions,
)
from nearfuture.export.quantization.int4 import int4_constants, int4_nodes
from nearfuture.export.quantization.int8 import int8_constants, int8_nodes
from nearfuture.export.quantization.products import Product, products, weight_key
from nearfuture.runtime import StoredFile
from nearfuture.runtime.precision import graph_name

GRAPHS = ("step.onnx", "finish.onnx")

Operation = Product | FrequencyConvolution
_Message = TypeVar("_Message", onnx.NodeProto, onnx.TensorProto)


def quantized_files(precision: str) -> list[str]:
    """The files that a bundle has for a low precision.

    >>> quantized_files("int8")
    ['step.int8.onnx', 'finish.int8.onnx', 'weights.int8.bin']
    """
    return [*(graph_name(name, precision) for name in GRAPHS), f"weights.{precision}.bin"]


def quantizable(graph: onnx.GraphProto, precision: str) -> list[Operation]:
    """The operations of a graph that a low precision has another operation for."""
    return [*products(graph), *(frequency_convolutions(graph) if precision == "int8" else [])]


def write_quantized_graphs(
    folder: Path,
    graphs: Mapping[str, onnx.ModelProto],
    precision: str,
    ranges: Mapping[str, float],
) -> dict[str, StoredFile]:
    """Write a bundle's graphs in low precision beside them; they share the unchanged weights.

    Args:
        folder: of the bundle.
        graphs: in float32, by name, their weights outside; they are not changed.
        precision: `int8` or `int4`.
        ranges: by `weight_key`, the largest magnitude of the activations that each weight is
            multiplied with; read for `int8` only.

    Returns:
        The new files.
    """
    weights = WeightFile(f"weights.{precision}.bin")
    constants: dict[str, list[onnx.TensorProto]] = {}
    models = {}
    for source_name, source in graphs.items():
        model = onnx.ModelProto()
        model.CopyFrom(source)
        operations = quantizable(model.graph, precision)
        keys = [weight_key(model.graph, operation.weight) for operation in operations]
        for operation, key in zip(operations, keys, strict=True):
            if key not in constants:
                name, values = f"product.{len(constants)}", operation.weights(model.graph, folder)
                constants[key] = (
                    int8_constants(name, values, ranges[key])
                    if precision == "int8"
                    else int4_constants(name, values)
                )
                weights.take(constants[key])
        nodes = {
            operation.node.output[0]: _nodes(
                operation, constants[key][0].name.removesuffix(".weight"), precision
            )
            for operation, key in zip(operations, keys, strict=True)
        }
        _replace(model.graph, operations, nodes)
        for key in sorted(set(keys)):
            model.graph.initializer.extend(constants[key])
        model.opset_import.append(onnx.helper.make_opsetid("com.microsoft", 1))
        models[graph_name(source_name, precision)] = model
    files = write_graphs(folder, models, weights)
    for name in models:
        onnx.checker.check_model(str(folder / name))
    return files


def _nodes(operation: Operation, name: str, precision: str) -> list[onnx.NodeProto]:
    """The nodes that take the place of an operation, with the constants of `name`."""
    if isinstance(operation, FrequencyConvolution):
        return operation.nodes(name)
    return int8_nodes(operation, name) if precision == "int8" else int4_nodes(operation, name)


def _replace(
    graph: onnx.GraphProto,
    operations: Sequence[Operation],
    nodes: Mapping[str, list[onnx.NodeProto]],
) -> None:
    """Put other nodes in the place of operations, and drop the weights that no node reads."""
    absorbed = {
        operation.absorbed.output[0] for operation in operations if operation.absorbed is not None
    }
    kept = [
        _copy(new)
        for node in graph.node
        if node.output[0] not in absorbed
        for new in nodes.get(node.output[0], [node])
    ]
    del graph.node[:]
    graph.node.extend(kept)
    read = {name for node in graph.node for name in node.input}
    initializers = [_copy(tensor) for tensor in graph.initializer if tensor.name in read]
    del graph.initializer[:]
    graph.initializer.extend(initializers)


def _copy(message: _Message) -> _Message:
    copy = type(message)()
    copy.CopyFrom(message)
    return copy
