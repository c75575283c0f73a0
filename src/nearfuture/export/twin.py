"""The graphs of a bundle once more, with other operations in the place of their large products.

In int8 these are convolutions over time and frequency as well.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
import onnx
from numpy.typing import NDArray

from nearfuture.export.bands import (
    BandConvolution,
    band_convolutions,
    band_nodes,
    read_kernel,
)
from nearfuture.export.eight_bit import eight_bit_constants, eight_bit_nodes
from nearfuture.export.four_bit import four_bit_constants, four_bit_nodes
from nearfuture.export.products import Product, products, read_weight, weight_key
from nearfuture.export.weights import WeightFile
from nearfuture.runtime.manifest import StoredFile
from nearfuture.runtime.precision import graph_name

GRAPHS = ("step.onnx", "finish.onnx")
_Message = TypeVar("_Message", onnx.NodeProto, onnx.TensorProto)


def twin_files(precision: str) -> list[str]:
    """What a twin consists of.

    >>> twin_files("int8")
    ['step.int8.onnx', 'finish.int8.onnx', 'weights.int8.bin']
    """
    return [*(graph_name(name, precision) for name in GRAPHS), f"weights.{precision}.bin"]


def replaceable(graph: onnx.GraphProto, precision: str) -> list[Product | BandConvolution]:
    """What a twin has other operations for."""
    return [*products(graph), *(band_convolutions(graph) if precision == "int8" else [])]


def write_twin(
    folder: Path, graphs: dict[str, onnx.ModelProto], precision: str, largest: dict[str, float]
) -> dict[str, StoredFile]:
    """Write the twin of a bundle's graphs beside them; what it does not change, it shares.

    Args:
        folder: of the bundle.
        graphs: in float32, by name, their weights outside; they are not changed.
        precision: `int8` or `int4`.
        largest: of every weight, by `weight_key`, the magnitude of the activations it multiplies;
            read for `int8` only.

    Returns:
        The new files.
    """
    graph_files = twin_files(precision)
    weights = WeightFile(graph_files.pop())
    constants: dict[str, list[onnx.TensorProto]] = {}
    for source, file_name in zip(graphs.values(), graph_files, strict=True):
        model = onnx.ModelProto()
        model.CopyFrom(source)
        names: dict[str, str] = {}
        found = replaceable(model.graph, precision)
        for product in found:
            key = weight_key(model.graph, product.weight)
            if key not in constants:
                name = f"product.{len(constants)}"
                weight = _weight(model.graph, product, folder)
                constants[key] = (
                    eight_bit_constants(name, weight, largest[key])
                    if precision == "int8"
                    else four_bit_constants(name, weight)
                )
                _store(weights, constants[key])
            names[product.output] = constants[key][0].name.removesuffix(".weight")
        used = {weight_key(model.graph, product.weight) for product in found}
        nodes = {one.output: _nodes(one, names[one.output], precision) for one in found}
        _replace(model.graph, nodes, found)
        for key in sorted(used):
            model.graph.initializer.extend(constants[key])
        model.opset_import.append(onnx.helper.make_opsetid("com.microsoft", 1))
        (folder / file_name).write_bytes(model.SerializeToString(deterministic=True))
    (folder / weights.name).write_bytes(weights.data)
    for file_name in graph_files:
        onnx.checker.check_model(str(folder / file_name))
    return {name: _stored(folder / name) for name in twin_files(precision)}


def _weight(
    graph: onnx.GraphProto, one: Product | BandConvolution, folder: Path
) -> NDArray[np.float32]:
    if isinstance(one, BandConvolution):
        return read_kernel(graph, one, folder)
    return read_weight(graph, one, folder)


def _nodes(one: Product | BandConvolution, name: str, precision: str) -> list[onnx.NodeProto]:
    """What takes the place of one, with the constants of `name`."""
    if isinstance(one, BandConvolution):
        return band_nodes(one, name)
    return eight_bit_nodes(one, name) if precision == "int8" else four_bit_nodes(one, name)


def _store(weights: WeightFile, tensors: list[onnx.TensorProto]) -> None:
    """Move the large ones among some constants into the file of weights."""
    carrier = onnx.ModelProto()
    carrier.graph.initializer.extend(tensors)
    weights.take(carrier)
    tensors[:] = carrier.graph.initializer


def _replace(
    graph: onnx.GraphProto,
    nodes: dict[str, list[onnx.NodeProto]],
    found: Sequence[Product | BandConvolution],
) -> None:
    """Put other nodes in the place of products, and drop the weights that nobody reads any more."""
    at = {product.node.output[0]: nodes[product.output] for product in found}
    gone = {product.absorbed.output[0] for product in found if product.absorbed is not None}
    kept: list[onnx.NodeProto] = []
    for node in graph.node:
        if node.output[0] in at:
            kept += at[node.output[0]]
        elif node.output[0] not in gone:
            kept.append(node)
    kept = [_copied(node) for node in kept]
    del graph.node[:]
    graph.node.extend(kept)
    read = {name for node in graph.node for name in node.input}
    left = [_copied(one) for one in graph.initializer if one.name in read]
    del graph.initializer[:]
    graph.initializer.extend(left)


def _copied(message: _Message) -> _Message:
    copy = type(message)()
    copy.CopyFrom(message)
    return copy


def _stored(path: Path) -> StoredFile:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return StoredFile(bytes=path.stat().st_size, sha256=digest)
