"""Law 2: the state after n inputs does not remember how they were cut."""

from __future__ import annotations

import random

import torch

from nearfuture.laws.broken import LawBroken, difference
from nearfuture.laws.stream import (
    Source,
    inputs,
    prepare,
    random_partition,
    refuses_to_stream,
    single_frames,
    until,
)
from nearfuture.layers.state import flatten

__all__ = ["partition_free_state"]


def partition_free_state(
    layer: Source,
    *,
    seed: int = 0,
    batch: int = 4,
    frames: int = 24,
    rounds: int = 3,
    dtype: torch.dtype = torch.float64,
) -> None:
    """Law 2: leaf by leaf the state after n inputs is the same, however they were cut.

    All of every leaf is compared, so what lies beyond a count must not differ either. Integers are
    compared exactly.

    Raises:
        LawBroken: naming the tensor of the state and both values.

    >>> from nearfuture.layers import Convolution
    >>> partition_free_state(Convolution(2, 3, left=3, right=2, stride=2))
    """
    law = "law 2 (state is partition-free)"
    subject = prepare(layer, seed=seed, dtype=dtype)
    if refuses_to_stream(subject, law):
        return
    rng = random.Random(seed)
    x = inputs(subject, batch, frames, seed=seed)
    for limit in (0, 1, 2, 3, frames // 2, frames):
        lengths = [limit] + [rng.randint(0, limit) for _ in range(batch - 1)]
        reference = None
        cuts = [single_frames(lengths), (tuple(lengths),)]
        cuts += [random_partition(lengths, rng) for _ in range(rounds)]
        for cut in cuts:
            leaves = flatten(until(subject, x, cut)[1])
            if reference is None:
                reference = leaves
            names = (f"in chunks of {list(cut)}", "in single frames")
            for i, (got, expected) in enumerate(zip(leaves, reference, strict=True)):
                where = difference(got, expected, names=names)
                if where:
                    raise LawBroken(
                        law, f"after {lengths} frames, tensor {i} of the state, {where}"
                    )
