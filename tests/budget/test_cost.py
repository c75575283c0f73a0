"""Parameters against torch's own modules, and the figures of the papers."""

from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from nearfuture.budget import (
    Cost,
    convolution_cost,
    features_cost,
    layer_norm_cost,
    linear_cost,
    lookahead_cost,
    recurrent_cost,
)
from nearfuture.error import NearfutureError

MODULES = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}


def numel(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def counted_flops(module: nn.Module, *shape: int) -> int:
    with FlopCounterMode(display=False) as counter:
        module(torch.zeros(shape))
    return counter.get_total_flops()


@pytest.mark.parametrize("cell", MODULES)
@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_recurrent_parameters_are_those_of_torch(
    cell: Any, layers: int, bidirectional: bool, bias: bool
) -> None:
    with torch.device("meta"):
        module = MODULES[cell](5, 7, layers, bias=bias, bidirectional=bidirectional)
    cost = recurrent_cost(
        cell, 5, 7, layers=layers, biases=2 if bias else 0, bidirectional=bidirectional
    )
    assert cost.parameters == numel(module)


def test_counts_of_the_textbook() -> None:
    assert recurrent_cost("rnn", 4, 8, biases=1).parameters == 104
    assert recurrent_cost("rnn", 4, 8).parameters == 112
    assert recurrent_cost("gru", 4, 8).parameters == 3 * 112
    assert recurrent_cost("lstm", 4, 8).parameters == 4 * 112


def test_flops_of_a_step_are_two_per_weight() -> None:
    for cell in ("rnn", "gru", "lstm"):
        weights = recurrent_cost(cell, 5, 7, biases=0).parameters
        assert recurrent_cost(cell, 5, 7).flops_per_frame == 2 * weights
    cell_module = nn.Sequential(nn.Linear(5, 21), nn.Linear(21, 1))
    assert counted_flops(cell_module, 1, 5) == 2 * (5 * 21 + 21)


def test_two_directions_share_what_they_are_told_to_share() -> None:
    shared = recurrent_cost("gru", 5, 7, bidirectional=True, merge="sum", share_input=True)
    assert shared.parameters == 3 * 7 * (5 + 2 * 7 + 1 + 2)
    assert shared.flops_per_frame == 2 * 3 * 7 * (5 + 2 * 7)
    stacked = recurrent_cost("rnn", 5, 7, layers=2, bidirectional=True, merge="sum")
    assert stacked.parameters == 2 * (7 * (5 + 7 + 2) + 7 * (7 + 7 + 2))


def test_lookahead_of_deep_speech_2() -> None:
    assert lookahead_cost(2560, 19).parameters == 51_200
    mixing = lookahead_cost(2560, 19, mixing=True).parameters
    assert mixing == 131_072_000
    rnn, gru = (recurrent_cost(c, 2560, 2560, layers=5, biases=0) for c in ("rnn", "gru"))
    assert rnn.parameters == 65_536_000 < mixing < gru.parameters == 196_608_000


@pytest.mark.parametrize("bias", [False, True])
def test_convolutions_are_those_of_torch(bias: bool) -> None:
    line = nn.Conv1d(3, 5, 7, bias=bias)
    cost = convolution_cost(3, 5, 7, bias=bias)
    assert cost.parameters == numel(line)
    assert cost.flops_per_frame * 4 == counted_flops(line, 1, 3, 10)
    grouped = nn.Conv1d(6, 4, 3, groups=2, dilation=2, bias=bias)
    cost = convolution_cost(6, 4, 3, groups=2, bias=bias)
    assert cost.parameters == numel(grouped)
    plane = nn.Conv2d(3, 5, (4, 7), bias=bias)
    cost = convolution_cost(3, 5, 7, bias=bias, band_kernel=4, bands=6)
    assert cost.parameters == numel(plane)
    assert cost.flops_per_frame * 4 == counted_flops(plane, 1, 3, 9, 10)


@pytest.mark.parametrize("bias", [False, True])
def test_linear_is_that_of_torch(bias: bool) -> None:
    cost = linear_cost(11, 13, bias=bias)
    assert cost.parameters == numel(nn.Linear(11, 13, bias=bias))
    assert cost.flops_per_frame == counted_flops(nn.Linear(11, 13, bias=bias), 1, 11)


def test_layer_norm_is_that_of_torch() -> None:
    assert layer_norm_cost(11).parameters == numel(nn.LayerNorm(11))


def test_features_are_two_matrix_products_and_a_power() -> None:
    dft = counted_flops(nn.Linear(200, 2 * 129), 1, 200)
    mel = counted_flops(nn.Linear(129, 40), 1, 129)
    cost = features_cost(200, 40, dft_samples=256)
    assert cost == Cost(flops_per_frame=dft + 3 * 129 + mel)
    assert features_cost(320).flops_per_frame == 161 * (4 * 320 + 3)


def test_costs_add_and_repeat() -> None:
    cost = Cost(parameters=3, flops_per_frame=10)
    assert sum([cost, cost], Cost()) == Cost(parameters=6, flops_per_frame=20)
    assert cost.times(4) == Cost(parameters=3, flops_per_frame=40)
    assert cost.times(4).flops_per_second(40.0) == cost.flops_per_second(10.0) == 1000


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: recurrent_cost("rnn", 0, 8), "input_size"),
        (lambda: recurrent_cost("rnn", 4, 8, layers=0), "layers"),
        (lambda: recurrent_cost("tcn", 4, 8), "tcn"),  # type: ignore[arg-type]
        (lambda: recurrent_cost("rnn", 4, 8, biases=3), "3"),
        (lambda: recurrent_cost("rnn", 4, 8, merge="sum"), "one direction"),
        (lambda: recurrent_cost("rnn", 4, 8, share_input=True), "one direction"),
        (
            lambda: recurrent_cost("rnn", 4, 8, bidirectional=True, merge="max"),  # type: ignore[arg-type]
            "max",
        ),
        (lambda: lookahead_cost(0, 1), "size"),
        (lambda: lookahead_cost(1, -1), "-1"),
        (lambda: convolution_cost(1, 1, 0), "kernel"),
        (lambda: convolution_cost(4, 6, 3, groups=4), "4 groups do not divide 4 and 6 channels"),
        (lambda: linear_cost(1, 0), "output_size"),
        (lambda: layer_norm_cost(0), "size"),
        (lambda: features_cost(200, 0), "mels"),
        (lambda: features_cost(200, 40, dft_samples=199), "at least 200"),
    ],
)
def test_impossible_sizes_are_refused_by_name(call: Any, message: str) -> None:
    with pytest.raises(NearfutureError, match=message):
        call()
