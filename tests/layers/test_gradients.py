"""Gradients are the true ones; that they agree between the two ways is law 9."""

import pytest
import torch

from nearfuture.laws.stream import inputs
from tests.laws.registry import ALL


@pytest.mark.parametrize("name", ["rnn tanh", "gru", "lstm", "lookahead 3", "bidirectional gru"])
def test_gradients_are_the_true_ones(name: str) -> None:
    torch.manual_seed(0)
    layer = ALL[name]().double()
    x = inputs(layer, 2, 6, seed=0).requires_grad_()
    n = torch.tensor([6, 3])
    assert torch.autograd.gradcheck(lambda x: layer(x, n)[0], (x,))
