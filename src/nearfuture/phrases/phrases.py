"""What may be said: sentences typed as templates, counted, sampled, spelled, and understood."""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nearfuture.decoding import Automaton
from nearfuture.error import NearfutureError
from nearfuture.phrases.content import check_content, parse_yaml, read_text
from nearfuture.phrases.network import Network
from nearfuture.phrases.reading import TemplateReader, import_hassil
from nearfuture.phrases.template import Node, node_arcs, sampled
from nearfuture.text import normalise, plural

if TYPE_CHECKING:
    from hassil import Intents

_MOST_PROBLEMS = 5
_LINES = "plain lines"  # what messages call them
_LONGEST = 1000


@dataclass(frozen=True)
class SlotValue:
    """A part of a sentence that was one of a list.

    Args:
        value: what it means, as the list says.
        text: what was said.
        begin: its first character in the sentence.
        end: the character behind its last one.
    """

    value: Any
    text: str
    begin: int
    end: int


@dataclass(frozen=True)
class Meaning:
    """What a sentence means.

    Args:
        intent: its name; None for plain lines.
        slots: what was said of lists, by the name of the slot.
        fixed: slots that the intent sets, whatever is said.
    """

    intent: str | None
    slots: Mapping[str, SlotValue] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)

    @property
    def values(self) -> dict[str, Any]:
        """The value of every slot."""
        return {**self.fixed, **{name: slot.value for name, slot in self.slots.items()}}


@dataclass(frozen=True, eq=False)
class Block:
    """Templates that mean the same.

    Args:
        intent: its name; None for plain lines.
        templates: at least one.
        slots: that are set whatever is said.
        weight: how often its sentences are sampled, beside those of others.
    """

    intent: str | None
    templates: tuple[Node, ...]
    slots: Mapping[str, Any] = field(default_factory=dict)
    weight: float = 1.0


@dataclass(frozen=True, eq=False)
class Phrases:
    """Sentences that may be said, however many, and what they mean.

    Nothing here lists the sentences: `count` is exact for any number of them.

    Args:
        blocks: of templates; a sentence that two of them have belongs to the first.
        omitted: names of lists of any text; the sentences that need one are left out.

    >>> phrases = Phrases.of_lines(["turn (left|right) [now]", "stop"])
    >>> phrases.automaton.count, sorted(phrases.automaton.words())
    (5, ['left', 'now', 'right', 'stop', 'turn'])
    """

    blocks: tuple[Block, ...]
    omitted: tuple[str, ...] = ()

    @classmethod
    def load(cls, *paths: str | Path, intents: Collection[str] | None = None) -> Phrases:
        """Read files of template sentences (YAML or JSON), or of plain lines (.txt).

        Several YAML files are put together, as hassil does: one may have the sentences, another
        the lists.

        Args:
            paths: of the files.
            intents: only these of them.

        Raises:
            NearfutureError: naming the file, or the templates, and what is wrong with them.
            MissingDependency: where hassil is not installed.
        """
        if all(str(path).endswith(".txt") for path in paths):
            return cls.of_lines(line for path in paths for line in read_text(path).splitlines())
        hassil = import_hassil()
        merged: dict[str, Any] = {}
        for path in paths:
            hassil.merge_dict(merged, parse_yaml(read_text(path), str(path)))
        return cls.of_dict(merged, intents=intents)

    @classmethod
    def of_dict(cls, content: dict[str, Any], *, intents: Collection[str] | None = None) -> Phrases:
        """Return the phrases of a file's content; arguments and errors are those of `load`."""
        hassil = import_hassil()
        check_content(content)
        for name, kind in (("language", str), ("intents", dict)):
            if not isinstance(content.get(name), kind):
                raise NearfutureError(f"the phrases have no `{name}`", code="damaged")
        known = list(content["intents"])
        unknown = [name for name in intents or () if name not in known]
        if unknown:
            raise NearfutureError(
                f"there is no intent {unknown[0]}; there are {', '.join(known)}",
                code="not_found",
                parameter="intents",
            )
        try:
            problems = [*_no_texts(content)]
            if problems:
                raise _refused(problems)
            parsed: Intents = hassil.Intents.from_dict(content)
            reader = TemplateReader(parsed)
            blocks = [
                Block(
                    name,
                    tuple(templates),
                    data.slots,
                    float((data.metadata or {}).get("weight", 1.0)),
                )
                for name, intent in parsed.intents.items()
                if intents is None or name in intents
                for data in intent.data
                if (templates := reader.sentences(data, name))
            ]
        except NearfutureError:
            raise
        except (
            *(hassil.parser.ParseError, AssertionError, AttributeError),
            *(IndexError, KeyError, OverflowError, TypeError, ValueError),
        ) as error:
            raise NearfutureError(
                f"the phrases cannot be read: {type(error).__name__}: {error}", code="damaged"
            ) from error
        omitted = tuple(reader.omitted)
        return cls(_checked(blocks, list(reader.problems), omitted), omitted)

    @classmethod
    def of_lines(cls, lines: Iterable[str]) -> Phrases:
        """Return the phrases of lines, a sentence or a template each, without an intent.

        Empty lines, and those that begin with #, are passed over.
        """
        kept = [line.strip() for line in lines]
        sentences = [line for line in kept if line and not line.startswith("#")]
        content = {"language": "en", "intents": {_LINES: {"data": [{"sentences": sentences}]}}}
        phrases = cls.of_dict(content)
        return cls(tuple(Block(None, block.templates) for block in phrases.blocks))

    @cached_property
    def network(self) -> Network:
        """The templates, with the number of its block at the end of each."""
        return _network(self.blocks)

    @cached_property
    def automaton(self) -> Automaton:
        """The automaton of all sentences.

        Raises:
            NearfutureError: for a sentence of more than 1,000 characters, or too many of them.
        """
        automaton = self.network.automaton()
        if automaton.longest > _LONGEST:
            raise NearfutureError(
                f"the longest sentence has {automaton.longest:,} characters; {_LONGEST:,} are the "
                f"most",
                code="too_large",
            )
        return automaton

    def of_intent(self, intent: str | None) -> Phrases:
        """Return the phrases of one intent alone."""
        return Phrases(tuple(block for block in self.blocks if block.intent == intent))

    @property
    def intents(self) -> tuple[str | None, ...]:
        """The names of the intents, in order."""
        return tuple(dict.fromkeys(block.intent for block in self.blocks))

    def clashes(self) -> list[tuple[str, str | None, str | None]]:
        """Return sentences that two intents have, an example for each two; the first has them."""
        found = {
            (str(self.blocks[i].intent), str(self.blocks[j].intent)): text
            for text, i, j in reversed(self.network.clashes())
            if self.blocks[i].intent != self.blocks[j].intent
        }
        return [(text, *pair) for pair, text in sorted(found.items())]

    def understand(self, text: str) -> Meaning | None:
        """Return what a sentence means; None if it is none of these.

        Args:
            text: spelled in any way; it is normalised.

        >>> content = {
        ...     "language": "en",
        ...     "intents": {"Dim": {"data": [{"sentences": ["dim [the] {room} to {level}"]}]}},
        ...     "lists": {
        ...         "room": {"values": [{"in": "(hall|hallway)", "out": "hall"}]},
        ...         "level": {"range": {"from": 0, "to": 100}},
        ...     },
        ... }
        >>> meaning = Phrases.of_dict(content).understand("Dim the hallway to twenty-five!")
        >>> meaning.intent, meaning.values
        ('Dim', {'room': 'hall', 'level': 25})
        """
        sentence = normalise(text)
        found = self.network.parse(sentence)
        if found is None:
            return None
        block = self.blocks[found.number]
        slots = {}
        for slot, begin, end in found.marks:
            part = sentence[begin:end]
            slots[slot.name] = SlotValue(slot.list.value(part), part, begin, end)
        return Meaning(block.intent, slots, dict(block.slots))

    def sample(self, seed: int) -> Iterator[str]:
        """Yield sentences without end: a block by its weight, then each choice by lot.

        Args:
            seed: of the lots; the same seed gives the same sentences.
        """
        rng = random.Random(seed)
        weights = [block.weight for block in self.blocks]
        while True:
            (block,) = rng.choices(self.blocks, weights)
            yield normalise("".join(sampled(rng.choice(block.templates), rng)))


