"""Words of the reference that are lost, changed, added or repeated."""

from __future__ import annotations

from dataclasses import dataclass, field

from nearfuture.text import ErrorRate, edit_alignment


@dataclass(frozen=True, kw_only=True)
class WordErrors:
    """Edits between the reference and the final text; they add up.

    Attributes:
        edits: substitutions, deletions (lost words) and insertions.
        repeated: of the insertions, words in a run that repeats what stands next to it.

    >>> errors = WordErrors.of("one two three".split(), "one two one two three oh".split())
    >>> errors.edits.insertions, errors.repeated
    (3, 2)
    """

    edits: ErrorRate = field(default_factory=ErrorRate)
    repeated: int = 0

    @classmethod
    def of(cls, reference: list[str], final: list[str]) -> WordErrors:
        """Return the edits between two lists of normalised words."""
        pairs = edit_alignment(reference, final)
        inserted = [before is None for before, after in pairs if after is not None]
        return cls(edits=ErrorRate.of(pairs), repeated=_repeated(inserted, final))

    def __add__(self, other: WordErrors) -> WordErrors:
        return WordErrors(edits=self.edits + other.edits, repeated=self.repeated + other.repeated)


def _repeated(inserted: list[bool], words: list[str]) -> int:
    """Count the words in runs of insertions that equal as many words before or behind them."""
    count, begin = 0, 0
    while begin < len(words):
        end = begin
        while end < len(words) and inserted[end]:
            end += 1
        run = words[begin:end]
        if run and run in (words[max(0, begin - len(run)) : begin], words[end : end + len(run)]):
            count += len(run)
        begin = max(end, begin + 1)
    return count
