"""A model's state as the named inputs and outputs of a graph.

A buffer without capacity (the state of a layer that never waits) is no input of a graph, nor is the
count behind it, which is always 0: both are made inside the graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from nearfuture.layers import (
    LSTM,
    CumulativeLayerNorm,
    DynamicChunks,
    Recurrent,
    Residual,
    SelfAttention,
    Serial,
    State,
    StreamingLayer,
    Windowed,
)
from nearfuture.layers.state import flatten, unflatten


@dataclass(frozen=True)
class Leaf:
    """One tensor of a state, as graph metadata describes it.

    Attributes:
        name: where it lives, e.g. `encoder.2.hidden`.
        shape: without the batch, which comes first.
        dtype: `float32`, `int64`, or `float64` for sums that grow for hours.
        initial: the value that every element has before the first sample.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    initial: float


def describe(parts: Sequence[tuple[str, StreamingLayer, State]]) -> list[Leaf]:
    """The leaves a graph carries, of named layers with a fresh state each.

    >>> from nearfuture.layers import GRU, Lookahead
    >>> layer = Serial(GRU(1, 2), Lookahead(2, frames=3), Lookahead(2, frames=0))
    >>> for leaf in describe([("top", layer, layer.start(1))]):
    ...     print(leaf.name, leaf.shape, leaf.dtype, leaf.initial)
    top.0.hidden (2,) float32 0.0
    top.1.frames (3, 2) float32 0.0
    top.1.count () int64 0
    """
    names = [name for prefix, layer, state in parts for name in _names(layer, state, prefix)]
    state = tuple(state for _, _, state in parts)
    leaves = flatten(state)
    described = []
    for name, leaf, is_carried in zip(names, leaves, _carried(leaves), strict=True):
        if not is_carried:
            continue
        initial = leaf.flatten()[0].item()
        assert bool((leaf == initial).all()), f"{name} does not begin as one constant"
        dtype = str(leaf.dtype).removeprefix("torch.")
        described.append(Leaf(name, tuple(leaf.shape[1:]), dtype, initial))
    return described


def pack(state: State) -> list[Tensor]:
    """The tensors of a state that a graph carries."""
    leaves = flatten(state)
    return [leaf for leaf, keep in zip(leaves, _carried(leaves), strict=True) if keep]


def unpack(like: State, packed: Sequence[Tensor]) -> State:
    """The inverse of `pack`; `like` is a fresh state, which gives the rest.

    >>> like = (torch.zeros(1, 0, 2), torch.zeros(1, dtype=torch.int64), torch.zeros(1, 4))
    >>> _, count, hidden = unpack(like, [torch.ones(1, 4)])
    >>> count.tolist(), hidden.tolist()
    ([0], [[1.0, 1.0, 1.0, 1.0]])
    """
    tensors = iter(packed)
    leaves = flatten(like)
    whole = [
        next(tensors) if keep else leaf for leaf, keep in zip(leaves, _carried(leaves), strict=True)
    ]
    return unflatten(like, whole)


def _carried(leaves: Sequence[Tensor]) -> list[bool]:
    kept = []
    empty = False
    for leaf in leaves:
        counts_nothing = empty and leaf.ndim == 1 and leaf.dtype == torch.int64
        empty = 0 in leaf.shape[1:]
        kept.append(not (empty or counts_nothing))
    return kept


def _names(layer: StreamingLayer, state: State, prefix: str) -> list[str]:
    match layer:
        case Serial():
            pairs = enumerate(zip(layer, state, strict=True))
            return [n for i, (part, s) in pairs for n in _names(part, s, f"{prefix}.{i}")]
        case Residual():
            inner = _names(layer.inner, state[2], f"{prefix}.inner")
            return [f"{prefix}.waiting", f"{prefix}.count", *inner]
        case DynamicChunks():
            return _names(layer.layer, state, prefix)
        case SelfAttention():
            parts = ("waiting", "waiting_count", "keys", "values", "count")
            return [f"{prefix}.{part}" for part in parts]
        case Windowed():
            return [f"{prefix}.frames", f"{prefix}.count"]
        case CumulativeLayerNorm():
            return [f"{prefix}.sums", f"{prefix}.count"]
        case LSTM():
            return [f"{prefix}.hidden", f"{prefix}.cell"]
        case Recurrent():
            return [f"{prefix}.hidden"]
    return [f"{prefix}.{i}" for i in range(len(flatten(state)))]
