"""What an RNN keeps: the page's numbers are those of the facts and of torch's own layer."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from nearfuture.lab.graphs import open_graph
from nearfuture.lab.pages import unrolled
from nearfuture.lab.pages.unrolled import stack, states
from nearfuture.layers import RNN, Serial, to_torch
from tests.errors import refuses
from tests.lab.test_graphs import tool

CELLS: Any = ("tanh", "relu", "gru", "lstm")


@pytest.mark.parametrize("cell", ["tanh", "relu"])
def test_the_terms_add_up_to_the_state_of_torch(cell: Any) -> None:
    found = states("abcd", cell)
    rnn = to_torch(tool.terms(cell).rnn)
    assert isinstance(rnn, nn.RNN)
    with torch.no_grad():
        outputs, final = rnn(torch.eye(4)[None])
    np.testing.assert_allclose(found["h"], outputs[0].numpy(), rtol=0, atol=1e-6)
    assert found["outputs"] == list(outputs.shape)
    assert found["final"] == list(final.shape)
    nonlinearity = np.tanh if cell == "tanh" else lambda x: np.maximum(x, 0)
    terms = found["terms"]
    np.testing.assert_allclose(nonlinearity(terms["sum"]), found["h"], rtol=0, atol=1e-6)
    np.testing.assert_array_equal(terms["bias"][0], terms["bias"][3])  # shared over time
    assert not terms["state"][0].any()  # h_0 = 0


@pytest.mark.parametrize(("cell", "one", "two"), [("tanh", 104, 112), ("gru", 312, 336)])
def test_the_parameters_are_those_of_the_facts(cell: Any, one: int, two: int) -> None:
    short, long = states("a", cell), states("abcdabcdabcd", cell)
    assert short["parameters"] == long["parameters"] == {"1": one, "2": two}


@pytest.mark.parametrize("cell", CELLS)
def test_another_order_is_another_state(cell: Any) -> None:
    found = states("abacdabc", cell, swap=7)
    assert found["swapped"] == "abacdacb"
    assert found["moved"] > 0.1
    same = states("aabb", cell, swap=1)
    assert (same["swapped"], same["moved"]) == ("aabb", 0.0)


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("first", "abcd")
def test_the_first_letter_fades(cell: Any, first: str) -> None:
    left = states(first + "bacdabcdabc", cell)["left"]
    assert left[0] == 1
    assert left[-1] < 0.2


@pytest.mark.parametrize("text", ["", "abx", "ABC"])
def test_other_letters_are_refused(text: str) -> None:
    with refuses("invalid", "text", "a, b, c, d", repr(text)):
        states(text)


@pytest.mark.parametrize("layout", ["batch-first", "time-first"])
@pytest.mark.parametrize("directions", ["one", "both"])
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_outputs_and_last_states_are_those_of_torch(
    layers: int, directions: Any, layout: Any
) -> None:
    found = stack("abcad", layers, directions, rows=2, layout=layout)
    whole = tool.stacked(1 if directions == "one" else 2)
    first = layout == "batch-first"
    rnn = to_torch(Serial(*list(whole.layers)[:layers]), batch_first=first)
    x = torch.eye(4)[torch.tensor([[0, 1, 2, 0, 3], [1, 2, 0, 3, 0]])]
    with torch.no_grad():
        outputs, h_n = rnn(x if first else x.transpose(0, 1))
    assert found["outputs_shape"] == tuple(outputs.shape)
    assert found["h_n_shape"] == tuple(h_n.shape)
    row = outputs[0] if first else outputs[:, 0]
    shown = found["outputs"].reshape(5, -1)
    np.testing.assert_allclose(shown, row.numpy(), rtol=0, atol=1e-6)
    np.testing.assert_allclose(found["h_n"], h_n[:, 0].numpy(), rtol=0, atol=1e-6)
    assert found["parameters"] == sum(each.numel() for each in rnn.parameters())


def test_the_shapes_are_those_of_the_facts() -> None:
    one, both = stack("abc"), stack("abc", layers=2, directions="both")
    assert one["inputs_shape"] == (2, 3, 4)
    assert (one["outputs_shape"], one["h_n_shape"]) == ((2, 3, 8), (1, 2, 8))
    assert (both["outputs_shape"], both["h_n_shape"]) == ((2, 3, 16), (4, 2, 8))


def test_the_last_output_is_the_last_state_only_of_one_direction() -> None:
    assert stack("abcad", layers=2)["apart"].tolist() == [0.0]
    forwards, backwards = stack("abcad", layers=2, directions="both")["apart"]
    assert forwards == 0
    assert backwards > 0.1
    assert stack("a", directions="both")["apart"].tolist() == [
        0.0,
        0.0,
    ]  # one letter: all of it is read


def test_a_backward_direction_that_reads_forwards_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the last state of the second direction is another one."""

    def opened(name: str) -> Any:
        graph = open_graph(name)

        def forwards(x: Any) -> Any:
            y, turned = graph(x), graph(x[:, ::-1])[:, ::-1]
            return np.concatenate([y[..., :8], turned[..., 8:16], y[..., 16:]], axis=-1)

        return forwards

    right = stack("abcad", directions="both")
    monkeypatch.setattr(unrolled, "open_graph", opened)
    wrong = stack("abcad", directions="both")
    np.testing.assert_array_equal(wrong["h_n"][0], right["h_n"][0])
    assert np.abs(wrong["h_n"][1] - right["h_n"][1]).max() > 0.05


def test_a_layer_that_forgets_nothing_is_shown_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    """A state that only adds up what it reads keeps all of the first letter."""
    layer = RNN(4, 8, nonlinearity="relu", bias=False)
    with torch.no_grad():
        layer.weight_hh.copy_(torch.eye(8))
        layer.weight_ih.fill_(0.5).add_(torch.eye(8)[:, :4])

    def opened(name: str) -> Any:
        def graph(x: Any) -> Any:
            with torch.no_grad():
                h = layer(torch.as_tensor(x), torch.tensor([x.shape[1]]))[0].numpy()
            return np.concatenate([h, h, h, h], axis=-1)

        return graph

    monkeypatch.setattr(unrolled, "open_graph", opened)
    np.testing.assert_allclose(states("abacda")["left"], np.ones(6), atol=1e-6)
