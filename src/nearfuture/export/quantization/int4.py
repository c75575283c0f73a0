"""A matrix product with weights of 4 bits: fewer bytes to fetch, which is what one row waits for.

    y_n = Σ_blocks s_n (Σ_k x_k (q_kn - 8)) + b_n,   q from 0 to 15

Every 32 weights of an output share a scale. ONNX Runtime quantises activations to 8 bits by the
block of a row, so that rows stay independent; wider blocks took another order of sums in a batch.

Shapes: `K` features in, `N` features out, `C` blocks of 32.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from nearfuture.export.quantization.products import Product

BLOCK = 32
_MIDDLE = 8
_SHRINK = (1.0, 0.93, 0.87, 0.8)
"""Scales that are tried: a smaller one clips the largest weight and rounds the others less."""

_OUTPUTS = 256
"""Outputs that are quantized together, to keep memory small."""


def int4_weights(
    weight: NDArray[np.float32],
) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """(K, N) as packed whole numbers (N, C, 16), two in a byte, and a scale for each block (N, C).

    The largest weight of a block becomes -8, the end of the range that reaches further; of a few
    smaller scales that with the smallest squared error is taken.

    >>> packed, scale = int4_weights(np.eye(32, 2, dtype=np.float32))
    >>> packed.shape, scale.tolist(), int(packed[0, 0, 0] & 15)
    ((2, 1, 16), [[-0.125], [-0.125]], 0)
    """
    features, outputs = weight.shape
    blocks = -(-features // BLOCK)
    packed = np.empty((outputs, blocks, BLOCK // 2), np.uint8)
    scales = np.empty((outputs, blocks), np.float32)
    for at in range(0, outputs, _OUTPUTS):
        part = np.asarray(weight[:, at : at + _OUTPUTS]).T
        rows = np.zeros((len(part), blocks * BLOCK), np.float32)
        rows[:, :features] = part
        q, scale = _best(rows.reshape(len(part), blocks, BLOCK))
        packed[at : at + _OUTPUTS] = q[..., 0::2] | (q[..., 1::2] << 4)
        scales[at : at + _OUTPUTS] = scale
    return packed, scales


def _best(rows: NDArray[np.float32]) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """(…, C, 32) → whole numbers 0 to 15 of the same shape, and scales (…, C)."""
    largest = np.take_along_axis(rows, np.abs(rows).argmax(axis=-1, keepdims=True), axis=-1)
    whole = np.zeros(rows.shape, np.uint8)
    scales = np.ones(largest.shape, np.float32)
    least = np.full(largest.shape, np.inf, np.float32)
    for shrink in _SHRINK:
        scale = np.where(largest == 0, 1, largest * np.float32(-shrink / _MIDDLE))
        q = np.rint(rows / scale).clip(-_MIDDLE, _MIDDLE - 1)
        error = np.square(rows - q * scale).sum(axis=-1, keepdims=True)
        better = error < least
        least = np.where(better, error, least)
        scales = np.where(better, scale, scales)
        whole = np.where(better, (q + _MIDDLE).astype(np.uint8), whole)
    return whole, scales[..., 0].astype(np.float32)


def int4_constants(name: str, weight: NDArray[np.float32]) -> list[onnx.TensorProto]:
    """The constants that the node of a product reads besides its activations.

    Args:
        name: the prefix of their names.
        weight: (K, N).
    """
    packed, scales = int4_weights(weight)
    constants: dict[str, NDArray[Any]] = {f"{name}.weight": packed, f"{name}.scale": scales}
    return [numpy_helper.from_array(value, key) for key, value in constants.items()]


def int4_nodes(product: Product, name: str) -> list[onnx.NodeProto]:
    """The node that takes the place of a product, with the constants of `name`."""
    features, outputs = product.shape
    bias = ["", "", product.bias] if product.bias else []
    node = onnx.helper.make_node(
        "MatMulNBits",
        [product.x, f"{name}.weight", f"{name}.scale", *bias],
        [product.output],
        name=f"{product.output}.int4",
        domain="com.microsoft",
        K=features,
        N=outputs,
        bits=4,
        block_size=BLOCK,
        accuracy_level=4,
    )
    return [node]
