"""What taggers of each kind say about a word: how right they are, and word by word."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from recipes.evidence.sentences import AmbiguousWord
from recipes.evidence.tagger import KINDS, Tagger, TaggerOptions, accuracy_by_distance, train


@dataclass(frozen=True, kw_only=True)
class Arrival:
    """One sentence as it arrives.

    Args:
        words: of the sentence.
        target: where the word of two senses is.
        probabilities: of the second sense, by kind of tagger, after the word and each behind it.
    """

    words: tuple[str, ...]
    target: int
    probabilities: Mapping[str, Sequence[float]]


@dataclass(frozen=True, kw_only=True)
class Tagging:
    """The taggers of one word.

    Args:
        senses: of the word.
        accuracy: by kind, and for each seed by the distance of the evidence in words.
        examples: a sentence of either sense, by the taggers of the first seed.
    """

    senses: tuple[str, str]
    accuracy: Mapping[str, Sequence[Mapping[int, float]]]
    examples: tuple[Arrival, Arrival]

    def to_json(self) -> dict[str, Any]:
        """Plain values for a JSON file."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Tagging:
        """The inverse of `to_json`."""
        first, second = (
            Arrival(
                words=tuple(each["words"]),
                target=each["target"],
                probabilities=each["probabilities"],
            )
            for each in values["examples"]
        )
        return cls(
            senses=(values["senses"][0], values["senses"][1]),
            accuracy={
                kind: [{int(k): v for k, v in seed.items()} for seed in seeds]
                for kind, seeds in values["accuracy"].items()
            },
            examples=(first, second),
        )


def arrival(taggers: Mapping[str, Tagger], words: Sequence[str], target: int) -> Arrival:
    """Let taggers read a sentence word by word."""
    return Arrival(
        words=tuple(words),
        target=target,
        probabilities={
            kind: tagger.as_words_arrive(words, target).tolist() for kind, tagger in taggers.items()
        },
    )


def study(
    word: AmbiguousWord,
    options: TaggerOptions,
    report: Callable[[str], None] = lambda activity: None,
    keep: Callable[[str, Tagger], None] = lambda kind, tagger: None,
) -> Tagging:
    """Train taggers of each kind with each seed, and ask them about new sentences.

    Args:
        word: whose senses they learn.
        options: how much is trained and tested.
        report: called with what is done next.
        keep: called with the tagger of each kind that has the first seed.
    """
    accuracy: dict[str, list[dict[int, float]]] = {kind: [] for kind in KINDS}
    first: dict[str, Tagger] = {}
    for seed in range(options.seeds):
        for kind in KINDS:
            report(f"{word.name}: training {kind}, seed {seed}")
            tagger = train(word, kind, steps=options.steps, seed=seed)
            if kind not in first:
                first[kind] = tagger
                keep(kind, tagger)
            accuracy[kind].append(accuracy_by_distance(tagger, word, options.tests))
    one, other = (arrival(first, each.words, each.target) for each in word.examples)
    return Tagging(senses=word.senses, accuracy=accuracy, examples=(one, other))
