"""The two graphs of a streaming model: one quantum, and the tail of a stream that ends.

Shapes: `B` batch, `C` samples of a chunk, `V` vocabulary, `T` frames that one call can emit.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nearfuture.error import NearfutureError
from nearfuture.export.graphs.state import Leaf, describe, pack, unpack
from nearfuture.layers import Lookahead, Serial, State
from nearfuture.layers.ragged import join, mask
from nearfuture.model import Recognizer


class StepGraph(nn.Module):
    """One chunk of samples through every layer and every head.

    `pcm (B, C, 1), lengths (B,), state…
    → (log_probs_τ (B, T, V), frames_τ (B,)) for each τ, state…`

    Args:
        model: a streaming recogniser in eval mode.

    >>> from nearfuture.budget import tiny
    >>> graph = StepGraph(Recognizer(tiny()).eval())
    >>> y, n, *_ = graph(torch.zeros(2, 440, 1), torch.tensor([440, 439]), *graph.start(2))
    >>> tuple(y.shape), n.tolist()
    ((2, 2, 29), [1, 0])
    """

    def __init__(self, model: Recognizer) -> None:
        super().__init__()
        self.model = model
        self.lookahead = _lookahead(model)

    def start(self, batch_size: int) -> list[Tensor]:
        """The state before the first sample, as the graph carries it."""
        return pack(_start(self.model, batch_size))

    def leaves(self) -> list[Leaf]:
        """The description of what `start` returns."""
        features, encoder, lookahead = _start(self.model, 1)
        return describe(
            [
                ("features", self.model.features, features),
                ("encoder", self.model.encoder, encoder),
                ("lookahead", self.lookahead, lookahead),
            ]
        )

    def forward(self, pcm: Tensor, lengths: Tensor, *state: Tensor) -> tuple[Tensor, ...]:
        """The graph itself, as in the equation above."""
        features, encoder, lookahead = unpack(_start(self.model, pcm.shape[0]), state)
        x, n, features = self.model.features.step(pcm, lengths, features)
        x, n, encoder = self.model.encoder.step(x, n, encoder)
        heads, lookahead = self.lookahead.step_all(x, n, lookahead)
        return *_outputs(self.model, heads), *pack((features, encoder, lookahead))


class FinishGraph(nn.Module):
    """The graph that emits the outputs still waiting for future frames.

    `state… → (log_probs_τ (B, T, V), frames_τ (B,)) for each τ`, where `T` is τ unless layers below
    the lookahead have a tail of their own.

    Args:
        model: a streaming recogniser in eval mode.

    >>> from nearfuture.budget import tiny
    >>> graph = FinishGraph(Recognizer(tiny()).eval())
    >>> [tuple(y.shape) for y in graph(*StepGraph(graph.model).start(2))[::2]]
    [(2, 0, 29), (2, 4, 29), (2, 8, 29), (2, 19, 29)]
    """

    def __init__(self, model: Recognizer) -> None:
        super().__init__()
        self.model = model
        self.lookahead = _lookahead(model)
        self.below = Serial(model.features, model.encoder)

    def forward(self, *state: Tensor) -> tuple[Tensor, ...]:
        """The graph itself, as in the equation above."""
        features, encoder, lookahead = unpack(_start(self.model, state[0].shape[0]), state)
        x, n = self.below.finish((features, encoder))
        heads: list[tuple[Tensor, Tensor]] = []
        if x.shape[1]:
            heads, lookahead = self.lookahead.step_all(x, n, lookahead)
        tails = self.lookahead.finish_all(lookahead)
        if heads:
            tails = [join(*head, *tail) for head, tail in zip(heads, tails, strict=True)]
        return tuple(_outputs(self.model, tails))


def _lookahead(model: Recognizer) -> Lookahead:
    if model.lookahead is None:
        raise NearfutureError(
            "a bidirectional model has no streaming graphs, only an offline one", code="unsupported"
        )
    return model.lookahead


def _start(model: Recognizer, batch_size: int) -> tuple[State, State, State]:
    lookahead = _lookahead(model).start(batch_size)
    return model.features.start(batch_size), model.encoder.start(batch_size), lookahead


def _outputs(model: Recognizer, heads: list[tuple[Tensor, Tensor]]) -> list[Tensor]:
    """The output layer once over all heads, as if they were one sequence."""
    y = model.output.module(torch.cat([x for x, _ in heads], dim=1))
    parts = y.split([x.shape[1] for x, _ in heads], dim=1)
    pairs = [(mask(part, n), n) for part, (_, n) in zip(parts, heads, strict=True)]
    return [tensor for pair in pairs for tensor in pair]
