"""Every refusal names the value, the limit and the way out."""

import pytest
import torch
from torch import Tensor, nn

from nearfuture.error import NearfutureError, NotStreamable
from nearfuture.layers import (
    GRU,
    LSTM,
    RNN,
    Bidirectional,
    Convolution,
    Convolution2d,
    LayerNorm,
    Lookahead,
    Pointwise,
    Residual,
    Serial,
    Stack,
    final_state,
)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RNN(3, 4, nonlinearity="sigmoid"), "tanh, relu or clipped_relu, not 'sigmoid'"),
        (lambda: Bidirectional(GRU(3, 4), merge="mean"), "concat or sum, not 'mean'"),
        (lambda: Lookahead(3, -1), "from 0, not -1"),
        (lambda: Lookahead(3, ()), r"from 0, not \(\)"),
        (lambda: Lookahead(3, (2, 2)), r"different numbers of frames from 0, not \(2, 2\)"),
        (lambda: Lookahead(3, (0, 4)).at(3), "carries a lookahead of 0, 4 frames, not 3"),
        (lambda: Convolution(3, 4, stride=2), r"at least 2"),
        (lambda: Convolution(3, 4, left=-1), "`left` must be 0 or more .* not -1"),
        (lambda: Convolution(3, 4, stride=0), "`stride` must be 1 or more, not 0"),
        (lambda: Convolution(3, 4, left=1, padded=False), "not left=1"),
        (lambda: Convolution(3, 4, left=2, dilation=0), "`dilation` must be 1 or more, not 0"),
        (lambda: Convolution(3, 4, dilation=2), "2 has no effect on a kernel of one tap"),
        (lambda: Convolution(3, 4, left=2, right=1, dilation=2), "left=2 to right=1.*, 3 frames"),
        (lambda: Convolution(3, 4, groups=-1), "`groups` must be 1 or more, not -1"),
        (lambda: Convolution(4, 4, groups=3), "3 groups do not divide the 4 features of `input_s"),
        (lambda: Convolution(4, 6, groups=4), "4 groups do not divide the 6 features of `output"),
        (lambda: Convolution2d((1, 0), bands=4), "count from 1"),
        (lambda: Convolution2d((1, 1), bands=4, band_stride=2), "at least as wide as its stride"),
        (lambda: Convolution2d((1, 1), bands=4, left=-1), "`left` must be 0 or more .* not -1"),
        (lambda: Serial(), "at least one layer"),
        (lambda: Serial(GRU(3, 4), GRU(5, 4)), r"layer 0 \(GRU\) gives 4 features, but layer 1"),
        (lambda: Residual(GRU(3, 4)), "GRU turns 3 features into 4"),
        (lambda: Residual(Convolution(3, 3, left=1, stride=2)), "stride 2"),
        (lambda: Residual(Convolution(3, 3, right=1, padded=False)), "complete windows"),
    ],
)
def test_a_layer_that_cannot_be_is_refused(make: object, message: str) -> None:
    with pytest.raises(NearfutureError, match=message):
        make()


@pytest.mark.parametrize(
    "use",
    [
        lambda layer: layer.start(2),
        lambda layer: layer.step(torch.zeros(1, 2, 3), torch.tensor([2]), torch.zeros(1)),
        lambda layer: layer.finish(torch.zeros(1)),
    ],
    ids=["start", "step", "finish"],
)
def test_bidirectional_says_why_it_cannot_stream_and_what_can(use: object) -> None:
    with pytest.raises(NotStreamable) as caught:
        use(Bidirectional(LSTM(3, 4)))
    said = str(caught.value)
    for part in ("Bidirectional(LSTM(3, 4))", "whole sequence", "LSTM alone", "Lookahead"):
        assert part in said


@pytest.mark.parametrize(
    "layer",
    [
        Serial(GRU(3, 4), Bidirectional(GRU(4, 4))),
        Residual(Bidirectional(GRU(4, 4), merge="sum")),
        Serial(Residual(Serial(Bidirectional(GRU(4, 2)), Lookahead(4, 2)))),
    ],
)
def test_a_composition_with_bidirectional_cannot_stream(layer: Serial) -> None:
    assert layer.field.right == float("inf")
    with pytest.raises(NotStreamable, match="Bidirectional"):
        layer.start(1)


def test_a_lookahead_of_several_budgets_must_choose_one() -> None:
    layer = Lookahead(3, (0, 4))
    x, n = torch.zeros(1, 5, 3), torch.tensor([5])
    for use in (lambda: layer(x, n), lambda: layer.step(x, n, layer.start(1))):
        with pytest.raises(NearfutureError, match=r"2 budgets \(0, 4\): choose one with at"):
            use()


@pytest.mark.parametrize(
    "layer",
    [Lookahead(4, 2), LayerNorm(4), Serial(GRU(4, 4), Lookahead(4, 1)), Stack(4, 2)],
)
def test_a_layer_without_a_recurrence_has_no_final_state(layer: Serial) -> None:
    with pytest.raises(NearfutureError, match="no final state"):
        final_state(layer, torch.zeros(1, 5, 4), torch.tensor([5]))


def test_a_module_that_is_not_pointwise_is_found_out() -> None:
    from nearfuture.laws import LawBroken, any_partition

    class Mean(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x - x.mean(dim=1, keepdim=True)

    with pytest.raises(LawBroken):
        any_partition(Pointwise(Mean(), 3))
