"""Random cuts, where a test wants some and no law draws them."""

import random
from collections.abc import Sequence

from nearfuture.laws.stream import Partition


def random_partition(lengths: Sequence[int], rng: random.Random) -> Partition:
    """Chunks of 0, 1, a few or many frames; every row at a pace of its own."""
    rest = list(lengths)
    longest = max(rest, default=0)
    sizes = (0, 1, 2, 3, 5, 8, max(1, longest // 2))
    partition: list[tuple[int, ...]] = []
    while any(rest):
        limit = rng.choice(sizes)
        chunk = tuple(min(n, rng.choice((0, 1, limit, rng.randint(0, limit)))) for n in rest)
        rest = [n - c for n, c in zip(rest, chunk, strict=True)]
        partition.append(chunk)
    partition.insert(rng.randint(0, len(partition)), (0,) * len(rest))
    return tuple(partition)
