"""Layers as graphs of their own: ONNX Runtime streams what torch computes whole."""

from collections.abc import Sequence

import numpy as np
import onnxruntime as ort
import pytest
import torch
from torch import Tensor, nn

from nearfuture import audit
from nearfuture.export.graphs.state import describe, pack, unpack
from nearfuture.export.graphs.translation import translate
from nearfuture.laws.stream import Partition
from nearfuture.layers import (
    LSTM,
    RNN,
    ChunkedMask,
    Convolution,
    CumulativeLayerNorm,
    Lookahead,
    RelativePositions,
    Residual,
    RMSNorm,
    SelfAttention,
    SequenceBatchNorm,
    Serial,
    StreamingLayer,
)
from nearfuture.layers.state import flatten
from tests.laws.registry import settled

CHUNK = 4


class Alone(nn.Module):
    """A layer over whole sequences without padding."""

    def __init__(self, layer: StreamingLayer) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x, torch.full((x.shape[0],), x.shape[1]))[0]


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
    chunked = ChunkedMask(chunk=3, left_chunks=1, right=1)
    return settled(
        Serial(
            RNN(3, 4, nonlinearity="clipped_relu", batch_norm=True),
            LSTM(4, 3, batch_norm=True),
            Convolution(3, 3, left=2, right=4, dilation=3, groups=3),
            Residual(Serial(*norms)),
            Residual(SelfAttention(3, 1, mask=chunked, positions=RelativePositions(distance=2))),
        )
    ).eval()


def small_stack() -> StreamingLayer:
    """The two states that no other quick export has: sums, and keys with their positions."""
    chunked = ChunkedMask(chunk=3, left_chunks=1, right=1)
    return Serial(
        CumulativeLayerNorm(3),
        SelfAttention(3, 1, mask=chunked, positions=RelativePositions(distance=2)),
    ).eval()


class Graphs:
    """A layer as a graph of its steps, and one of its end."""

    def __init__(self, layer: StreamingLayer) -> None:
        self.layer = layer
        self.leaves = describe([("s", layer, layer.start(1))])
        fresh = zip(self.leaves, pack(layer.start(3)), strict=True)
        state = {leaf.name: (value, {0: "batch"}) for leaf, value in fresh}
        chunk = {
            "x": (torch.zeros(3, CHUNK, layer.input_size), {0: "batch"}),
            "lengths": (torch.full((3,), CHUNK), {0: "batch"}),
        }
        names = [f"{leaf.name}.next" for leaf in self.leaves]
        self.step = session(Step(layer), chunk | state, ["y", "n", *names])
        self.finish = session(Finish(layer), state, ["y", "n"])

    def run(self, x: np.ndarray, cut: Partition) -> list[np.ndarray]:
        """Every row's outputs, in chunks; what lies past a row's frames is NaN."""
        now = [leaf.numpy() for leaf in pack(self.layer.start(len(x)))]
        read = [0] * len(x)
        pieces: list[list[np.ndarray]] = [[] for _ in x]
        for sizes in cut:
            piece = np.full((len(x), CHUNK, x.shape[2]), np.nan, np.float32)
            for b, size in enumerate(sizes):
                piece[b, :size] = x[b, read[b] : read[b] + size]
                read[b] += size
            feed = {"x": piece, "lengths": np.array(sizes, np.int64), **self._named(now)}
            y, n, *now = self.step.run(None, feed)
            self._collect(pieces, y, n)
        wanted = {value.name for value in self.finish.get_inputs()}
        feed = {name: value for name, value in self._named(now).items() if name in wanted}
        self._collect(pieces, *self.finish.run(None, feed))
        return [np.concatenate(row) for row in pieces]

    def _named(self, state: list[np.ndarray]) -> dict[str, np.ndarray]:
        return {leaf.name: value for leaf, value in zip(self.leaves, state, strict=True)}

    @staticmethod
    def _collect(pieces: list[list[np.ndarray]], y: np.ndarray, n: np.ndarray) -> None:
        for row, frames, count in zip(pieces, y, n, strict=True):
            row.append(frames[:count])


# The exporter takes a minute for the whole stack.
@pytest.fixture(scope="module", params=[small_stack, pytest.param(stack, marks=pytest.mark.slow)])
def graphs(request: pytest.FixtureRequest) -> Graphs:
    torch.manual_seed(0)
    return Graphs(request.param())


def chunks(lengths: Sequence[int], rng: np.random.Generator) -> Partition:
    """Chunks of up to CHUNK frames, every row at a pace of its own."""
    rest, cut = list(lengths), []
    while any(rest):
        cut.append(tuple(int(min(n, rng.integers(0, CHUNK + 1))) for n in rest))
        rest = [n - size for n, size in zip(rest, cut[-1], strict=True)]
    return tuple(cut)


def test_a_streamed_graph_equals_torch(graphs: Graphs) -> None:
    assert not any(leaf.name[-1].isdigit() for leaf in graphs.leaves)
    lengths = [23, 17, 0, 1, 8]
    x = torch.randn(5, 23, graphs.layer.input_size)
    with torch.no_grad():
        expected, counts = graphs.layer(x, torch.tensor(lengths))
    found = graphs.run(x.numpy(), chunks(lengths, np.random.default_rng(0)))
    for b, count in enumerate(counts.tolist()):
        assert found[b].shape == (count, graphs.layer.output_size)
        np.testing.assert_allclose(found[b], expected[b, :count].numpy(), rtol=1e-5, atol=1e-5)


def test_a_row_of_a_graph_has_the_same_bits_alone_and_in_any_batch(graphs: Graphs) -> None:
    lengths = [23, 9, 17, 23, 1]
    x = np.random.default_rng(1).normal(size=(5, 23, graphs.layer.input_size)).astype(np.float32)
    cut = chunks(lengths, np.random.default_rng(2))
    together = graphs.run(x, cut)
    for b, row in enumerate(together):
        alone = graphs.run(x[b : b + 1], tuple((sizes[b],) for sizes in cut))
        assert np.array_equal(alone[0], row)


def test_a_streamed_graph_looks_as_far_as_its_layer_declares(graphs: Graphs) -> None:
    def streamed(x: np.ndarray) -> np.ndarray:
        whole, rest = divmod(x.shape[1], CHUNK)
        sizes = [CHUNK] * whole + [rest] * (rest > 0)
        return np.stack(graphs.run(x, tuple((size,) * len(x) for size in sizes)))

    example = np.random.default_rng(3).normal(size=(1, 24, 3)).astype(np.float32)
    assert audit.lookahead(streamed, example) == graphs.layer.field.right
    layer = Alone(graphs.layer)
    assert audit.lookahead(layer, torch.from_numpy(example)) == graphs.layer.field.right


def test_a_batch_norm_leaves_no_state() -> None:
    layer = SequenceBatchNorm(3)
    assert flatten(layer.start(2))[0].numel() == 0
    assert pack(layer.start(2)) == []
