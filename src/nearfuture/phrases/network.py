"""Templates as a network of arcs that may branch, and the automaton of what it spells.

Method. The network has an arc for every character of every template and jumps without one. A
*place* is a state of it and what was written of the text: nothing, a word, or a word and a space
that is written only before another one, so that spaces are single and none stands at an end. The
places that the same text can lead to are one state of the automaton (the subset construction).

Example, "[the] light": state 0 jumps to "the" and over it, then comes " ", then "light". Behind the
empty text the places are 0 and what its jumps lead to, the space included, for nothing is written
yet: both "the light" and "light" begin there, none of them with a space.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from nearfuture.decoding import Automaton
from nearfuture.error import NearfutureError

_START, _WORD, _PENDING, _SPACE = range(4)  # what was written last
_MOST_STATES = 1_000_000
_MOST_PLACES = 3_000_000
"""Of all subsets together: templates of a few bytes can have 2^n of them."""


@dataclass(frozen=True)
class Parse:
    """How a network spells a text.

    Args:
        number: of the text it belongs to, as given to `add_text`.
        marks: each mark that was passed, with the begin and the end of its characters.
    """

    number: int
    marks: tuple[tuple[Any, int, int], ...]


@dataclass(eq=False)
class Network:
    """Arcs with characters, and jumps without, that may carry a mark."""

    start: int = 0
    arcs: list[list[tuple[str, int]]] = field(default_factory=lambda: [[]])
    jumps: list[list[tuple[int, tuple[Any] | None]]] = field(default_factory=lambda: [[]])
    ends: dict[int, int] = field(default_factory=dict)
    _nodes: int = 0

    def count_node(self) -> None:
        """Count a part of a template: rules of rules that are empty add no state, and never end."""
        self._nodes += 1
        if self._nodes > _MOST_STATES:
            raise _too_large()

    def add_state(self) -> int:
        """Add a state without arcs."""
        if len(self.arcs) >= _MOST_STATES:
            raise _too_large()
        self.arcs.append([])
        self.jumps.append([])
        return len(self.arcs) - 1

    def add_arc(self, state: int, character: str) -> int:
        """Add a character behind a state; return the state behind it."""
        to = self.add_state()
        self.arcs[state].append((character, to))
        return to

    def add_jump(self, state: int, to: int | None = None, **mark: Any) -> int:
        """Add a jump, to a new state unless told where; `mark` begins, and `mark=None` ends a part.

        The first jump of a state is preferred where a text can be read in several ways.
        """
        to = self.add_state() if to is None else to
        self.jumps[state].append((to, (mark["mark"],) if mark else None))
        return to

    def add_automaton(self, state: int, automaton: Automaton) -> int:
        """Add the texts of an automaton behind a state; return the state behind them."""
        numbers = [self.add_state() for _ in automaton.arcs]
        end = self.add_state()
        self.jumps[state].append((numbers[0], None))
        for number, arcs, final in zip(numbers, automaton.arcs, automaton.final, strict=True):
            self.arcs[number] += [(character, numbers[to]) for character, to in arcs.items()]
            if final:
                self.jumps[number].append((end, None))
        return end

    def add_text(self, state: int, number: int) -> None:
        """Let texts end in a state; they belong to this number, or to a lower one."""
        self.ends.setdefault(state, number)

    def may_be_empty(self) -> bool:
        """Whether a text of spaces alone, or of nothing, ends somewhere."""
        seen, waiting = {self.start}, [self.start]
        while waiting:
            state = waiting.pop()
            if state in self.ends:
                return True
            following = [to for to, _ in self.jumps[state]]
            following += [to for character, to in self.arcs[state] if character == " "]
            waiting += [to for to in following if to not in seen]
            seen.update(following)
        return False

    def automaton(self) -> Automaton:
        """Return the automaton of all texts: lower-case words between single spaces.

        Raises:
            NearfutureError: if it would have more than a million states, or takes as much to find.
        """
        return Automaton.minimal(*self._subsets()[:2])

    def clashes(self) -> list[tuple[str, int, int]]:
        """Return an example of each two numbers to which a same text belongs."""
        arcs, _, ends = self._subsets()
        before: dict[int, tuple[int, str]] = {0: (0, "")}  # on a shortest way to each state
        waiting = [0]
        for state in waiting:
            for character, to in arcs[state].items():
                if to not in before:
                    before[to] = state, character
                    waiting.append(to)

        @cache
        def shortest(state: int) -> str:
            characters = []
            while state:
                state, character = before[state]
                characters.append(character)
            return "".join(reversed(characters))

        found: dict[tuple[int, int], str] = {}
        for state, numbers in sorted(ends.items()):
            first, *others = sorted(numbers)
            for other in others:
                text = found.setdefault((first, other), shortest(state))
                found[first, other] = min(text, shortest(state), key=len)
        return [(text, *pair) for pair, text in sorted(found.items())]

    def parse(self, text: str) -> Parse | None:
        """Return the first way in which a text can be read; None if it is not in the network."""
        failed: set[tuple[int, int, int]] = set()
        # Depth first, so that the first way is found: place, characters read, marks so far.
        stack: list[tuple[int, int, int, Any]] = [(self.start, _START, 0, None)]
        while stack:
            state, written, at, marks = stack.pop()
            if (state, written, at) in failed:
                continue
            failed.add((state, written, at))
            if at == len(text) and state in self.ends and written in (_WORD, _PENDING):
                return Parse(self.ends[state], _spans(marks, text))
            ways: list[tuple[int, int, int, Any]] = []
            for to, mark in self.jumps[state]:
                ways.append((to, written, at, marks if mark is None else (marks, at, mark[0])))
            for character, to in self.arcs[state]:
                if character == " ":
                    ways.append((to, _PENDING if written == _WORD else written, at, marks))
                    continue
                begin = at + (written == _PENDING)
                if text[begin : begin + 1] == character and (
                    written != _PENDING or text[at : at + 1] == " "
                ):
                    ways.append((to, _WORD, begin + 1, marks))
            stack += reversed(ways)
        return None

    def _subsets(self) -> tuple[list[dict[str, int]], list[bool], dict[int, frozenset[int]]]:
        """Return the arcs of the automaton, its final states, and which numbers end in each."""
        places = 0

        def spend(count: int) -> None:
            nonlocal places
            places += count
            if places > _MOST_PLACES:
                raise NearfutureError(
                    "the templates can be read in too many ways at once: use fewer parts that may "
                    "be left out one behind another, or choices that begin alike",
                    code="too_large",
                )

        @cache
        def leaving(place: int) -> tuple[tuple[tuple[str, int], ...], frozenset[int]]:
            """What can be written next from a place, and which texts end there."""
            ways: dict[tuple[str, int], None] = {}
            ends = set()
            seen, waiting = {place}, [place]
            while waiting:
                state, written = divmod(waiting.pop(), 4)
                if state in self.ends and written in (_WORD, _PENDING):
                    ends.add(self.ends[state])
                following = [4 * to + written for to, _ in self.jumps[state]]
                for character, to in self.arcs[state]:
                    if character == " ":
                        following.append(4 * to + (_PENDING if written == _WORD else written))
                    elif written == _PENDING:
                        ways[" ", 4 * state + _SPACE] = None
                    else:
                        ways[character, 4 * to + _WORD] = None
                for there in following:
                    if there not in seen:
                        seen.add(there)
                        waiting.append(there)
            spend(len(seen) + len(ways))
            return tuple(ways), frozenset(ends)

        first = frozenset([4 * self.start + _START])
        numbers: dict[Hashable, int] = {first: 0}
        arcs: list[dict[str, int]] = []
        final, all_ends = list[bool](), dict[int, frozenset[int]]()
        waiting = [first]
        for subset in waiting:
            targets: dict[str, set[int]] = {}
            ends: frozenset[int] = frozenset()
            for place in subset:
                ways, more = leaving(place)
                ends |= more
                for character, to in ways:
                    targets.setdefault(character, set()).add(to)
                spend(len(ways))
            row = {}
            for character in sorted(targets):
                key = frozenset(targets[character])
                if key not in numbers:
                    numbers[key] = len(numbers)
                    waiting.append(key)
                row[character] = numbers[key]
            if ends:
                all_ends[len(arcs)] = ends
            arcs.append(row)
            final.append(bool(ends))
            if len(arcs) > _MOST_STATES:
                raise NearfutureError(
                    f"the templates need an automaton of more than {_MOST_STATES:,} states",
                    code="too_large",
                )
        return arcs, final, all_ends


def _too_large() -> NearfutureError:
    return NearfutureError(
        f"the templates have more than {_MOST_STATES:,} characters when their rules are put in: "
        f"use fewer, or shorter lists",
        code="too_large",
    )


def _spans(marks: Any, text: str) -> tuple[tuple[Any, int, int], ...]:
    """Return the marks in order, each with the begin and the end of its characters."""
    spans: list[tuple[Any, int, int]] = []
    end = 0
    while marks is not None:
        marks, at, mark = marks
        if mark is None:
            end = at
        else:
            begin = at + (text[at : at + 1] == " ")  # a space in front is not part of it
            spans.append((mark, begin, end))
    return tuple(reversed(spans))
