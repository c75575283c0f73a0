"""Law 6: save, restore and continue, as if never interrupted."""

from __future__ import annotations

import random

import torch

from nearfuture.laws.broken import LawBroken, difference
from nearfuture.laws.stream import (
    Source,
    inputs,
    prepare,
    ragged_lengths,
    random_partition,
    refuses_to_stream,
    streamed,
    until,
)
from nearfuture.layers.state import clone, deserialize, flatten, put_rows, serialize, take_rows, to

__all__ = ["snapshot_round_trip"]


def snapshot_round_trip(
    layer: Source,
    *,
    seed: int = 0,
    batch: int = 4,
    frames: int = 24,
    rounds: int = 2,
    dtype: torch.dtype = torch.float64,
) -> None:
    """Law 6: a snapshot in memory or in bytes continues bit for bit where the stream was.

    Neither going on nor overwriting the original changes a snapshot, and a step changes nothing in
    the state it was given.

    Raises:
        LawBroken: naming the snapshot and the first difference.

    >>> from nearfuture.layers import LSTM
    >>> snapshot_round_trip(LSTM(2, 3))
    """
    law = "law 6 (snapshot round trip)"
    subject = prepare(layer, seed=seed, dtype=dtype)
    if refuses_to_stream(subject, law):
        return
    rng = random.Random(seed)
    for r in range(rounds):
        x = inputs(subject, batch, frames, seed=seed + r)
        cut = random_partition(ragged_lengths(batch, frames, rng), rng)
        here = rng.randint(0, len(cut))
        everyone = torch.arange(batch, device=x.device)
        _, state, position = until(subject, x, cut[:here])
        truth = [leaf.clone() for leaf in flatten(state)]
        fresh = subject.start(batch, device=x.device, dtype=x.dtype)
        snapshots = {
            "clone": clone(state),
            "to": to(state, x.device),
            "take_rows": take_rows(state, everyone),
            "put_rows": put_rows(fresh, everyone, state),
            "serialize": deserialize(
                serialize(state), subject.start(1, device=x.device, dtype=x.dtype)
            ),
        }
        begin = subject.start(batch, device=x.device, dtype=x.dtype)
        for i, (leaf, was) in enumerate(zip(flatten(fresh), flatten(begin), strict=True)):
            where = difference(leaf, was, names=("after put_rows", "before"), tolerance=0)
            if where:
                raise LawBroken(law, f"put_rows writes into its argument: tensor {i}, {where}")
        expected = streamed(subject, x, cut[here:], state, position)
        for i, (leaf, was) in enumerate(zip(flatten(state), truth, strict=True)):
            where = difference(leaf, was, names=("after going on", "before"), tolerance=0)
            if where:
                raise LawBroken(
                    law, f"step writes into the state it was given: tensor {i}, {where}"
                )
        for leaf in flatten(state):
            leaf.fill_(77)
        for name, snapshot in snapshots.items():
            for i, (leaf, was) in enumerate(zip(flatten(snapshot), truth, strict=True)):
                where = difference(leaf, was, names=("now", "when it was made"), tolerance=0)
                if where:
                    raise LawBroken(
                        law, f"{name} shares memory with the original: tensor {i}, {where}"
                    )
            continued = streamed(subject, x, cut[here:], snapshot, position)
            for b, (got, never) in enumerate(zip(continued, expected, strict=True)):
                where = difference(got, never, names=("restored", "uninterrupted"), tolerance=0)
                if where:
                    raise LawBroken(law, f"{name} after {here} of {list(cut)}: row {b}, {where}")
