"""How long a recording must be for what it is said to hold."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import pairwise


def frames_needed(target: Sequence[Hashable]) -> int:
    """Fewest frames in which CTC can spell a target: its length plus its immediate repeats.

    Two of the same symbol in a row need a blank between them (Graves et al. 2006).

    Args:
        target: ids of symbols, or characters.

    >>> frames_needed([1, 1, 1]), frames_needed([1, 2, 1]), frames_needed("hello")
    (5, 3, 6)
    """
    return len(target) + sum(a == b for a, b in pairwise(target))
