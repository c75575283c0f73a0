"""What templates mean, as four kinds of nodes: text, sequence, choice, slot."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from nearfuture.decoding import Automaton
from nearfuture.phrases.network import Network
from nearfuture.text import normalise


@dataclass(frozen=True)
class Characters:
    """Characters as they are spoken, spaces at the ends included."""

    text: str


@dataclass(frozen=True)
class Sequence:
    """One behind another, without a space between."""

    items: tuple[Node, ...]


@dataclass(frozen=True)
class Choice:
    """One of several; each as likely as the others when sentences are sampled."""

    items: tuple[Node, ...]


@dataclass(frozen=True, eq=False)
class ValueList:
    """The values of a slot, and the texts that mean them.

    Args:
        name: of the list.
        texts: what may be said, a node for each value.
        values: what each means.
    """

    name: str
    texts: tuple[Node, ...]
    values: tuple[Any, ...]
    network: Network
    automaton: Automaton

    @classmethod
    def of(cls, name: str, entries: list[tuple[Node, Any]]) -> ValueList:
        """Return the list of these values."""
        network = Network()
        for number, (node, _) in enumerate(entries):
            network.add_text(node_arcs(network, node, network.start), number)
        texts, values = (tuple(column) for column in zip(*entries, strict=True))
        return cls(name, texts, values, network, network.automaton())

    def value(self, text: str) -> Any:
        """Return what a text of the list means; of several values the first."""
        found = self.network.parse(text)
        assert found is not None, f"{text!r} is not in {self.name}"
        value = self.values[found.number]
        return text if value is None else value


@dataclass(frozen=True, eq=False)
class Slot:
    """A part that is told apart: one of a list."""

    name: str
    list: ValueList


Node = Characters | Sequence | Choice | Slot


def spoken(text: str) -> str:
    """Return a part of a template as transcripts are spelled, with its spaces at the ends.

    >>> spoken(" Living-Room"), spoken("twenty-one")
    (' living room', 'twenty one')
    """
    return normalise(f"x{text}x")[1:-1]


def node_arcs(network: Network, node: Node, state: int) -> int:
    """Add a node to a network behind a state; return the state behind the node."""
    network.count_node()
    match node:
        case Characters():
            for character in node.text:
                state = network.add_arc(state, character)
            return state
        case Sequence():
            for item in node.items:
                state = node_arcs(network, item, state)
            return state
        case Choice():
            end = network.add_state()
            for item in node.items:
                network.add_jump(node_arcs(network, item, network.add_jump(state)), end)
            return end
        case Slot():
            begun = network.add_jump(state, mark=node)
            return network.add_jump(network.add_automaton(begun, node.list.automaton), mark=None)


def sampled(node: Node, rng: random.Random) -> Iterator[str]:
    """Yield the parts of one text of a node, each choice and each value as likely as the others."""
    match node:
        case Characters():
            yield node.text
        case Sequence():
            for item in node.items:
                yield from sampled(item, rng)
        case Choice():
            yield from sampled(rng.choice(node.items), rng)
        case Slot():
            yield from sampled(rng.choice(node.list.texts), rng)
