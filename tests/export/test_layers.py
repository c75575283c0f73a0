"""Layers as graphs of their own: ONNX Runtime streams what torch computes whole."""

import numpy as np
import onnxruntime as ort
import torch
from torch import Tensor, nn

from nearfuture.export.graphs.state import describe, pack, unpack
from nearfuture.export.graphs.translation import translate
from nearfuture.layers import (
    LSTM,
    RNN,
    Convolution,
    CumulativeLayerNorm,
    Lookahead,
    Residual,
    RMSNorm,
    SequenceBatchNorm,
    Serial,
    StreamingLayer,
)
from nearfuture.layers.state import flatten
from tests.laws.registry import settled

CHUNK = 4


class Step(nn.Module):
    def __init__(self, layer: StreamingLayer) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor, lengths: Tensor, *state: Tensor) -> tuple[Tensor, ...]:
        before = unpack(self.layer.start(x.shape[0]), state)
        y, n, after = self.layer.step(x, lengths, before)
        return y, n, *pack(after)


class Finish(nn.Module):
    def __init__(self, layer: StreamingLayer) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, *state: Tensor) -> tuple[Tensor, ...]:
        return self.layer.finish(unpack(self.layer.start(state[0].shape[0]), state))


def session(module: nn.Module, inputs: dict, outputs: list[str]) -> ort.InferenceSession:
    graph = translate(module, inputs, outputs, {})
    return ort.InferenceSession(graph.SerializeToString())


def stack() -> StreamingLayer:
    """The layers that no exported recogniser of these tests has."""
    norms = (CumulativeLayerNorm(3), Lookahead(3, 2), SequenceBatchNorm(3), RMSNorm(3))
    return settled(
        Serial(
            RNN(3, 4, nonlinearity="clipped_relu", batch_norm=True),
            LSTM(4, 3, batch_norm=True),
            Convolution(3, 3, left=2, right=4, dilation=3, groups=3),
            Residual(Serial(*norms)),
        )
    )


def test_a_streamed_graph_equals_torch() -> None:
    layer = stack().eval()
    leaves = describe([("s", layer, layer.start(1))])
    assert not any(leaf.name[-1].isdigit() for leaf in leaves)
    batch = {0: "batch"}
    state = {
        leaf.name: (value, batch) for leaf, value in zip(leaves, pack(layer.start(3)), strict=True)
    }
    chunk = {
        "x": (torch.zeros(3, CHUNK, layer.input_size), batch),
        "lengths": (torch.full((3,), CHUNK), batch),
    }
    names = [f"{leaf.name}.next" for leaf in leaves]
    step = session(Step(layer), chunk | state, ["y", "n", *names])

    lengths = np.array([23, 17, 0, 1, 8], np.int64)
    x = torch.randn(5, 23, layer.input_size)
    with torch.no_grad():
        expected, counts = layer(x, torch.from_numpy(lengths))
    rng, read = np.random.default_rng(0), np.zeros_like(lengths)
    now = [leaf.numpy() for leaf in pack(layer.start(5))]
    found: list[list[np.ndarray]] = [[] for _ in lengths]
    while (read < lengths).any():
        sizes = np.minimum(rng.integers(0, CHUNK + 1, 5), lengths - read)
        piece = np.full((5, CHUNK, layer.input_size), np.nan, np.float32)
        for b, size in enumerate(sizes):
            piece[b, :size] = x[b, read[b] : read[b] + size].numpy()
        feed = {"x": piece, "lengths": sizes}
        feed |= {leaf.name: value for leaf, value in zip(leaves, now, strict=True)}
        y, n, *now = step.run(None, feed)
        read += sizes
        for b, valid in enumerate(n):
            found[b].append(y[b, :valid])
    finish = session(Finish(layer), state, ["y", "n"])
    wanted = {value.name for value in finish.get_inputs()}
    feed = {leaf.name: value for leaf, value in zip(leaves, now, strict=True)}
    y, n = finish.run(None, {key: value for key, value in feed.items() if key in wanted})
    for b, valid in enumerate(n):
        found[b].append(y[b, :valid])
    for b, count in enumerate(counts.tolist()):
        got = np.concatenate(found[b]) if found[b] else np.zeros((0, layer.output_size))
        assert got.shape == (count, layer.output_size)
        np.testing.assert_allclose(got, expected[b, :count].numpy(), rtol=1e-5, atol=1e-5)


def test_a_batch_norm_leaves_no_state() -> None:
    layer = SequenceBatchNorm(3)
    assert flatten(layer.start(2))[0].numel() == 0
    assert pack(layer.start(2)) == []
