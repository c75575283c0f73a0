"""A convolution over time and frequency as a product in 8 bits.

Neighbouring bands read almost the same window. A block of G output bands is one row of a product,
whose weights hold the kernel G times, each `stride` bands further on, and zeros beside it:

    y[blocks, (G, C')] = x[blocks, (bands, frames, C)] W[(bands, frames, C), (G, C')]

That costs some products by 0, and copies each band only a few times where the usual unfolding
copies it for every tap. Bands are padded with the zero of the 8 bits, which is exact.

Shapes: `T` frames, `C` channels, `F` bands; `K` features of a block in, `N` features out.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from nearfuture.export.quantization.int8 import product_node, quantize_node
from nearfuture.export.quantization.products import attributes, is_large, map_weight

_OUTPUTS = 96
"""N of a block: wide enough for a product to be fast, before products by 0 weigh more."""


@dataclass(frozen=True)
class FrequencyConvolution:
    """A Conv of a graph, over frames and bands.

    Attributes:
        node: the operation.
        x: its input before the channels are put first: (B, T, C, F).
        weight: the initializer, (C', C, frames, bands).
        bias: the initializer (C',), or "".
        output: (B, C', T', F').
        absorbed: the operation that puts the channels first, which no other node reads.
        kernel: (C', C, frames, bands).
        size: (T, F) of x.
        strides: over frames and bands.
        padding: bands below and above.
    """

    node: onnx.NodeProto
    x: str
    weight: str
    bias: str
    output: str
    kernel: tuple[int, int, int, int]
    size: tuple[int, int]
    strides: tuple[int, int]
    padding: tuple[int, int]
    absorbed: onnx.NodeProto

    @cached_property
    def frames(self) -> int:
        """T'."""
        return (self.size[0] - self.kernel[2]) // self.strides[0] + 1

    @cached_property
    def bands(self) -> int:
        """F'."""
        return (self.size[1] + sum(self.padding) - self.kernel[3]) // self.strides[1] + 1

    @cached_property
    def block(self) -> int:
        """G."""
        return min(self.bands, max(1, _OUTPUTS // self.kernel[0]))

    @cached_property
    def blocks(self) -> int:
        """Blocks of G bands that hold all F'."""
        return -(-self.bands // self.block)

    @cached_property
    def reach(self) -> int:
        """Bands that a block reads."""
        return (self.block - 1) * self.strides[1] + self.kernel[3]

    def weights(self, graph: onnx.GraphProto, folder: Path) -> NDArray[np.float32]:
        """The weights of a block (K, N)."""
        kernel = map_weight(graph, self.weight, self.kernel, folder)
        outputs, channels, taps, bands = self.kernel
        weights = np.zeros((self.reach, taps, channels, self.block, outputs), np.float32)
        for j in range(self.block):
            first = j * self.strides[1]
            weights[first : first + bands, :, :, j] = kernel.transpose(3, 2, 1, 0)
        return weights.reshape(-1, self.block * outputs)

    def nodes(self, name: str) -> list[onnx.NodeProto]:
        """The nodes that take the place of the convolution, with the constants of `name`."""
        own = f"{self.output}.int8"
        outputs, channels, taps, _ = self.kernel
        step = self.block * self.strides[1]
        top = (self.blocks - 1) * step + self.reach - self.padding[0] - self.size[1]
        frames = self.strides[0] * np.arange(self.frames)[:, None] + np.arange(taps)
        bands = step * np.arange(self.blocks)[:, None] + np.arange(self.reach)
        nodes = [quantize_node(self.x, name, own)]
        value = f"{own}.x"

        def append(operation: str, values: Any = None, *more: str, **options: Any) -> None:
            """Append a node whose second input is these values."""
            nonlocal value
            inputs, at = [value], f"{own}.{len(nodes)}"
            if values is not None:
                tensor = numpy_helper.from_array(np.asarray(values, np.int64).ravel())
                inputs.append(f"{at}.values")
                nodes.append(onnx.helper.make_node("Constant", [], inputs[1:], value=tensor))
            inputs += more
            nodes.append(onnx.helper.make_node(operation, inputs, [at], name=at, **options))
            value = at

        append("Gather", frames, axis=1)
        append("Reshape", [-1, taps, channels, self.size[1]])
        append("Transpose", perm=[0, 3, 1, 2])
        append("Pad", [0, self.padding[0], 0, 0, 0, max(0, top), 0, 0], f"{name}.x_zero")
        append("Gather", bands, axis=1)
        append("Reshape", [-1, self.blocks, self.reach * taps * channels])
        nodes.append(product_node(value, name, f"{own}.blocks", own))
        value = f"{own}.blocks"
        append("Reshape", [-1, self.frames, self.blocks * self.block, outputs])
        append("Gather", np.arange(self.bands), axis=2)
        if self.bias:
            append("Add", None, self.bias)
        append("Transpose", perm=[0, 3, 1, 2])
        nodes[-1].output[0] = self.output
        return nodes


def frequency_convolutions(graph: onnx.GraphProto) -> list[FrequencyConvolution]:
    """The convolutions whose weights are as many as those of a large product.

    Args:
        graph: not changed.
    """
    initializers = {tensor.name: tensor for tensor in graph.initializer}
    producers = {node.output[0]: node for node in graph.node}
    convolutions = []
    for node in graph.node:
        weight = initializers.get(node.input[1]) if node.op_type == "Conv" else None
        if weight is None or not is_large(weight, 4):
            continue
        first = producers.get(node.input[0])
        frames = None if first is None else producers.get(first.input[0])
        if first is None or frames is None or attributes(first) != {"perm": [0, 2, 1, 3]}:
            continue  # our exports put the channels of frames first
        if frames.op_type != "Reshape" or frames.input[1] not in initializers:
            continue
        if sum(node.input[0] in other.input for other in graph.node) > 1:
            continue
        options = {"strides": [1, 1], "pads": [0] * 4, **attributes(node)}
        before, below, after, above = options["pads"]
        plain = options.get("group", 1) == 1 and set(options.get("dilations", [1])) == {1}
        if not plain or before or after:
            continue
        shape = numpy_helper.to_array(initializers[frames.input[1]]).tolist()
        outputs, channels, taps, bands = weight.dims
        convolutions.append(
            FrequencyConvolution(
                node=node,
                x=first.input[0],
                weight=weight.name,
                bias=node.input[2] if len(node.input) > 2 else "",
                output=node.output[0],
                kernel=(outputs, channels, taps, bands),
                size=(shape[1], shape[3]),
                strides=(options["strides"][0], options["strides"][1]),
                padding=(below, above),
                absorbed=first,
            )
        )
    return convolutions
