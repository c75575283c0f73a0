"""What is right is left alone: random streaming layers, and recurrences that outlast gradients."""

import math

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import nn

from nearfuture import audit
from nearfuture.budget import ReceptiveField
from tests.laws.compositions import build, compositions

quick = settings(
    derandomize=True,
    max_examples=6,
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate],
)
many = settings(
    derandomize=True,
    max_examples=200,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
DTYPES = st.sampled_from([torch.float32, torch.float64])
SATURATING = ("relu", "LayerNorm(2)")
"""What may be constant in a layer however its input varies, so that it looks at less."""


STREAMING = compositions()
OFFLINE = compositions(streaming=False)


@quick
@given(STREAMING | OFFLINE, st.integers(0, 12), DTYPES)
def test_a_composition_is_what_it_declares(source: str, more: int, dtype: torch.dtype) -> None:
    _is_what_it_declares(source, more, dtype, seed=0)


@pytest.mark.slow
@many
@given(STREAMING | OFFLINE, st.integers(0, 30), DTYPES, st.integers(1, 10_000))
def test_many_compositions_are_what_they_declare(
    source: str, more: int, dtype: torch.dtype, seed: int
) -> None:
    _is_what_it_declares(source, more, dtype, seed)


@pytest.mark.parametrize(
    ("source", "more", "seed"),
    [
        # On longer sequences the influence fades, and less was reported than was seen.
        (
            "Serial(Residual(Serial(Bidirectional(RNN(1, 2), merge='sum'), "
            "Pointwise(nn.Linear(2, 1), 2, 1))), Pointwise(nn.Linear(1, 2), 1, 2), "
            "Pointwise(nn.Linear(2, 2), 2, 2))",
            26,
            1707,
        ),
        ("Serial(Bidirectional(LSTM(1, 1)), LSTM(2, 1, bias=False))", 1, 419),
        (
            "Serial(Residual(Serial(Bidirectional(RNN(1, 1), merge='sum', share_input=True))), "
            "Pointwise(nn.Linear(1, 3), 1, 3))",
            9,
            29,
        ),
        # A quarter of the sequence is too short for one output.
        ("Serial(Convolution(1, 2, right=1, stride=2, padded=False))", 0, 0),
        # An operation of the longer run stands where another stood, and has fewer dimensions.
        ("Serial(Lookahead(1, 0), Bidirectional(GRU(1, 2), merge='sum', share_input=True))", 2, 0),
        # Twice the sequence, and twice that, is shorter than the lookahead.
        ("Serial(Lookahead(2, 30))", 0, 0),
    ],
)
def test_what_was_wrong_once_is_right(source: str, more: int, seed: int) -> None:
    _is_what_it_declares(source, more, torch.float32, seed)


def _is_what_it_declares(source: str, more: int, dtype: torch.dtype, seed: int) -> None:
    torch.manual_seed(seed)
    layer = build(source)().to(dtype)
    frames = _frames(layer.field, more)
    x = torch.randn(1, frames, layer.input_size, dtype=dtype)
    # `right` of a composition contains the wait for a block to fill.
    longest = layer.field.right + layer.field.block - 1  # shows in longer sequences
    report = audit.model(layer, x, at_most=longest, seed=seed)
    saturates = any(part in source for part in SATURATING)
    # A dead unit in front of a bidirectional layer leaves it nothing to hear but the length.
    dead = saturates and math.isinf(layer.field.right)
    assert {finding.kind for finding in report.findings} <= ({"length"} if dead else set())
    assert report.holds or dead
    assert report.stride == layer.field.stride
    assert report.matrix is not None
    assert report.lookahead is not None
    seen = _farthest(report.matrix, layer.field.stride)
    declared = _lookahead(layer.field, frames)
    assert seen <= declared
    assert seen <= report.lookahead <= longest
    if report.lookahead_is_lower_bound or saturates:
        return
    if math.isinf(longest):
        assert report.lookahead == longest
    else:
        assert seen == declared
    if seen:
        less = audit.model(layer, x, at_most=seen - 1, seed=seed)
        assert [finding.kind for finding in less.findings] == ["future"]
        assert not less.holds


def _farthest(matrix: NDArray[np.bool_], stride: int) -> int:
    """The largest distance from an output's own frame to one it looks at."""
    outputs, inputs = matrix.nonzero()
    return int(max(0, (inputs - outputs * stride).max(initial=0)))


def _frames(field: ReceptiveField, more: int) -> int:
    """Enough for three outputs, from which a rate can be seen, and some more."""
    frames = 2
    while field.total(frames) < 3:
        frames += 1
    return frames + more


def _lookahead(field: ReceptiveField, frames: int) -> int:
    """How far ahead some output of a sequence of so many frames looks, link by link."""
    last = list(range(frames))  # input frame at which the newest part of each frame was heard
    for link in field.chain or (field,):
        ends = [u // link.block * link.block + link.block - 1 for u in range(link.total(len(last)))]
        newest = [end * link.stride + link.right for end in ends]
        last = [last[int(min(s, len(last) - 1))] for s in newest]
    return max(max(0, s - u * field.stride) for u, s in enumerate(last))


@pytest.mark.parametrize(
    "rnn",
    [
        pytest.param(
            lambda: nn.GRU(8, 32, 2, batch_first=True), id="GRU 2 × 32", marks=pytest.mark.slow
        ),
        pytest.param(
            lambda: nn.GRU(8, 16, 5, batch_first=True), id="GRU 5 × 16", marks=pytest.mark.slow
        ),
        pytest.param(lambda: nn.LSTM(8, 32, 2, batch_first=True), id="LSTM 2 × 32"),
    ],
)
def test_a_recurrence_outlasts_its_gradient(rnn) -> None:  # type: ignore[no-untyped-def]
    torch.manual_seed(0)
    model = rnn()
    x = torch.randn(1, 500, 8)
    assert _gradient_at_the_start(model, x) == 0
    report = audit.model(model, x, at_most=0)
    assert report.matrix is not None
    assert np.array_equal(report.matrix, np.tri(500, dtype=bool))
    assert report.lookahead == 0
    assert report.findings == ()


def _gradient_at_the_start(model: nn.Module, x: torch.Tensor) -> float:
    x = x.clone().requires_grad_()
    model(x)[0][0, -1].sum().backward()
    assert x.grad is not None
    return x.grad[0, 0].abs().max().item()
