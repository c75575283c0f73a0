"""Recordings with their texts, as several commands take them: a part of them, and what is skipped.

A list is often sorted by speaker, so a limit takes recordings at even distances.
"""

from collections.abc import Sequence
from typing import TypeVar

from nearfuture.cli.console import complain

_MAX_NAMED = 10  # skipped recordings, before the rest is only counted

_Item = TypeVar("_Item")


def evenly_spaced(items: Sequence[_Item], limit: int | None) -> Sequence[_Item]:
    """Take at most so many items, at even distances.

    >>> evenly_spaced("abcdef", 3), evenly_spaced("ab", 3)
    (['a', 'c', 'e'], 'ab')
    """
    if limit is None or limit >= len(items):
        return items
    return [items[number * len(items) // limit] for number in range(limit)]


def warn_skipped(problems: Sequence[str]) -> None:
    """Name the first recordings that are skipped on stderr, and count the rest."""
    for problem in problems[:_MAX_NAMED]:
        complain(f"skipped: {problem}")
    if len(problems) > _MAX_NAMED:
        complain(f"skipped: {len(problems) - _MAX_NAMED} more")
