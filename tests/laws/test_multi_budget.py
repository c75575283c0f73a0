"""One buffer, several budgets: `step_all` and `finish_all` are `all`, and each is `at(τ)`."""

import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from nearfuture.laws.stream import Partition, rows, single_frames
from nearfuture.layers import Lookahead
from tests.laws.cuts import random_partition

law = settings(derandomize=True, max_examples=25, deadline=None, database=None)
budgets = st.lists(st.integers(0, 9), min_size=1, max_size=4, unique=True).map(tuple)


def ragged_lengths(batch: int, frames: int, rng: random.Random) -> list[int]:
    """Different lengths, a full row and (from three rows) an empty one among them."""
    lengths = [rng.randint(0, frames) for _ in range(batch)]
    lengths[0] = frames
    if batch > 2:
        lengths[-1] = 0
    return lengths


def made(frames: tuple[int, ...], dim: int = 2) -> Lookahead:
    torch.manual_seed(0)
    return Lookahead(dim, frames).double()


def streamed_all(layer: Lookahead, x: Tensor, cut: Partition) -> list[list[Tensor]]:
    """For each budget, every row's outputs over the chunks and the tail."""
    state = layer.start(x.shape[0], dtype=x.dtype)
    read = [0] * x.shape[0]
    parts: list[list[list[Tensor]]] = [[] for _ in layer.frames]

    def collect(outputs: list[tuple[Tensor, Tensor]]) -> None:
        assert len(outputs) == len(layer.frames)
        for budget, (y, n) in zip(parts, outputs, strict=True):
            budget.append(rows(layer, y, n))

    for k, chunk in enumerate(cut):
        piece = x.new_full((x.shape[0], max(chunk) + k % 2, x.shape[2]), float("nan"))
        for b, n in enumerate(chunk):
            piece[b, :n] = x[b, read[b] : read[b] + n]
            read[b] += n
        outputs, state = layer.step_all(piece, torch.tensor(chunk), state)
        collect(outputs)
        for budget, tau in zip(parts, layer.frames, strict=True):
            emitted = [sum(len(step[b]) for step in budget) for b in range(len(read))]
            assert emitted == [max(0, n - tau) for n in read]
    collect(layer.finish_all(state))
    return [[torch.cat(row) for row in zip(*budget, strict=True)] for budget in parts]


@law
@given(budgets, st.integers(0, 999))
@torch.no_grad()
def test_step_all_and_finish_all_equal_all_for_every_cut(
    frames: tuple[int, ...], seed: int
) -> None:
    layer = made(frames)
    rng = random.Random(seed)
    lengths = ragged_lengths(3, rng.randint(0, 25), rng)
    x = torch.randn(3, max(lengths), 2, dtype=torch.float64)
    n = torch.tensor(lengths)
    whole = layer.all(x, n)
    for cut in (random_partition(lengths, rng), single_frames(lengths), (tuple(lengths),)):
        for got, expected in zip(streamed_all(layer, x, cut), whole, strict=True):
            for b, row in enumerate(got):
                torch.testing.assert_close(row, expected[b, : lengths[b]], rtol=1e-10, atol=1e-10)


@law
@given(budgets, st.integers(0, 999))
@torch.no_grad()
def test_all_equals_the_layer_of_each_budget(frames: tuple[int, ...], seed: int) -> None:
    layer = made(frames)
    rng = random.Random(seed)
    n = torch.tensor(ragged_lengths(3, rng.randint(1, 25), rng))
    x = torch.randn(3, int(n.max()), 2, dtype=torch.float64)
    for tau, got in zip(layer.frames, layer.all(x, n), strict=True):
        expected, counts = layer.at(tau)(x, n)
        assert torch.equal(counts, n)
        torch.testing.assert_close(got, expected, rtol=1e-10, atol=1e-10)


def test_budgets_share_their_weights_with_the_layer_of_one() -> None:
    layer = made((0, 4, 8))
    assert layer.at(4).weights[0] is layer.weights[1]


def test_padding_is_nothing_for_every_budget() -> None:
    layer = made((0, 2, 5))
    x = torch.randn(2, 9, 2, dtype=torch.float64)
    n = torch.tensor([9, 4])
    dirty = torch.cat([x, x], dim=1)
    dirty[0, 9:], dirty[1, 4:] = float("nan"), float("nan")
    for clean, got in zip(layer.all(x, n), layer.all(dirty, n), strict=True):
        torch.testing.assert_close(got[:, :9], clean, rtol=1e-10, atol=1e-10)
        assert not got[:, 9:].any()
    sum(y.sum() for y in layer.all(dirty, n)).backward()
    assert all(bool(weight.grad.isfinite().all()) for weight in layer.weights)


@pytest.mark.parametrize("chunk", [0, 1, 7])
def test_no_frames_at_all(chunk: int) -> None:
    layer = made((0, 3))
    state = layer.start(2, dtype=torch.float64)
    nothing = torch.zeros(2, dtype=torch.int64)
    outputs, state = layer.step_all(torch.ones(2, chunk, 2, dtype=torch.float64), nothing, state)
    for y, n in (*outputs, *layer.finish_all(state)):
        assert not n.any()
        assert not y.any()
