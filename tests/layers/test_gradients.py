"""Gradients in chunks equal gradients whole, and both are the true ones (law 9)."""

import random
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from nearfuture.laws.stream import inputs, ragged_lengths, random_partition
from nearfuture.layers import StreamingLayer
from tests.laws.registry import ALL, STREAMING

NAMES = ["rnn tanh", "rnn clipped relu", "gru", "lstm", "lookahead 3", "convolution stride 2"]
NAMES += ["residual serial", "residual nested", "recogniser", "residual recogniser"]
NAMES += ["rnn clipped batch norm", "gru batch norm", "lstm batch norm", "cumulative norm"]
NAMES += ["convolution 2d strides", "residual norms", "deep speech 2 deployed"]


def made(make: Callable[[], StreamingLayer]) -> StreamingLayer:
    torch.manual_seed(0)
    return make().double().eval()


def gradients(layer: StreamingLayer, x: Tensor, rows: list[Tensor]) -> list[Tensor]:
    loss = sum(
        (row * torch.cos(torch.arange(row.numel())).reshape(row.shape)).sum() for row in rows
    )
    return list(torch.autograd.grad(loss, [x, *layer.parameters()]))


@pytest.mark.parametrize("name", NAMES)
def test_gradients_in_chunks_equal_gradients_whole(name: str) -> None:
    layer = made(STREAMING[name])
    rng = random.Random(0)
    lengths = ragged_lengths(3, 15, rng)
    x = inputs(layer, 3, 15, seed=0).requires_grad_()
    y, n = layer(x, torch.tensor(lengths))
    whole = gradients(layer, x, [y[b, :k] for b, k in enumerate(n.tolist())])

    state = layer.start(3, dtype=x.dtype)
    read = [0, 0, 0]
    pieces: list[list[Tensor]] = [[], [], []]
    for chunk in random_partition(lengths, rng):
        parts = [x[b, read[b] : read[b] + k] for b, k in enumerate(chunk)]
        width = max(chunk)
        padded = [torch.cat([p, p.new_zeros(width - len(p), p.shape[1])]) for p in parts]
        y, n, state = layer.step(torch.stack(padded), torch.tensor(chunk), state)
        read = [a + b for a, b in zip(read, chunk, strict=True)]
        for b, k in enumerate(n.tolist()):
            pieces[b].append(y[b, :k])
    y, n = layer.finish(state)
    for b, k in enumerate(n.tolist()):
        pieces[b].append(y[b, :k])
    chunked = gradients(layer, x, [torch.cat(row) for row in pieces])
    for got, expected in zip(chunked, whole, strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", ["rnn tanh", "gru", "lstm", "lookahead 3", "bidirectional gru"])
def test_gradients_are_the_true_ones(name: str) -> None:
    layer = made(ALL[name])
    x = inputs(layer, 2, 6, seed=0).requires_grad_()
    n = torch.tensor([6, 3])
    assert torch.autograd.gradcheck(lambda x: layer(x, n)[0], (x,))
