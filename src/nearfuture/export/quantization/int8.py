"""A matrix product with weights and activations in 8 bits.

    y = s_x s_w (q_x - 128) q_w + b,   q_x = round(x / s_x) + 128,   q_w = round(w / s_w)

The weights have a scale s_w for each output; that of the activations, s_x, is one constant, so that
a row's result depends on the row alone: sums of whole numbers are exact in any order.

x86 processors without VNNI add two neighbouring products in 16 bits, which saturate: 255 · 127 · 2
is too much for them, 255 · 128 is not. The scale of the weights keeps every pair below that, so
that the results are the same on all processors. (ONNX Runtime's own remedy, unsigned weights, made
the products half as fast here, where it was not needed, and fails where nodes share a weight.)

Shapes: `K` features in, `N` features out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from nearfuture.export.quantization.products import Product

_LEVELS = 127
_PAIR = 127  # one less than the kernels allow, for two magnitudes that are both rounded up
_MIDDLE = 128  # unsigned activations with this zero point: the kernels of x86 want them so


def int8_weights(
    weight: NDArray[np.float32],
) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """(K, N) as whole numbers from -127 to 127, and a scale for each column (N,).

    Neighbours k and k + 1, for even k, have magnitudes of at most 128 together.

    >>> q, scale = int8_weights(np.array([[1.0, 0.0], [-2.0, 0.0]], np.float32))
    >>> q.tolist(), [round(float(s), 4) for s in scale]
    ([[42, 0], [-85, 0]], [0.0236, 1.0])
    """
    size = np.abs(weight)
    pairs = size[: len(size) // 2 * 2].reshape(-1, 2, size.shape[1]).sum(axis=1)
    largest = np.maximum(size.max(axis=0) / _LEVELS, pairs.max(axis=0, initial=0.0) / _PAIR)
    scale = np.where(largest > 0, largest, 1).astype(np.float32)
    return np.rint(weight / scale).astype(np.int8), scale


def int8_constants(
    name: str, weight: NDArray[np.float32], largest: float
) -> list[onnx.TensorProto]:
    """The constants that the nodes of a product read besides its activations.

    Args:
        name: the prefix of their names.
        weight: (K, N).
        largest: magnitude of the activations; larger ones are clipped.
    """
    q, scale = int8_weights(weight)
    constants: dict[str, NDArray[Any]] = {
        f"{name}.weight": q,
        f"{name}.scale": scale,
        f"{name}.zero": np.array(0, np.int8),
        f"{name}.x_scale": np.array((largest or 1.0) / _LEVELS, np.float32),
        f"{name}.x_zero": np.array(_MIDDLE, np.uint8),
    }
    return [numpy_helper.from_array(value, key) for key, value in constants.items()]


def int8_nodes(product: Product, name: str) -> list[onnx.NodeProto]:
    """The nodes that take the place of a product, with the constants of `name`."""
    own = f"{product.output}.int8"
    return [
        quantize_node(product.x, name, own),
        product_node(f"{own}.x", name, product.output, own, product.bias),
    ]


def quantize_node(x: str, name: str, own: str) -> onnx.NodeProto:
    """Activations as whole numbers, `own.x`, with the scale of `name`."""
    inputs = [x, f"{name}.x_scale", f"{name}.x_zero"]
    return onnx.helper.make_node("QuantizeLinear", inputs, [f"{own}.x"], name=f"{own}.quantize")


def product_node(x: str, name: str, output: str, own: str, bias: str = "") -> onnx.NodeProto:
    """The product of whole numbers with the weights of `name`, and a bias."""
    constants = [f"{name}.{part}" for part in ("weight", "x_scale", "scale", "x_zero", "zero")]
    return onnx.helper.make_node(
        "MatMulIntegerToFloat",
        [x, *constants, *([bias] if bias else [])],
        [output],
        name=own,
        domain="com.microsoft",
    )
