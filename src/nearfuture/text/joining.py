"""The text of a recording from the texts of its utterances."""

from __future__ import annotations

from collections.abc import Iterable


def join_utterances(utterances: Iterable[tuple[str, bool]]) -> str:
    """Join utterances to one text: single spaces between words, none within a word that was cut.

    Args:
        utterances: the text of each, in their order, and whether it continues the last word of the
            utterance before it: an utterance that reaches its longest is cut within a word.

    >>> join_utterances([("two", False), ("", False), ("thr", False), ("ee", True)])
    'two three'
    """
    joined = ""
    for text, continues in utterances:
        stripped = text.strip()
        if stripped:
            joined += stripped if continues or not joined else f" {stripped}"
    return joined
