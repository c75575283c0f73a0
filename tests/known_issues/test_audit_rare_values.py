"""Outputs that change only where a neighbouring frame is equal were called causal."""

import numpy as np
import pytest
import torch
from torch import Tensor

from nearfuture import audit


def ahead_if_equal(x: Tensor) -> Tensor:
    following = torch.cat([x[:, 1:], x[:, -1:] * 0 - 1], 1)
    return (x == following).float()[..., None] + x[..., None]


def two_ahead_if_equal(x: Tensor) -> Tensor:
    following = torch.cat([x[:, 2:], x[:, -2:] * 0 - 1], 1)
    return (x == following).float()[..., None]


def ahead_if_a_pause_follows(x: np.ndarray) -> np.ndarray:
    quiet = np.concatenate([x[:, 1:] == x[:, :-1], np.zeros((len(x), 1), bool)], 1)
    return np.where(quiet, -x, x)[..., None].astype(np.float32)


def tokens(most: int = 500) -> Tensor:
    return torch.randint(0, most, (1, 24), generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("model", "example", "lookahead"),
    [
        (ahead_if_equal, tokens(), 1),
        (two_ahead_if_equal, tokens(), 2),
        (ahead_if_a_pause_follows, tokens(100_000).numpy().astype(np.int16), 1),
        (ahead_if_equal, (tokens() / 10).round(), 1),  # floats that stand for steps of a scale
    ],
)
def test_equal_neighbours_are_probed_where_values_are_discrete(
    model: object, example: object, lookahead: int
) -> None:
    report = audit.model(model, example, at_most=0)
    assert (report.lookahead, report.verdict) == (lookahead, "broken")
    assert audit.lookahead(model, example) == lookahead


def test_the_past_may_be_compared() -> None:
    def repeats(x: Tensor) -> Tensor:
        before = torch.cat([x[:, :1] * 0 - 1, x[:, :-1]], 1)
        return (x == before).float()[..., None] + x[..., None]

    report = audit.model(repeats, tokens(), at_most=0)
    assert (report.lookahead, report.lookback, report.verdict) == (0, 1, "holds")
