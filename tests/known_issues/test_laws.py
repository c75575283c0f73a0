"""Faults that the laws themselves once had."""

import pytest
import torch
from torch import Tensor, nn

from nearfuture import laws
from nearfuture.layers import RNN, Bidirectional, LayerNorm, Pointwise, Serial
from nearfuture.layers.ragged import mask


def test_a_norm_of_nearly_equal_values_was_blamed_for_the_rounding_before_it() -> None:
    def layer() -> Serial:
        return Serial(Bidirectional(RNN(1, 3), merge="sum", share_input=True), LayerNorm(3))

    laws.any_dtype_and_device(layer, seed=3)


class WrongInBfloat16(Pointwise):
    """Adds 0.3 to its first feature where the dtype is coarse."""

    def __init__(self) -> None:
        super().__init__(nn.Identity(), 3)

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        wrong = torch.tensor([0.3, 0.0, 0.0]).to(x) * (x.dtype is torch.bfloat16)
        return mask(mask(x, lengths) + wrong, lengths), lengths


def test_what_is_wrong_before_a_norm_is_still_caught() -> None:
    with pytest.raises(laws.LawBroken, match=r"law 11 .* in bfloat16"):
        laws.any_dtype_and_device(lambda: Serial(WrongInBfloat16(), LayerNorm(3)))


class Ones(Pointwise):
    """The edge of what an arc sine is defined for."""

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        return mask(torch.ones_like(x), lengths), lengths


class WrongArcSine(Pointwise):
    """Off by 5 in bfloat16; a value moved by its last digit may have no arc sine."""

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        y = mask(torch.asin(x), lengths) + 5.0 * (x.dtype is torch.bfloat16)
        return mask(y, lengths), lengths


def test_a_value_on_the_edge_of_its_domain_switched_the_law_off() -> None:
    def layer() -> Serial:
        return Serial(Ones(nn.Identity(), 3), WrongArcSine(nn.Identity(), 3))

    with pytest.raises(laws.LawBroken, match="bfloat16"):
        laws.any_dtype_and_device(layer)
