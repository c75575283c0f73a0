"""Which sense has a word? Small trained taggers that read one way, with a lookahead, and both ways.

What a tagger says after so many words is its answer on the words so far, as if they were all: one
way it is settled at the word itself, with a lookahead τ words later, both ways at the end.

Shapes: `T` words, `V` vocabulary.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearfuture.lab.graphs import open_session
from nearfuture.lab.page import ASSETS
from nearfuture.lab.refusal import Refusal

FOLDER = ASSETS / "evidence"


@dataclass(frozen=True)
class Example:
    """A sentence, and the sense that its word of two senses has in it."""

    text: str
    sense: int


@dataclass(frozen=True)
class AmbiguousWord:
    """A word of two senses.

    Attributes:
        name: as sentences have it.
        senses: two.
        kinds: of taggers.
        vocabulary: V words; the first stands for all others.
        examples: sentences that no tagger was trained on; the first two differ in their ends.
    """

    name: str
    senses: tuple[str, str]
    kinds: tuple[str, ...]
    vocabulary: tuple[str, ...]
    examples: tuple[Example, ...]


@dataclass(frozen=True)
class ArrivingSentence:
    """A sentence as it arrives.

    Attributes:
        words: of the sentence.
        known: whether the taggers know each word.
        target: where the word of two senses is.
        probabilities: of the second sense, by kind, after that word and after each behind it.
        settled: by kind, how many words behind it the answer changed last.
    """

    words: list[str]
    known: list[bool]
    target: int
    probabilities: dict[str, list[float]]
    settled: dict[str, int]


@cache
def word_of(file: str) -> AmbiguousWord:
    """A word by the name of its file, "bank" or "gamsa".

    >>> word_of("bank").name, word_of("gamsa").name, word_of("bank").senses
    ('bank', '감사를', ('money', 'river'))
    """
    about = json.loads((FOLDER / f"tagger-{file}.json").read_text(encoding="utf-8"))
    sentences = about["sentences"]
    return AmbiguousWord(
        name=sentences[0]["words"][sentences[0]["target"]],
        senses=tuple(about["senses"]),
        kinds=tuple(about["kinds"]),
        vocabulary=tuple(about["vocabulary"]),
        examples=tuple(Example(" ".join(each["words"]), each["sense"]) for each in sentences),
    )


def arrive(file: str, text: str) -> ArrivingSentence:
    """Let the taggers of a word read a sentence word by word.

    Raises:
        Refusal: for a sentence without the word.

    >>> found = arrive("bank", "we met at the bank early because the account was empty")
    >>> found.settled["one way"], found.settled["lookahead 2"]
    (0, 2)
    >>> [round(found.probabilities[kind][-1], 1) for kind in ("both ways", "one way")]
    [0.0, 0.5]
    """
    word = word_of(file)
    words = text.lower().split()
    if word.name not in words:
        raise Refusal(
            "word-missing",
            f"`text` is a sentence with the word {word.name!r}, not {text!r}",
            parameter="text",
            word=word.name,
        )
    target = words.index(word.name)
    x = np.zeros((1, len(words), len(word.vocabulary)), np.float32)
    known = [each in word.vocabulary for each in words]
    for at, each in enumerate(words):
        x[0, at, word.vocabulary.index(each) if known[at] else 0] = 1
    answers = {kind: _answers(file, kind, x, target) for kind in word.kinds}
    settled = {kind: _settled(answer) for kind, answer in answers.items()}
    return ArrivingSentence(words, known, target, answers, settled)


def _answers(file: str, kind: str, x: NDArray[np.float32], target: int) -> list[float]:
    tagger = _tagger(FOLDER / f"tagger-{file}-{kind.replace(' ', '-')}.onnx")
    ends = range(target + 1, x.shape[1] + 1)
    return [float(tagger.run(None, {"words": x[:, :end]})[0][0, target]) for end in ends]


def _settled(probabilities: Sequence[float]) -> int:
    """The last place at which the answer differs from that before it."""
    changed = [
        at for at in range(1, len(probabilities)) if _differ(*probabilities[at - 1 : at + 1])
    ]
    return max(changed, default=0)


def _differ(before: float, after: float) -> bool:
    # Longer inputs are multiplied in other blocks: the last bits differ though no word counts.
    return abs(before - after) > 1e-5


@cache
def _tagger(path: Path) -> Any:
    return open_session(path)
