"""Numbers with their nouns, for messages."""

from __future__ import annotations


def plural(number: int, thing: str) -> str:
    """Return a number with its noun, whose plural ends with s.

    >>> plural(1, "frame"), plural(0, "recording")
    ('1 frame', '0 recordings')
    """
    return f"{number} {thing}{'' if number == 1 else 's'}"
