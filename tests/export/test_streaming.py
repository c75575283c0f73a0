"""The step and finish graphs in eager torch: exact, before anything is translated."""

import copy

import numpy as np
import pytest
import torch
from torch import Tensor

from nearfuture.error import NearfutureError
from nearfuture.export.graphs.streaming import FinishGraph, StepGraph
from nearfuture.layers import Convolution, Serial
from nearfuture.model import Recognizer
from tests.waveform import assert_close, signals, torch_log_probs


def stream(
    model: Recognizer, rows: list[np.ndarray], random: np.random.Generator, largest: int
) -> dict[int, list[np.ndarray]]:
    """Stream float64 rows side by side in ragged chunks of at most `largest` samples."""
    step, heads = StepGraph(model), model.config.heads
    state: tuple[Tensor, ...] = tuple(step.start(len(rows)))
    lengths = np.array([len(row) for row in rows])
    read = np.zeros_like(lengths)
    found: dict[int, list[list[np.ndarray]]] = {tau: [[] for _ in rows] for tau in heads}

    def keep(outputs: tuple[Tensor, ...]) -> None:
        for i, tau in enumerate(heads):
            y, n = outputs[2 * i : 2 * i + 2]
            for b in range(len(rows)):
                found[tau][b].append(y[b, : int(n[b])].numpy())

    with torch.inference_mode():
        while (read < lengths).any():
            sizes = np.minimum(random.integers(0, largest + 1, len(rows)), lengths - read)
            pcm = torch.full((len(rows), int(sizes.max()), 1), torch.nan, dtype=torch.float64)
            for b, size in enumerate(sizes):
                pcm[b, :size, 0] = torch.from_numpy(rows[b][read[b] : read[b] + size])
            outputs = step(pcm, torch.from_numpy(sizes), *state)
            read += sizes
            keep(outputs)
            state = outputs[2 * len(heads) :]
        keep(FinishGraph(model)(*state))
    return {tau: [np.concatenate(parts) for parts in found[tau]] for tau in heads}


@pytest.mark.parametrize(
    ("longest", "largest"),
    [
        *((16_000, 320), (16_000, 5000), (16_000, 16_000), (900, 20)),
        pytest.param(450, 1, marks=pytest.mark.slow),
    ],
)
def test_any_partition_equals_forward_for_every_head(
    recognizer: Recognizer, longest: int, largest: int
) -> None:
    exact = copy.deepcopy(recognizer).double()
    random = np.random.default_rng(longest + largest)
    sound = signals()["speech"].astype(np.float64)
    rows = [sound[:n] for n in (longest, longest // 3, 441, 440, 439, 1, 0)]
    found = stream(exact, rows, random, largest)
    for tau, expected in torch_log_probs(exact, rows).items():
        assert tau is not None
        for b, values in enumerate(expected):
            assert_close(found[tau][b], values, 1e-10, f"head {tau}, row {b}")


def test_a_tail_below_the_lookahead_is_not_lost(recognizer: Recognizer) -> None:
    model = copy.deepcopy(recognizer)
    width = model.config.recurrence.hidden
    torch.manual_seed(1)
    model.encoder = Serial(*model.encoder, Convolution(width, width, left=1, right=2))
    model = model.double()
    rows = [signals()["speech"].astype(np.float64)[:n] for n in (9000, 1100, 440, 0)]
    found = stream(model, rows, np.random.default_rng(0), 320)
    for tau, expected in torch_log_probs(model, rows).items():
        assert tau is not None
        for b, values in enumerate(expected):
            assert_close(found[tau][b], values, 1e-10, f"head {tau}, row {b}")


def test_state_holds_nothing_empty(recognizer: Recognizer) -> None:
    graph = StepGraph(recognizer)
    assert [(leaf.name, leaf.shape, leaf.dtype) for leaf in graph.leaves()] == [
        ("features.frames", (199, 1), "float32"),
        ("features.count", (), "int64"),
        ("encoder.0.frames", (3, 40), "float32"),
        ("encoder.0.count", (), "int64"),
        ("encoder.2.inner.1.hidden", (32,), "float32"),
        ("encoder.3.inner.1.hidden", (32,), "float32"),
        ("lookahead.frames", (19, 32), "float32"),
        ("lookahead.count", (), "int64"),
    ]
    assert all(leaf.numel() > 0 for leaf in graph.start(2))


def test_a_bidirectional_model_has_no_streaming_graph(twin: Recognizer) -> None:
    with pytest.raises(NearfutureError, match="bidirectional"):
        StepGraph(twin)
