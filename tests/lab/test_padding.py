"""What padding does to a sentence: the page says what torch's packed sequences say."""

from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from nearfuture.lab import packed
from nearfuture.lab.graphs import open_graph
from nearfuture.lab.pages import padding
from nearfuture.lab.pages.padding import drift, torch_packed
from nearfuture.layers import to_torch
from tests.lab.test_graphs import tool


def test_only_the_backward_half_moves_and_the_last_word_most() -> None:
    found = drift()
    assert not found["naive"]["forward"].any()
    backward = found["naive"]["backward"]
    assert (backward > 0.01).all()
    assert backward[-1] == backward.max()


@pytest.mark.parametrize("fill", ["zeros", "noise"])
@pytest.mark.parametrize(("words", "frames"), [(2, 16), (6, 8), (10, 1)])
def test_with_lengths_no_bit_moves(words: int, frames: int, fill: Any) -> None:
    found = drift(words=words, padding=frames, fill=fill)
    assert found["same"]
    assert not found["exact"]["backward"].any()
    assert found["naive"]["backward"].any()


def test_without_padding_nothing_moves() -> None:
    found = drift(padding=0)
    assert not found["naive"]["backward"].any()
    assert found["state"].tolist() == [0.0]


def test_a_state_that_reads_on_moves_with_every_frame() -> None:
    state = drift()["state"]
    assert len(state) == 9
    assert state[0] == 0
    assert (state[1:] > 0.1).all()


def test_lengths_are_as_exact_as_packing() -> None:
    layer, lengths = to_torch(tool.build("bidirectional-concat")), torch.tensor([6, 14])
    x = torch.randn(2, 14, 4)
    packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    expected, _ = pad_packed_sequence(layer(packed)[0], batch_first=True)
    y = open_graph("bidirectional-concat")(x.numpy(), lengths=[6, 14])
    np.testing.assert_allclose(y, expected.detach().numpy(), rtol=0, atol=1e-6)


@pytest.mark.parametrize(("words", "frames"), [(2, 16), (6, 0), (10, 3)])
def test_torchs_packing_says_the_same_up_to_rounding(words: int, frames: int) -> None:
    found = torch_packed(words, frames, "noise")
    assert found is not None
    assert found["farthest"] < 1e-6
    assert found["drift"] < 1e-5
    assert len(found["backward"]) == words


def test_without_torch_there_is_no_row_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed.importlib.util, "find_spec", lambda name: None)
    assert torch_packed() is None


@pytest.fixture
def graph_that_ignores_lengths(monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(name: str) -> Any:
        return lambda x, lengths=None: open_graph(name)(x)

    monkeypatch.setattr(padding, "open_graph", opened)


def test_a_layer_that_reads_padding_is_shown_as_such(graph_that_ignores_lengths: None) -> None:
    found = drift()
    assert not found["same"]
    assert found["exact"]["backward"][-1] > 0.5
