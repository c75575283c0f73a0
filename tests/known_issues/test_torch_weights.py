"""Faults that `layers/torch_weights.py`, `final_state.py` and `state.py` once had."""

import pytest
import torch
from safetensors.torch import save
from torch import nn

from nearfuture.error import NearfutureError
from nearfuture.layers import GRU, final_state, from_torch, to_torch
from nearfuture.layers.state import deserialize


def test_float64_weights_were_rounded_to_float32_on_the_way_in() -> None:
    theirs = nn.GRU(3, 4, dtype=torch.float64)
    (ours,) = from_torch(theirs)
    assert torch.equal(ours.weight_ih, theirs.weight_ih_l0)


def test_float64_weights_were_rounded_to_float32_on_the_way_out() -> None:
    ours = GRU(3, 4).double()
    nn.init.constant_(ours.weight_ih, 1 / 3)
    assert torch.equal(to_torch(ours).weight_ih_l0, ours.weight_ih)


def test_a_summary_of_a_torch_module_gave_it_no_gradient() -> None:
    theirs = nn.GRU(3, 4, batch_first=True)
    final_state(theirs, torch.randn(2, 5, 3), torch.tensor([5, 2])).sum().backward()
    assert theirs.weight_ih_l0.grad is not None


def test_a_safetensors_file_of_something_else_was_a_key_error() -> None:
    with pytest.raises(NearfutureError, match="not a saved state"):
        deserialize(save({"weight": torch.zeros(1)}), GRU(2, 3).start(1))
