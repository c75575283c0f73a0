"""Ours against torch's own modules over packed sequences: outputs, last states, weights."""

import copy

import pytest
import torch
from torch import nn

from nearfuture.error import NearfutureError
from nearfuture.layers import (
    GRU,
    LSTM,
    RNN,
    Bidirectional,
    Lookahead,
    Recurrent,
    Serial,
    final_state,
    from_torch,
    to_torch,
)
from nearfuture.layers.ragged import reverse
from nearfuture.layers.state import flatten
from tests.layers.recurrent_table import KINDS, LENGTHS, batch, configurations, module, name, packed

every = pytest.mark.parametrize("options", list(configurations()), ids=name)
layouts = pytest.mark.parametrize("batch_first", [True, False], ids=["B,T", "T,B"])


@layouts
@every
def test_outputs_equal_packed(options: dict, batch_first: bool) -> None:
    theirs = module(**options, batch_first=batch_first)
    x = batch()
    y, n = from_torch(theirs)(x, LENGTHS)
    expected, _, _ = packed(theirs, x)
    assert torch.equal(n, LENGTHS)
    torch.testing.assert_close(y, expected, rtol=1e-10, atol=1e-10)


@every
def test_last_states_equal_packed(options: dict) -> None:
    theirs = module(**options)
    x = batch()
    _, h, c = packed(theirs, x)
    found: list[list[torch.Tensor]] = []

    def read(cell: Recurrent, x: torch.Tensor) -> None:
        _, _, state = cell.step(x, LENGTHS, cell.start(4))
        found.append(flatten(state))

    for layer in from_torch(theirs):
        if isinstance(layer, Bidirectional):
            read(layer.ahead, x)
            read(layer.back, reverse(x, LENGTHS))
        else:
            read(layer, x)
        x, _ = layer(x, LENGTHS)
    for i, leaves in enumerate(found):
        torch.testing.assert_close(leaves[0], h[i], rtol=1e-10, atol=1e-10)
        if c is not None:
            torch.testing.assert_close(leaves[1], c[i], rtol=1e-10, atol=1e-10)
    assert len(found) == h.shape[0]


@layouts
@every
def test_summary_is_the_last_state_of_the_last_layer(options: dict, batch_first: bool) -> None:
    theirs = module(**options, batch_first=batch_first)
    x = batch()
    _, h, _ = packed(theirs, x)
    expected = torch.cat([h[-2], h[-1]], dim=-1) if options["both"] else h[-1]
    given = x if batch_first else x.transpose(0, 1)
    torch.testing.assert_close(
        final_state(theirs, given, LENGTHS), expected, rtol=1e-10, atol=1e-10
    )
    ours = final_state(from_torch(theirs), x, LENGTHS)
    torch.testing.assert_close(ours, expected, rtol=1e-10, atol=1e-10)


@every
def test_weights_there_and_back_are_equal(options: dict) -> None:
    theirs = module(**options)
    there = from_torch(theirs)
    back = to_torch(there)
    assert type(back) is type(theirs)
    assert back.mode == theirs.mode
    assert back.state_dict().keys() == theirs.state_dict().keys()
    for key, value in theirs.state_dict().items():
        assert torch.equal(back.state_dict()[key], value), key
    again = from_torch(back)
    for key, value in there.state_dict().items():
        assert torch.equal(again.state_dict()[key], value), key


def test_weights_are_copied_not_shared() -> None:
    theirs = module("gru")
    ours = from_torch(theirs)
    with torch.no_grad():
        next(ours.parameters()).fill_(0)
    assert bool(next(theirs.parameters()).any())


def test_a_summary_trains_the_torch_module_it_was_given() -> None:
    theirs = module("lstm", both=True, layers=2)
    final_state(theirs, batch(), LENGTHS).sum().backward()
    assert all(p.grad is not None and bool(p.grad.any()) for p in theirs.parameters())


def test_the_layout_of_the_torch_module_is_chosen() -> None:
    x = batch().float()
    layer = GRU(3, 4)
    time_first = to_torch(layer, batch_first=False)
    y = time_first(x.transpose(0, 1))[0].transpose(0, 1)
    torch.testing.assert_close(y, layer(x, torch.full((4,), 7))[0])


@pytest.mark.parametrize("kind", KINDS)
def test_the_given_start_state_is_used(kind: str) -> None:
    theirs = module(kind)
    x = batch()
    (layer,) = from_torch(theirs)
    h = torch.randn(1, 4, 4, dtype=torch.float64)
    c = torch.randn(1, 4, 4, dtype=torch.float64)
    expected, _ = theirs(x, (h, c) if kind == "lstm" else h)
    y, _, _ = layer.step(x, torch.full((4,), 7), (h[0], c[0]) if kind == "lstm" else h[0])
    torch.testing.assert_close(y, expected, rtol=1e-10, atol=1e-10)


REFUSED = [
    (nn.GRU(3, 4, num_layers=2, dropout=0.1), "dropout=0.1"),
    (nn.LSTM(3, 4, proj_size=2), "proj_size=2"),
]


@pytest.mark.parametrize(("theirs", "message"), REFUSED)
def test_what_cannot_be_carried_over_is_refused(theirs: nn.RNNBase, message: str) -> None:
    with pytest.raises(NearfutureError, match=message):
        from_torch(theirs)


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        (Bidirectional(GRU(3, 4), merge="sum"), "concatenates its directions"),
        (Bidirectional(GRU(3, 4), share_input=True), "shares no weights"),
        (RNN(3, 4, nonlinearity="clipped_relu"), "no clipped ReLU"),
        (Serial(GRU(3, 4), LSTM(4, 4)), "one kind"),
        (Serial(GRU(3, 4), GRU(4, 5)), "one width"),
        (Serial(Bidirectional(GRU(3, 4)), GRU(8, 4)), "number of directions"),
        (Serial(GRU(3, 4), GRU(4, 4, bias=False)), "biases in every layer or in none"),
        (Serial(RNN(3, 4), RNN(4, 4, nonlinearity="relu")), "one nonlinearity"),
        (Serial(GRU(3, 4), Lookahead(4, 2)), "recurrent layers only, and Lookahead is not one"),
        (copy.deepcopy(Serial(Lookahead(4, 2))), "Lookahead is not one"),
    ],
)
def test_what_torch_cannot_express_is_refused(layer: Serial, message: str) -> None:
    with pytest.raises(NearfutureError, match=message):
        to_torch(layer)
