"""Real text in Korean and English, as the symbols that the models read and write.

English is read letter by letter. Korean is read jamo by jamo (Unicode's NFD): the text has 548
different syllables, a third of which occur three times or less, but only 59 jamo. What a model
writes is put together again into syllables (NFC).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import torch
from torch import Tensor

from nearfuture import NearfutureError

Language = Literal["ko", "en"]

_FOLDER = Path(__file__).parent / "texts"
_TENTHS = 10


@dataclass(frozen=True, kw_only=True)
class Text:
    """A text in three parts, each a list of whole paragraphs spread over all of it.

    Of every ten paragraphs eight are for training, one for validation, and one is kept for the
    judge of what the models write.

    Attributes:
        language: `ko` or `en`.
        symbols: every symbol of the text, in the order of their numbers; V of them.
        train: what models learn from, decomposed (NFD).
        dev: what they are validated on.
        judge: what the judge learns from; no model sees it.

    >>> text = Text.load("ko")
    >>> text.decode(text.encode("대한민국"))
    '대한민국'
    >>> len(text.encode("대한민국"))
    11
    """

    language: Language
    symbols: str
    train: str
    dev: str
    judge: str

    @classmethod
    def load(cls, language: Language) -> Text:
        """Load the text of a language from the files beside the recipe.

        Raises:
            NearfutureError: for a language of which there is no text.
        """
        if language not in get_args(Language):
            raise NearfutureError(
                f"there is a text for ko and en, not for {language!r}", parameter="language"
            )
        written = (_FOLDER / f"{language}.txt").read_text(encoding="utf-8")
        return cls.of(unicodedata.normalize("NFD", written), language)

    @classmethod
    def of(cls, written: str, language: Language = "en") -> Text:
        """Split a text, one paragraph a line, into its parts."""
        paragraphs = written.splitlines(keepends=True)
        parts = [
            "".join(p for i, p in enumerate(paragraphs) if i % _TENTHS in tenths)
            for tenths in (range(8), (8,), (9,))
        ]
        return cls(
            language=language,
            symbols="".join(sorted(set(written))),
            train=parts[0],
            dev=parts[1],
            judge=parts[2],
        )

    def encode(self, written: str) -> Tensor:
        """Numbers (T,) int64 of the symbols of a text.

        Raises:
            NearfutureError: for a symbol that the text does not have.
        """
        numbers = {symbol: number for number, symbol in enumerate(self.symbols)}
        decomposed = unicodedata.normalize("NFD", written)
        unknown = sorted(set(decomposed) - set(numbers))
        if unknown:
            raise NearfutureError(
                f"the models know the {len(self.symbols)} symbols of their text, which has no "
                f"{unknown[0]!r}",
                parameter="written",
            )
        return torch.tensor([numbers[symbol] for symbol in decomposed], dtype=torch.int64)

    def decode(self, numbers: Iterable[int] | Tensor) -> str:
        """A text of symbols, Korean put together into syllables."""
        return unicodedata.normalize("NFC", "".join(self.symbols[int(n)] for n in numbers))

    @property
    def words(self) -> frozenset[str]:
        """Every word of the whole text: what stands between blanks, without punctuation."""
        return frozenset(words(self.train + self.dev + self.judge))


def words(written: str) -> list[str]:
    """Words of a text, composed and without the punctuation around them."""
    composed = unicodedata.normalize("NFC", written)
    stripped = (word.strip("`'\".,;:!?()[]-_·<>") for word in composed.split())
    return [word for word in stripped if word]
