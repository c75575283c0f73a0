"""Laws 1 and 3: chunks of any size give what the whole sequence gives."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from nearfuture.laws.broken import LawBroken, difference
from nearfuture.laws.stream import (
    Partition,
    Source,
    inputs,
    lengths_of,
    prepare,
    ragged_lengths,
    random_partition,
    refuses_to_stream,
    single_frames,
    streamed,
    whole,
)
from nearfuture.layers import StreamingLayer

__all__ = ["any_partition", "prefill_then_step"]


def any_partition(
    layer: Source,
    *,
    seed: int = 0,
    batch: int = 4,
    frames: int = 24,
    rounds: int = 4,
    dtype: torch.dtype = torch.float64,
) -> None:
    """Law 1: outputs over any cut of the input, and `finish`, equal `forward`.

    Cuts: single frames, everything at once, and random ones with empty chunks, in which rows
    advance at different paces. A layer that reads everything first must say `NotStreamable`.

    Args:
        layer: a layer, or a function that makes one.
        seed: of weights (where the layer is made here), inputs and cuts.
        batch: rows.
        frames: of the longest row.
        rounds: random cuts.
        dtype: float64 shows that what differs in float32 is rounding.

    Raises:
        LawBroken: with the smallest cut that shows the difference.

    >>> from nearfuture.layers import GRU, Lookahead, Serial
    >>> any_partition(Serial(GRU(2, 3), Lookahead(3, frames=2)))
    """
    law = "law 1 (any partition)"
    subject = prepare(layer, seed=seed, dtype=dtype)
    if refuses_to_stream(subject, law):
        return
    rng = random.Random(seed)
    x = inputs(subject, batch, frames, seed=seed)
    lengths = ragged_lengths(batch, frames, rng)
    cuts = [single_frames(lengths), (tuple(lengths),)]
    cuts += [random_partition(ragged_lengths(batch, frames, rng), rng) for _ in range(rounds)]
    _all_equal_forward(law, subject, x, cuts)


def prefill_then_step(
    layer: Source,
    *,
    seed: int = 0,
    batch: int = 4,
    frames: int = 24,
    dtype: torch.dtype = torch.float64,
) -> None:
    """Law 3: one long `step` through the fast kernel, then single frames, equal `forward`.

    The rows of the long step have different lengths, so each must go on from its own last frame.

    Raises:
        LawBroken: with the smallest cut that shows the difference.

    >>> from nearfuture.layers import LSTM
    >>> prefill_then_step(LSTM(2, 3))
    """
    law = "law 3 (prefill then step)"
    subject = prepare(layer, seed=seed, dtype=dtype)
    if refuses_to_stream(subject, law):
        return
    rng = random.Random(seed)
    x = inputs(subject, batch, frames, seed=seed)
    cuts = []
    for long in (4, frames // 2, frames - 2):
        full = (long,) * batch
        ragged = (long, *(rng.randint(0, long) for _ in range(batch - 1)))
        for first in (full, ragged):
            cuts.append((first, *single_frames([frames - n for n in first])))
    _all_equal_forward(law, subject, x, cuts)


def _all_equal_forward(law: str, layer: StreamingLayer, x: Tensor, cuts: list[Partition]) -> None:
    """Every cut against `forward`; on failure, the smallest cut that still fails."""

    def broken(x: Tensor, cut: Partition) -> str | None:
        lengths = lengths_of(cut, x.shape[0])
        expected = whole(layer, x[:, : max(lengths)], lengths)
        got = streamed(layer, x, cut)
        for b, (in_chunks, at_once) in enumerate(zip(got, expected, strict=True)):
            where = difference(in_chunks, at_once, names=("in chunks", "whole"))
            if where:
                return f"row {b}, {where}"
        return None

    for cut in cuts:
        if broken(x, cut):
            x, cut = _smallest(broken, x, cut)
            shown = ", ".join(str(chunk[0] if len(chunk) == 1 else chunk) for chunk in cut)
            raise LawBroken(law, f"in chunks of [{shown}] frames, {broken(x, cut)}")


def _smallest(
    broken: Callable[[Tensor, Partition], str | None], x: Tensor, cut: Partition
) -> tuple[Tensor, Partition]:
    """A small cut that still breaks the law: one row if it can, few chunks, few frames."""
    for b in range(x.shape[0]):
        alone = tuple((chunk[b],) for chunk in cut)
        if broken(x[b : b + 1], alone):
            x, cut = x[b : b + 1], alone
            break
    smaller = True
    while smaller:
        smaller = False
        for candidate in _simpler(cut):
            if broken(x, candidate):
                cut, smaller = candidate, True
                break
    return x, cut


def _simpler(cut: Partition) -> Iterator[Partition]:
    """Cuts with a chunk less, two chunks joined, or a frame less."""
    for k in range(len(cut)):
        if len(cut) > 1:
            yield cut[:k] + cut[k + 1 :]
    for k in range(len(cut) - 1):
        joined = tuple(a + b for a, b in zip(cut[k], cut[k + 1], strict=True))
        yield (*cut[:k], joined, *cut[k + 2 :])
    for k, chunk in enumerate(cut):
        for b, n in enumerate(chunk):
            if n:
                yield (*cut[:k], (*chunk[:b], n - 1, *chunk[b + 1 :]), *cut[k + 1 :])
