"""The characters a model can write, and their numbers; number 0 is the CTC blank."""

from __future__ import annotations

import string
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from nearfuture.error import NearfutureError

BLANK = 0
"""The id of the CTC blank in every vocabulary."""

SUM_TOLERANCE = 0.01
"""By how much the probabilities of a vocabulary's symbols may miss a sum of 1.

The half precisions need that: a bfloat16 has three digits. Those of float32 are within 0.00001.
"""


@dataclass(frozen=True)
class Vocabulary:
    """The characters a model can write, numbered from 1; id 0 is the CTC blank.

    The blank is implicit: `symbols` does not hold it, `len` counts it, so `len(vocabulary)` is the
    width `V` of the model's output.

    Args:
        symbols: single characters (code points), each once, in the order of their ids 1, 2, …

    Raises:
        NearfutureError: if a symbol is not exactly one character, or comes twice.

    >>> vocabulary = Vocabulary((" ", "a", "b"))
    >>> len(vocabulary), vocabulary.encode("ab a"), vocabulary.decode([2, 3, 1, 2])
    (4, [2, 3, 1, 2], 'ab a')
    """

    symbols: tuple[str, ...]
    _ids: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        ids: dict[str, int] = {}
        for number, symbol in enumerate(self.symbols, start=BLANK + 1):
            if not isinstance(symbol, str) or len(symbol) != 1:
                raise NearfutureError(
                    f"symbol {number} of the vocabulary is {symbol!r}: each symbol must be one "
                    "character",
                    parameter="symbols",
                )
            if symbol in ids:
                raise NearfutureError(
                    f"the vocabulary has {symbol!r} twice, as {ids[symbol]} and {number}: "
                    "list each character once",
                    parameter="symbols",
                )
            ids[symbol] = number
        object.__setattr__(self, "_ids", ids)

    @classmethod
    def english(cls) -> Vocabulary:
        """Return the English letters: space, apostrophe, a to z; 29 ids with the blank.

        >>> Vocabulary.english().encode("it's")
        [11, 22, 2, 21]
        """
        return cls((" ", "'", *string.ascii_lowercase))

    @classmethod
    def from_texts(cls, texts: Iterable[str]) -> Vocabulary:
        """Return the vocabulary of all characters in `texts`, in the order of their code points.

        Texts are taken as they are: normalise them first, in the way that training will.

        >>> Vocabulary.from_texts(["two", "one two"]).symbols
        (' ', 'e', 'n', 'o', 't', 'w')
        """
        return cls(tuple(sorted({character for text in texts for character in text})))

    def __len__(self) -> int:
        return BLANK + 1 + len(self.symbols)

    def encode(self, text: str) -> list[int]:
        """Return the ids of the characters of `text`, one for each.

        Raises:
            NearfutureError: naming every character the vocabulary lacks and where it is first.

        >>> Vocabulary.english().encode("Go!")
        Traceback (most recent call last):
            ...
        nearfuture.error.NearfutureError: cannot write 'G' (at 0), '!' (at 2) of 'Go!' with this \
vocabulary of 28 characters: normalise the text first (nearfuture.text.normalise), or build the \
vocabulary from the texts (Vocabulary.from_texts)
        """
        try:
            return [self._ids[character] for character in text]
        except KeyError:
            raise NearfutureError(self._unknown(text), parameter="text") from None

    def decode(self, ids: Sequence[int]) -> str:
        """Return the characters of `ids`, one for each; the blank writes nothing.

        Repeats are kept: collapsing them is the work of a CTC decoder, not of the vocabulary.

        Raises:
            NearfutureError: if an id is not in `0 … len - 1`.

        >>> Vocabulary.english().decode([4, 0, 6, 6])
        'bdd'
        """
        for position, number in enumerate(ids):
            if not 0 <= number < len(self):
                raise NearfutureError(
                    f"id {number} at position {position} is outside this vocabulary: ids go from "
                    f"0 (blank) to {len(self) - 1}; was it written with another vocabulary?",
                    code="out_of_range",
                    parameter="ids",
                )
        return "".join(self.symbols[number - 1] for number in ids if number != BLANK)

    def _unknown(self, text: str) -> str:
        first = {c: text.index(c) for c in dict.fromkeys(text) if c not in self._ids}
        named = ", ".join(f"{c!r} (at {position})" for c, position in first.items())
        shown = text if len(text) <= 60 else text[:59] + "…"
        return (
            f"cannot write {named} of {shown!r} with this vocabulary of {len(self.symbols)} "
            "characters: normalise the text first (nearfuture.text.normalise), or build the "
            "vocabulary from the texts (Vocabulary.from_texts)"
        )


def frames_needed(target: Sequence[Hashable]) -> int:
    """Count the fewest frames in which CTC can spell a target: its length plus its repeats.

    Two of the same symbol in a row need a blank between them (Graves et al. 2006).

    Args:
        target: ids of symbols, or characters.

    >>> frames_needed([1, 1, 1]), frames_needed([1, 2, 1]), frames_needed("hello")
    (5, 3, 6)
    """
    return len(target) + sum(a == b for a, b in pairwise(target))
