"""Word and character error rates: the fewest edits between what was said and what was written."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["ErrorRate", "Pair", "align", "character_errors", "word_errors"]

Pair = tuple[str | None, str | None]
"""One place of an alignment: (said, written); None where one side has nothing."""


@dataclass(frozen=True, kw_only=True)
class ErrorRate:
    """Edit counts against a reference; they add up, so a sum is the rate of a whole corpus.

        rate = (substitutions + deletions + insertions) / reference

    The rate of a sum weighs every reference symbol alike (micro-average). Against an empty
    reference the rate is 0 if nothing was written and infinite otherwise. It may exceed 1.

    Args:
        substitutions: reference symbols written as another symbol.
        deletions: reference symbols not written.
        insertions: symbols written that the reference lacks.
        reference: symbols in the reference.

    >>> total = word_errors("one two", "one too") + word_errors("three", "three four")
    >>> total.errors, total.reference, round(total.rate, 3)
    (2, 3, 0.667)
    >>> word_errors("", "").rate, word_errors("", "oh").rate
    (0.0, inf)
    """

    substitutions: int = 0
    deletions: int = 0
    insertions: int = 0
    reference: int = 0

    @classmethod
    def of(cls, pairs: Sequence[Pair]) -> ErrorRate:
        """The counts of an alignment made by `align`.

        >>> ErrorRate.of(align(["a", "b"], ["a"]))
        ErrorRate(substitutions=0, deletions=1, insertions=0, reference=2)
        """
        return cls(
            substitutions=sum(None not in pair and pair[0] != pair[1] for pair in pairs),
            deletions=sum(written is None for _, written in pairs),
            insertions=sum(said is None for said, _ in pairs),
            reference=sum(said is not None for said, _ in pairs),
        )

    @property
    def errors(self) -> int:
        """All edits together: the Levenshtein distance."""
        return self.substitutions + self.deletions + self.insertions

    @property
    def rate(self) -> float:
        """Edits per reference symbol; 0 or infinite where the reference is empty."""
        if self.reference == 0:
            return math.inf if self.errors else 0.0
        return self.errors / self.reference

    def __add__(self, other: ErrorRate) -> ErrorRate:
        return ErrorRate(
            substitutions=self.substitutions + other.substitutions,
            deletions=self.deletions + other.deletions,
            insertions=self.insertions + other.insertions,
            reference=self.reference + other.reference,
        )


def word_errors(reference: str, hypothesis: str) -> ErrorRate:
    """The edits between two texts in words, which are what white space separates.

    Texts are compared as they are: normalise both first (`normalise`).

    >>> word_errors("seven two zero", "seven too two zero")
    ErrorRate(substitutions=0, deletions=0, insertions=1, reference=3)
    """
    return ErrorRate.of(align(reference.split(), hypothesis.split()))


def character_errors(reference: str, hypothesis: str) -> ErrorRate:
    """The edits between two texts in characters (code points), single spaces between words counted.

    >>> character_errors("two zero", "too  zer").errors
    2
    """
    return ErrorRate.of(align(" ".join(reference.split()), " ".join(hypothesis.split())))


def align(reference: Sequence[str], hypothesis: Sequence[str]) -> list[Pair]:
    """An alignment with the fewest substitutions, deletions and insertions, each of cost one.

        d(i, j) = min(d(i-1, j-1) + [r_i ≠ h_j],  d(i-1, j) + 1,  d(i, j-1) + 1)

    Where several are shortest, walking back from the end a pair goes before a deletion, and a
    deletion before an insertion; how errors divide into kinds depends on that, their sum does not.
    A common beginning and end are paired at once; between them time and memory are the product of
    the two lengths, one byte a cell.

    Args:
        reference: `R` symbols that were said: a list of words, or a string for its characters.
        hypothesis: `H` symbols that were written.

    Returns:
        The pairs in order; reading either side without its Nones gives the input back.

    Source: Wagner and Fischer, "The string-to-string correction problem", 1974.

    >>> for said, written in align("one two three".split(), "one tree four".split()):
    ...     print(said, written)
    one one
    two tree
    three four
    >>> align("ab", "b")
    [('a', None), ('b', 'b')]
    """
    shorter = min(len(reference), len(hypothesis))
    head = 0
    while head < shorter and reference[head] == hypothesis[head]:
        head += 1
    tail = 0
    while tail < shorter - head and reference[-1 - tail] == hypothesis[-1 - tail]:
        tail += 1
    middle = _align(
        reference[head : len(reference) - tail], hypothesis[head : len(hypothesis) - tail]
    )
    same = list(zip(reference, reference, strict=True))
    return [*same[:head], *middle, *same[len(reference) - tail :]]


_PAIR, _DELETE, _INSERT = range(3)


def _align(reference: Sequence[str], hypothesis: Sequence[str]) -> list[Pair]:
    # moves[i][j]: the last move of the best path to (i, j)
    moves = [bytearray([_INSERT]) * (len(hypothesis) + 1)]
    above = list(range(len(hypothesis) + 1))
    for i, said in enumerate(reference, start=1):
        row = [i]
        move = bytearray([_DELETE])
        for j, written in enumerate(hypothesis, start=1):
            best, by = above[j - 1] + (said != written), _PAIR
            if above[j] + 1 < best:
                best, by = above[j] + 1, _DELETE
            if row[j - 1] + 1 < best:
                best, by = row[j - 1] + 1, _INSERT
            row.append(best)
            move.append(by)
        above = row
        moves.append(move)

    pairs: list[Pair] = []
    i, j = len(reference), len(hypothesis)
    while i or j:
        by = moves[i][j]
        i -= by != _INSERT
        j -= by != _DELETE
        pairs.append(
            (
                None if by == _INSERT else reference[i],
                None if by == _DELETE else hypothesis[j],
            )
        )
    return pairs[::-1]
