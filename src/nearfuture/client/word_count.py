"""Words of the reference that are lost, changed, added or repeated."""

from __future__ import annotations

from dataclasses import dataclass, field

from nearfuture.text import ErrorRate
from nearfuture.text.error_rate import align


@dataclass(frozen=True, kw_only=True)
class WordCount:
    """Edits between what was said and what was shown in the end; they add up.

    Attributes:
        errors: substitutions, deletions (lost words) and insertions.
        repeated: of the insertions, words in a run that repeats what stands next to it.

    >>> count = WordCount.of("one two three".split(), "one two one two three oh".split())
    >>> count.errors.insertions, count.repeated
    (3, 2)
    """

    errors: ErrorRate = field(default_factory=ErrorRate)
    repeated: int = 0

    @classmethod
    def of(cls, said: list[str], shown: list[str]) -> WordCount:
        """The edits between two lists of normalised words."""
        pairs = align(said, shown)
        return cls(
            errors=ErrorRate.of(pairs),
            repeated=_repeated([a is None for a, b in pairs if b is not None], shown),
        )

    def __add__(self, other: WordCount) -> WordCount:
        return WordCount(errors=self.errors + other.errors, repeated=self.repeated + other.repeated)


def _repeated(inserted: list[bool], shown: list[str]) -> int:
    """Words in runs of insertions that equal as many words before or behind them."""
    count, begin = 0, 0
    while begin < len(shown):
        end = begin
        while end < len(shown) and inserted[end]:
            end += 1
        run = shown[begin:end]
        if run and (
            shown[max(0, begin - len(run)) : begin] == run or shown[end : end + len(run)] == run
        ):
            count += len(run)
        begin = max(end, begin + 1)
    return count
