"""Law 4: rows of a batch are strangers."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import torch
from torch import Tensor

from nearfuture.laws.broken import LawBroken, difference
from nearfuture.laws.stream import (
    Partition,
    Source,
    advance,
    inputs,
    prepare,
    ragged_lengths,
    random_partition,
    refuses_to_stream,
    streamed,
    until,
    whole,
)
from nearfuture.layers import StreamingLayer
from nearfuture.layers.state import flatten, put_rows, take_rows

__all__ = ["rows_are_strangers"]

_LAW = "law 4 (rows are strangers)"


def rows_are_strangers(
    layer: Source,
    *,
    seed: int = 0,
    batch: int = 4,
    frames: int = 24,
    rounds: int = 2,
    dtype: torch.dtype = torch.float64,
    tolerance: float | None = None,
) -> None:
    """Law 4: batch mates, row order, a reset of some rows and inactive rows change nothing.

    Mates are replaced by other values, other lengths and NaN. A row that gets no frames in a step
    must keep its state bit for bit.

    Args:
        layer: a layer, or a function that makes one.
        seed: of weights (where the layer is made here), inputs and cuts.
        batch: rows.
        frames: of the longest row.
        rounds: random cuts.
        dtype: of weights and inputs.
        tolerance: relative to max(1, |value|); matrix products may round by batch size, so
            float32 agrees within 1e-6, not bit for bit.

    Raises:
        LawBroken: naming what was done to the others and the row that noticed.

    >>> from nearfuture.layers import GRU
    >>> rows_are_strangers(GRU(2, 3))
    """
    subject = prepare(layer, seed=seed, dtype=dtype)
    rng = random.Random(seed)
    x = inputs(subject, batch, frames, seed=seed)
    lengths = ragged_lengths(batch, frames, rng)
    _offline(subject, x, lengths, tolerance)
    if refuses_to_stream(subject, _LAW):
        return
    for _ in range(rounds):
        cut = random_partition(ragged_lengths(batch, frames, rng), rng)
        _streaming(subject, x, cut, tolerance)
        _inactive(subject, x, cut)
        _partial_reset(subject, x, cut, rng, tolerance)


def _same(
    got: Sequence[Tensor], expected: Sequence[Tensor], what: str, tolerance: float | None
) -> None:
    for b, (here, alone) in enumerate(zip(got, expected, strict=True)):
        where = difference(here, alone, names=(what, "otherwise"), tolerance=tolerance)
        if where:
            raise LawBroken(_LAW, f"row {b}, {where}")


def _offline(layer: StreamingLayer, x: Tensor, lengths: list[int], limit: float | None) -> None:
    batch, frames, _ = x.shape
    expected = whole(layer, x, lengths)
    for b, n in enumerate(lengths):
        _same(whole(layer, x[b : b + 1], [n]), expected[b : b + 1], f"alone (as {b})", limit)
        for words, mate in (("1e3", 1e3 * x), ("NaN", torch.full_like(x, math.nan))):
            others = mate.clone()
            others[b] = x[b]
            full = [n if row == b else frames for row in range(batch)]
            got = whole(layer, others, full)
            _same(got[b : b + 1], expected[b : b + 1], f"beside {words} (as {b})", limit)
    order = list(reversed(range(batch)))
    got = whole(layer, x[order], [lengths[b] for b in order])
    _same([got[order.index(b)] for b in range(batch)], expected, "in reversed order", limit)


def _streaming(layer: StreamingLayer, x: Tensor, cut: Partition, limit: float | None) -> None:
    batch = x.shape[0]
    expected = streamed(layer, x, cut)
    for b in range(batch):
        alone = tuple((chunk[b],) for chunk in cut if chunk[b])
        got = streamed(layer, x[b : b + 1], alone)
        _same(got, expected[b : b + 1], f"streamed alone (as {b})", limit)
        others = torch.full_like(x, math.nan)
        others[b] = x[b]
        got = streamed(layer, others, cut)
        _same(got[b : b + 1], expected[b : b + 1], f"streamed beside NaN (as {b})", limit)
    # Rows change places between two steps; their states move with them.
    order = list(reversed(range(batch)))
    half = len(cut) // 2
    early, state, position = until(layer, x, cut[:half])
    later = streamed(
        layer,
        x[order],
        tuple(tuple(chunk[b] for b in order) for chunk in cut[half:]),
        take_rows(state, torch.tensor(order, device=x.device)),
        [position[b] for b in order],
    )
    got = [torch.cat([early[b], later[order.index(b)]]) for b in range(batch)]
    _same(got, expected, "with rows moved in mid-stream", limit)


def _inactive(layer: StreamingLayer, x: Tensor, cut: Partition) -> None:
    """A row without frames in a step keeps its state bit for bit and emits nothing."""
    state = layer.start(x.shape[0], device=x.device, dtype=x.dtype)
    before = flatten(state)
    for chunk, (new, after) in zip(cut, advance(layer, x, cut, state), strict=True):
        for b, n in enumerate(chunk):
            if n:
                continue
            if len(new[b]):
                raise LawBroken(_LAW, f"row {b} got no frame and emitted {len(new[b])}")
            for i, (leaf, was) in enumerate(zip(flatten(after), before, strict=True)):
                names = ("after a step without frames", "before")
                where = difference(leaf[b], was[b], names=names, tolerance=0)
                if where:
                    raise LawBroken(_LAW, f"row {b} is inactive, tensor {i} of the state, {where}")
        before = flatten(after)


def _partial_reset(
    layer: StreamingLayer, x: Tensor, cut: Partition, rng: random.Random, limit: float | None
) -> None:
    """Some rows start a new stream in mid-stream; the others go on."""
    batch, frames, _ = x.shape
    expected = streamed(layer, x, cut)
    half = rng.randint(0, len(cut))
    chosen = [b for b in range(batch) if rng.random() < 0.5] or [0]
    early, state, position = until(layer, x, cut[:half])
    fresh = layer.start(len(chosen), device=x.device, dtype=x.dtype)
    state = put_rows(state, torch.tensor(chosen, device=x.device), fresh)
    after = x.clone()
    after[chosen] = inputs(layer, len(chosen), frames, seed=rng.randint(0, 999))
    position = [0 if b in chosen else n for b, n in enumerate(position)]
    later = streamed(layer, after, cut[half:], state, position)
    for b in range(batch):
        if b in chosen:
            alone = tuple((chunk[b],) for chunk in cut[half:])
            new = streamed(layer, after[b : b + 1], alone)
            _same([later[b]], new, f"after a reset in mid-stream (as {b})", limit)
        else:
            went_on = torch.cat([early[b], later[b]])
            _same([went_on], expected[b : b + 1], f"beside rows that were reset (as {b})", limit)
