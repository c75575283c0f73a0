"""The scan of a stranger's graph finds every file it would read."""

import contextlib

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper, numpy_helper

from nearfuture.error import NearfutureError
from nearfuture.runtime.external_data import external_locations


def outside(name: str, location: str) -> onnx.TensorProto:
    tensor = numpy_helper.from_array(np.zeros(2, np.float32), name)
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in {"offset": "0", "location": location, "length": "8"}.items():
        entry = tensor.external_data.add()
        entry.key, entry.value = key, value
    return tensor


def sparse(location: str) -> onnx.SparseTensorProto:
    return onnx.SparseTensorProto(values=outside("v", location), dims=[2])


def test_every_place_a_tensor_can_hide() -> None:
    inner = helper.make_graph([], "inner", [], [], initializer=[outside("w", "subgraph")])
    inner.sparse_initializer.append(sparse("sparse in subgraph"))
    nodes = [
        helper.make_node("Constant", [], ["a"], value=outside("c", "attribute")),
        helper.make_node("Constant", [], ["b"], sparse_value=sparse("sparse attribute")),
        helper.make_node("If", ["x"], ["y"], then_branch=inner, else_branch=inner),
        helper.make_node("Odd", [], ["z"], graphs=[inner], tensors=[outside("l", "list")]),
    ]
    graph = helper.make_graph(nodes, "g", [], [], initializer=[outside("w", "../initialiser")])
    function = helper.make_function(
        "d", "f", [], ["a"], [helper.make_node("C", [], ["a"], value=outside("c", "function"))], []
    )
    model = helper.make_model(graph, functions=[function])
    training = model.training_info.add()
    training.algorithm.CopyFrom(
        helper.make_graph([], "t", [], [], initializer=[outside("w", "training")])
    )
    assert external_locations(model.SerializeToString()) == {
        "subgraph",
        "sparse in subgraph",
        "attribute",
        "sparse attribute",
        "list",
        "../initialiser",
        "function",
        "training",
    }


def test_an_ordinary_graph_reads_nothing_else() -> None:
    weights = numpy_helper.from_array(np.zeros(9, np.float32), "location")
    model = helper.make_model(helper.make_graph([], "g", [], [], initializer=[weights]))
    assert external_locations(model.SerializeToString()) == set()


@given(st.binary(max_size=60))
def test_any_bytes_end_in_an_answer_or_in_one_error(content: bytes) -> None:
    with contextlib.suppress(NearfutureError):
        assert all(isinstance(location, str) for location in external_locations(content))


@pytest.mark.parametrize("cut", [1, 5, 20])
def test_a_graph_that_breaks_off(cut: int) -> None:
    model = helper.make_model(helper.make_graph([], "g", [], [], initializer=[outside("w", "f")]))
    with pytest.raises(NearfutureError, match="damaged"):
        external_locations(model.SerializeToString()[:-cut])
