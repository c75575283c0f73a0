"""Convolutions over time and frequency in 8 bits: the same sums of whole numbers, in blocks."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
import torch
from onnx import helper, numpy_helper
from torch.nn import functional as F

from nearfuture.export.quantization.frequency_convolution import (
    FrequencyConvolution,
    frequency_convolutions,
)
from nearfuture.export.quantization.int8 import int8_constants

CASES = {
    "one window": ((32, 8, 11, 21), (11, 41), (2, 2), (10, 10), False),
    "several windows": ((16, 16, 5, 21), (12, 41), (2, 2), (10, 10), False),
    "a frame too many": ((32, 8, 5, 14), (8, 20), (2, 1), (6, 7), True),
    "steps of three bands": ((16, 16, 5, 15), (6, 37), (1, 3), (7, 7), True),
    "more channels than a block": ((128, 4, 3, 11), (4, 9), (1, 1), (5, 5), True),
    "fewer bands than a block": ((8, 16, 11, 13), (11, 13), (2, 2), (2, 2), False),
}


def a_graph(case: str, folder: Path) -> onnx.GraphProto:
    """Frames, their channels put first, and the convolution of them, its weights in a file."""
    kernel, (frames, bands), strides, (below, above), bias = CASES[case]
    random = np.random.default_rng(0)
    weight = random.standard_normal(kernel).astype(np.float32)
    tensor = numpy_helper.from_array(weight, "w")
    (folder / "weights.bin").write_bytes(bytes(64) + tensor.raw_data)
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in {"location": "weights.bin", "offset": "64"}.items():
        entry = tensor.external_data.add()
        entry.key, entry.value = key, value
    shape = np.array([-1, frames, kernel[1], bands])
    added = random.standard_normal(kernel[0]).astype(np.float32)
    nodes = [
        helper.make_node("Reshape", ["frames", "shape"], ["x"]),
        helper.make_node("Transpose", ["x"], ["first"], perm=[0, 2, 1, 3]),
        helper.make_node(
            "Conv",
            ["first", "w", "b"][: 3 if bias else 2],
            ["y"],
            strides=strides,
            pads=[0, below, 0, above],
        ),
    ]
    initial = [tensor, numpy_helper.from_array(shape, "shape")]
    initial += [numpy_helper.from_array(added, "b")] if bias else []
    return helper.make_graph(nodes, "g", [], [], initial)


@pytest.mark.parametrize("case", CASES)
def test_blocks_of_bands_give_the_sums_of_the_convolution(case: str, tmp_path: Path) -> None:
    graph = a_graph(case, tmp_path)
    (convolution,) = frequency_convolutions(graph)
    x = np.random.default_rng(1).uniform(-1.1, 1.1, (3, *CASES[case][1])).astype(np.float32)
    loudness = np.linspace(0.1, 1, convolution.kernel[1], dtype=np.float32)
    x = x[:, :, None] * loudness[:, None]
    constants = int8_constants("p", convolution.weights(graph, tmp_path), 1.0)
    found = run(convolution, [*constants, *graph.initializer[2:]], x)

    values = {tensor.name: numpy_helper.to_array(tensor) for tensor in constants}
    weight = (values["p.weight"] * values["p.scale"]).astype(np.float64)
    outputs, channels, taps, bands = convolution.kernel
    # Of the first band of a block; scales are those of an output's own weights in every place.
    kernel = weight.reshape(convolution.reach, taps, channels, convolution.block, outputs)[
        :bands, :, :, 0
    ]
    whole = np.rint(x / np.float32(1 / 127)).clip(-128, 127).astype(np.float64) / 127
    padded = F.pad(torch.from_numpy(whole.transpose(0, 2, 1, 3)), convolution.padding)
    bias = numpy_helper.to_array(graph.initializer[2]) if convolution.bias else np.zeros(outputs)
    expected = F.conv2d(
        padded,
        torch.from_numpy(kernel.transpose(3, 2, 1, 0).copy()),
        torch.from_numpy(bias.astype(np.float64)),
        stride=convolution.strides,
    ).numpy()
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, atol=2e-5 * np.abs(expected).max())


def run(
    convolution: FrequencyConvolution, constants: list[onnx.TensorProto], x: np.ndarray
) -> np.ndarray:
    made = helper.make_graph(
        convolution.nodes("p"),
        "g",
        [helper.make_tensor_value_info("x", 1, ["batch", *x.shape[1:]])],
        [helper.make_tensor_value_info("y", 1, None)],
        constants,
    )
    domains = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(made, opset_imports=domains, ir_version=10)
    session = ort.InferenceSession(model.SerializeToString())
    together: np.ndarray = session.run(None, {"x": x})[0]
    for b in range(len(x)):
        assert np.array_equal(session.run(None, {"x": x[b : b + 1]})[0][0], together[b])
    return together


def test_what_is_no_convolution_of_frames_stays(tmp_path: Path) -> None:
    for change in ("group", "dilations", "pads", "perm", "inline"):
        graph = a_graph("one window", tmp_path)
        conv, transpose = graph.node[2], graph.node[1]
        if change == "group":
            conv.attribute.append(helper.make_attribute("group", 2))
        elif change == "dilations":
            conv.attribute.append(helper.make_attribute("dilations", [2, 1]))
        elif change == "pads":
            pads = next(option for option in conv.attribute if option.name == "pads")
            pads.ints[0] = 1
        elif change == "perm":
            transpose.attribute[0].ints[:] = [0, 3, 1, 2]
        else:
            graph.initializer[0].data_location = onnx.TensorProto.DEFAULT
        assert frequency_convolutions(graph) == [], change
