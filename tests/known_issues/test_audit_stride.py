"""Lengths that raise were counted as lengths without a further output, so the stride became 1."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from nearfuture import audit


def stacked(factor: int) -> Callable[[Tensor], Tensor]:
    """Frames stacked by a factor; a length that it does not divide raises."""
    return lambda x: x.reshape(x.shape[0], x.shape[1] // factor, factor * x.shape[2])


class Subsampled(nn.Module):
    """A layer that wants whole blocks of eight frames, and looks ahead inside one frame of four."""

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] % 8:
            raise ValueError(f"{x.shape[1]} frames are no whole number of blocks")
        return x.unflatten(1, (-1, 4)).amax(2)


@pytest.mark.parametrize(
    ("model", "frames", "stride"),
    [
        (stacked(4), 80, 4),
        (stacked(4), 84, 4),  # half of it raises too
        (stacked(3), 51, 3),
        (stacked(10), 200, 10),
        (Subsampled(), 80, 4),
    ],
)
def test_a_length_that_raises_says_nothing_about_the_stride(
    model: Callable[[Tensor], Tensor], frames: int, stride: int
) -> None:
    x = torch.randn(2, frames, 5, generator=torch.Generator().manual_seed(0))
    report = audit.model(model, x, at_most=stride - 1)
    assert (report.stride, report.lookahead) == (stride, stride - 1)
    assert report.holds
    assert audit.lookahead(model, x) == stride - 1


def test_what_grows_is_still_endless_where_few_lengths_run() -> None:
    def over_all(x: Tensor) -> Tensor:
        y = stacked(4)(x)
        return y - y.mean(1, keepdim=True)

    x = torch.randn(2, 84, 5, generator=torch.Generator().manual_seed(0))
    assert audit.model(over_all, x, at_most=3).lookahead == math.inf
    assert audit.lookahead(over_all, x) == math.inf