def _network(blocks: Iterable[Block]) -> Network:
    network = Network()
    for number, block in enumerate(blocks):
        for template in block.templates:
            begun = network.add_jump(network.start)
            network.add_text(node_arcs(network, template, begun), number)
    return network


def _checked(
    blocks: list[Block], problems: list[str], omitted: tuple[str, ...]
) -> tuple[Block, ...]:
    for block in blocks:
        if not 0 < block.weight < math.inf:
            problems.append(
                f"{block.intent}: the weight must be above 0 and finite, not {block.weight:g}"
            )
        for template in block.templates:
            alone = Network()
            alone.add_text(node_arcs(alone, template, alone.start), 0)
            if alone.may_be_empty():
                problems.append(f"{block.intent}: a template may be empty: it has nothing to say")
    if problems:
        raise _refused(problems)
    if not blocks:
        raise NearfutureError(
            "the phrases have no sentence that can be spoken"
            + (": each needs a list of any text" if omitted else "")
        )
    return tuple(blocks)


def _no_texts(content: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with sentences and values that are no texts: `on` is true in YAML."""
    texts = [
        (name, text)
        for name, intent in content["intents"].items()
        for data in intent["data"]
        for text in data["sentences"]
    ]
    texts += [
        (f"{{{name}}}", value["in"] if isinstance(value, dict) else value)
        for name, source in content.get("lists", {}).items()
        for value in source.get("values", ())
    ]
    for where, text in texts:
        if not isinstance(text, str):
            yield (
                f"{where}: {text!r} is no text: put it between quotes, for YAML reads on, off, yes "
                f"and no as true and false, and digits as a number"
            )


def _refused(problems: list[str]) -> NearfutureError:
    rest = len(problems) - _MOST_PROBLEMS
    listed = "\n".join(problems[:_MOST_PROBLEMS])
    return NearfutureError(
        f"the phrases have {plural(len(problems), 'problem')}:\n{listed}"
        + (f"\nand {rest} more" if rest > 0 else "")
    )
