"""Sentences around a word of two senses, with the evidence before it or so many words behind it.

They are made from the phrases of `bank.toml` and `gamsa.toml`, where the deciding word is marked.

    he went to the  bank  this morning  to ask for a *loan
    neutral         word  link          phrase: money, decided 7 words behind the word
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np

from nearfuture import NearfutureError

Part = Literal["train", "test"]
FILES = {"bank": "bank.toml", "감사": "gamsa.toml"}
UNKNOWN = "<unknown>"
_MARK = "*"


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """Words around one of two senses.

    Args:
        words: of the sentence, in lower case.
        target: where the word of two senses is.
        cue: where the word is that decides.
        sense: 0 or 1, see `AmbiguousWord.senses`.
    """

    words: tuple[str, ...]
    target: int
    cue: int
    sense: int

    @property
    def distance(self) -> int:
        """How many words behind the target the evidence comes; negative where it stands before."""
        return self.cue - self.target


@dataclass(frozen=True, kw_only=True)
class Phrases:
    """Phrases with a marked word that decides for one sense: before the word, and behind it."""

    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class AmbiguousWord:
    """A word of two senses and what sentences about it are made from; see `bank.toml`.

    `file` is its name in ASCII.
    """

    name: str
    file: str
    language: str
    forms: tuple[str, ...]
    senses: tuple[str, str]
    neutral_before: tuple[str, ...]
    neutral_after: tuple[str, ...]
    links: tuple[str, ...]
    phrases: dict[tuple[str, Part], Phrases]
    examples: tuple[Sentence, Sentence]

    def behind(self, part: Part) -> list[Sentence]:
        """All sentences whose evidence stands behind the word."""
        return [
            _sentence(sense, before, form, f"{link} {phrase}")
            for sense, name in enumerate(self.senses)
            for phrase in self.phrases[name, part].after
            for link in self.links
            for before in self.neutral_before
            for form in self.forms
        ]

    def before(self, part: Part) -> list[Sentence]:
        """All sentences whose evidence stands before the word."""
        return [
            _sentence(sense, phrase, form, after)
            for sense, name in enumerate(self.senses)
            for phrase in self.phrases[name, part].before
            for after in self.neutral_after
            for form in self.forms
        ]

    def draw(self, rng: np.random.Generator, *, behind: bool) -> Sentence:
        """One training sentence, with its evidence behind the word or before it."""
        sense = int(rng.integers(2))
        phrases = self.phrases[self.senses[sense], "train"]
        form = _one(self.forms, rng)
        if behind:
            after = f"{_one(self.links, rng)} {_one(phrases.after, rng)}"
            return _sentence(sense, _one(self.neutral_before, rng), form, after)
        return _sentence(sense, _one(phrases.before, rng), form, _one(self.neutral_after, rng))

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """The words of the training sentences, behind `UNKNOWN`."""
        parts = [*self.forms, *self.neutral_before, *self.neutral_after, *self.links]
        for sense in self.senses:
            phrases = self.phrases[sense, "train"]
            parts += [*phrases.before, *phrases.after]
        return (UNKNOWN, *sorted({word.removeprefix(_MARK) for p in parts for word in p.split()}))


@cache
def ambiguous_word(name: str) -> AmbiguousWord:
    """Read the phrases about "bank" or "감사".

    Raises:
        NearfutureError: for another word.

    >>> bank = ambiguous_word("bank")
    >>> len(bank.behind("test")) > 1000
    True
    >>> sentence = bank.examples[0]
    >>> " ".join(sentence.words), sentence.words[sentence.cue], sentence.distance
    ('we met at the bank early because the account was empty', 'account', 4)
    """
    if name not in FILES:
        raise NearfutureError(
            f"there are sentences about {' and '.join(FILES)}, not about {name!r}",
            code="not_found",
            parameter="name",
        )
    text = Path(__file__).with_name(FILES[name]).read_text(encoding="utf-8")
    values = tomllib.loads(text)
    parts: tuple[Part, ...] = ("train", "test")
    phrases = {
        (sense, part): _phrases(values["frames"], **values[sense][part])
        for sense in values["senses"]
        for part in parts
    }
    first, second = values["senses"]
    example, other = (
        _sentence(sense, *(part.strip() for part in sentence.split("/")))
        for sense, sentence in enumerate(values["examples"])
    )
    return AmbiguousWord(
        name=name,
        file=Path(FILES[name]).stem,
        language=values["language"],
        senses=(first, second),
        phrases=phrases,
        examples=(example, other),
        **{
            key: tuple(values[key]) for key in ("forms", "neutral_before", "neutral_after", "links")
        },
    )


def _phrases(
    frames: list[str], *, before: list[str], after: list[str], nouns: Sequence[str] = ()
) -> Phrases:
    framed = (frame.format(noun) for noun in nouns for frame in frames)
    return Phrases(before=tuple(before), after=(*after, *framed))


def _one(choices: Sequence[str], rng: np.random.Generator) -> str:
    return choices[int(rng.integers(len(choices)))]


def _sentence(sense: int, before: str, word: str, after: str) -> Sentence:
    words = [*before.split(), word, *after.split()]
    cue = next(index for index, each in enumerate(words) if each.startswith(_MARK))
    return Sentence(
        words=tuple(each.removeprefix(_MARK) for each in words),
        target=len(before.split()),
        cue=cue,
        sense=sense,
    )
