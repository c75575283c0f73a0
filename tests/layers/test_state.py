"""State as a value: rows in and out, bytes, devices, and what is refused."""

import pytest
import torch
from safetensors.torch import save

from nearfuture.error import NearfutureError
from nearfuture.layers import (
    GRU,
    LSTM,
    Convolution,
    DType,
    Lookahead,
    Pointwise,
    Residual,
    Serial,
    Stack,
)
from nearfuture.layers.state import (
    batch_size,
    clone,
    deserialize,
    flatten,
    put_rows,
    serialize,
    take_rows,
    to,
    unflatten,
)

LAYER = Serial(Stack(2, 2), LSTM(4, 3), Residual(Lookahead(3, 2)), GRU(3, 2), Lookahead(2, 0))


def test_counts_stay_integers_whatever_the_weights_are() -> None:
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        for leaf in flatten(LAYER.start(2, dtype=dtype)):
            assert leaf.dtype in (dtype, torch.int64)
        moved = to(LAYER.start(2, dtype=dtype), "cpu")
        assert [leaf.dtype for leaf in flatten(moved)] == [
            leaf.dtype for leaf in flatten(LAYER.start(2, dtype=dtype))
        ]


def test_the_state_follows_the_weights() -> None:
    layer = Serial(Convolution(2, 2, left=1), GRU(2, 2)).double()
    assert {leaf.dtype for leaf in flatten(layer.start(1))} == {torch.float64, torch.int64}


def test_a_layer_states_the_dtype_of_its_states() -> None:
    class Precise(Pointwise):
        """Its first tensor is a table in float64, whatever it computes in."""

        def __init__(self) -> None:
            super().__init__(torch.nn.Identity(), 2)
            self.register_buffer("table", torch.zeros(3, dtype=torch.float64))

        @property
        def dtype(self) -> DType:
            return torch.float32

    for layer in (Precise(), Serial(Precise(), GRU(2, 2)), Residual(Precise())):
        floating = [leaf.dtype for leaf in flatten(layer.start(1)) if leaf.is_floating_point()]
        assert set(floating) == {torch.float32}
    assert Stack(2, 2).dtype is None
    assert Serial(Stack(2, 2), GRU(4, 2).to(torch.bfloat16)).dtype == torch.bfloat16


@pytest.mark.parametrize("batch", [0, 1, 3])
def test_bytes_there_and_back(batch: int) -> None:
    state = LAYER.start(batch)
    back = deserialize(serialize(state), LAYER.start(1))
    assert batch_size(back) == batch
    for got, expected in zip(flatten(back), flatten(state), strict=True):
        assert got.dtype == expected.dtype
        assert torch.equal(got, expected)


def test_rows_there_and_back() -> None:
    _, _, state = LAYER.step(torch.randn(3, 9, 2), torch.tensor([9, 4, 0]), LAYER.start(3))
    rows = torch.tensor([2, 0])
    taken = take_rows(state, rows)
    assert batch_size(taken) == 2
    again = put_rows(LAYER.start(3), rows, taken)
    for got, was, fresh in zip(
        flatten(again), flatten(state), flatten(LAYER.start(3)), strict=True
    ):
        assert torch.equal(got[rows], was[rows])
        assert torch.equal(got[1], fresh[1])


def test_a_snapshot_leaves_the_graph() -> None:
    _, _, state = LAYER.step(torch.randn(1, 9, 2), torch.tensor([9]), LAYER.start(1))
    assert any(leaf.requires_grad for leaf in flatten(state))
    assert not any(leaf.requires_grad for leaf in flatten(clone(state)))
    deserialize(serialize(state), LAYER.start(1))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "these 0 bytes are not a saved state"),
        (b"not a state at all", "not a saved state"),
        (save({"weight": torch.zeros(1)}), "not a saved state"),
        (serialize(torch.zeros(1, 2)), "tensors, not 1"),
        (serialize(Serial(Stack(2, 2), LSTM(4, 5)).start(1)), "tensors, not"),
    ],
)
def test_bytes_that_are_no_state_are_refused(data: bytes, message: str) -> None:
    with pytest.raises(NearfutureError, match=message):
        deserialize(data, LAYER.start(1))


def test_tensors_of_different_rows_are_refused() -> None:
    leaves = flatten(Lookahead(3, 2).start(2))
    for odd in (leaves[1][:1], leaves[1][0]):
        data = save({"0": leaves[0], "1": odd.clone()})
        with pytest.raises(NearfutureError, match="do not hold the same rows"):
            deserialize(data, Lookahead(3, 2).start(1))


def test_the_state_of_another_layer_is_refused() -> None:
    with pytest.raises(NearfutureError, match="belongs to another layer"):
        deserialize(serialize(GRU(2, 3).start(1)), GRU(2, 4).start(1))
    with pytest.raises(NearfutureError, match=r"torch.float64 .* belongs to another layer"):
        deserialize(serialize(GRU(2, 3).double().start(1)), GRU(2, 3).start(1))


def test_a_tree_takes_as_many_leaves_as_it_has() -> None:
    with pytest.raises(NearfutureError, match="has 1 tensors, not 2"):
        unflatten(torch.zeros(1), [torch.zeros(1), torch.zeros(1)])
