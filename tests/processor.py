"""Single products in each precision, and the file with which a processor is asked about them.

python -m tests.processor --write    # after a change of the operations of a low precision
"""

import sys

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import helper, numpy_helper

from nearfuture.export.quantization.int4 import int4_constants, int4_nodes
from nearfuture.export.quantization.int8 import int8_constants, int8_nodes
from nearfuture.export.quantization.products import Product
from nearfuture.runtime import processor
from nearfuture.runtime.precision import FLOAT32, LOW_PRECISIONS
from nearfuture.runtime.processor import PRODUCTS
from nearfuture.runtime.session import session_options

OFFERED = [name for name in processor.offered() if name != FLOAT32]
"""The low precisions of this processor: there they obey the laws, elsewhere they are refused."""

_SHAPE = (144, 64)  # four blocks of 32 weights and a half, for a kernel's tail


def product(
    precision: str, weight: np.ndarray, bias: np.ndarray, output: str = "y"
) -> tuple[list[onnx.NodeProto], list[onnx.TensorProto]]:
    """The nodes and constants of one product, for activations `x` in [-1, 1]."""
    made = Product(onnx.NodeProto(), "x", "w", False, f"{output}.bias", output, None, weight.shape)
    name = f"{output}.product"
    if precision == "int8":
        nodes, constants = int8_nodes(made, name), int8_constants(name, weight, 1.0)
    else:
        nodes, constants = int4_nodes(made, name), int4_constants(name, weight)
    return nodes, [*constants, numpy_helper.from_array(bias, f"{output}.bias")]


def graph(
    products: dict[str, tuple[list[onnx.NodeProto], list[onnx.TensorProto]]],
    shape: tuple[int, int],
) -> onnx.ModelProto:
    """Products, by the name of their output, of one input."""
    made = helper.make_graph(
        [node for nodes, _ in products.values() for node in nodes],
        "rows",
        [helper.make_tensor_value_info("x", 1, ["batch", shape[0]])],
        [helper.make_tensor_value_info(name, 1, ["batch", shape[1]]) for name in products],
        [constant for _, constants in products.values() for constant in constants],
    )
    domains = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(made, opset_imports=domains, ir_version=10, producer_name="nearfuture")


def session(precision: str, weight: np.ndarray, bias: np.ndarray) -> ort.InferenceSession:
    """One product, `y` of `x`."""
    model = graph({"y": product(precision, weight, bias)}, weight.shape)  # type: ignore[arg-type]
    return ort.InferenceSession(model.SerializeToString(), session_options(1))


def offers(monkeypatch: pytest.MonkeyPatch, *low: str) -> None:
    """Let the question be answered as a processor would that offers these low precisions."""
    monkeypatch.setattr(processor, "offered", lambda: (FLOAT32, *low))


def question() -> onnx.ModelProto:
    """What `rows.onnx` is: weights like those of a network, one product for each precision."""
    random = np.random.default_rng(0)
    weight = random.uniform(-0.1, 0.1, _SHAPE).astype(np.float32)
    bias = random.standard_normal(_SHAPE[1]).astype(np.float32)
    return graph({name: product(name, weight, bias, name) for name in LOW_PRECISIONS}, _SHAPE)


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit(__doc__)
    PRODUCTS.write_bytes(question().SerializeToString(deterministic=True))
