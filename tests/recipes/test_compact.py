"""Weights in eight bits: what a graph computes with them is what the file says."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from recipes.compact import compact, eight_bits, weights


def product(weight: np.ndarray) -> onnx.ModelProto:
    """y = x W, with a W that is stored."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, weight.shape[0]])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, weight.shape[1]])
    node = helper.make_node("MatMul", ["x", "W"], ["y"])
    graph = helper.make_graph([node], "product", [x], [y], [numpy_helper.from_array(weight, "W")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def run(model: onnx.ModelProto, x: np.ndarray) -> np.ndarray:
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return np.asarray(session.run(None, {"x": x})[0])


def test_a_compact_graph_computes_with_the_weights_that_it_says() -> None:
    rng = np.random.default_rng(0)
    weight = rng.normal(size=(40, 30)).astype(np.float32) * rng.uniform(0.01, 10, (40, 1))
    x = rng.normal(size=(5, 40)).astype(np.float32)
    model = product(weight.astype(np.float32))
    before = model.ByteSize()
    compact(model)
    assert model.ByteSize() < 0.4 * before
    stored = weights(model)["W"]
    np.testing.assert_allclose(run(model, x), x @ stored, rtol=1e-4, atol=1e-4)
    error = np.abs(stored - weight).max(axis=1)
    assert (error <= 0.51 * np.abs(weight).max(axis=1) / 127).all()


def test_small_weights_stay_as_they_are() -> None:
    model = product(np.eye(4, dtype=np.float32))
    kept = model.SerializeToString()
    compact(model)
    assert model.SerializeToString() == kept


@pytest.mark.parametrize("shape", [(6, 5), (2, 6, 5)])
def test_every_row_has_a_scale_and_zeros_stay_zeros(shape: tuple[int, ...]) -> None:
    weight = np.zeros(shape, np.float32)
    weight[..., 2, :] = 2.54
    q, scale = eight_bits(weight)
    assert scale.shape == (6,)
    assert q.max() == 127
    assert not q[..., 3, :].any()
