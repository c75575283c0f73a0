"""A finite set of texts, however large, as the smallest automaton that spells them.

Method. From each state one arc for a character leads to the next state; a text is in the set if its
arcs end in a final state. States from which the same texts follow are one state. Example, "go left"
and "turn left": g, o and t, u, r, n meet in the state before " left", so 11 arcs spell both.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from nearfuture.error import NearfutureError


@dataclass(frozen=True, eq=False)
class Automaton:
    """A minimal deterministic acceptor without cycles; state 0 is the start.

    Args:
        arcs: for every state, the state behind each character.
        final: for every state, whether a text may end there.

    >>> automaton = Automaton.of(["turn left", "go left", "go"])
    >>> automaton.count, len(automaton.arcs), "go" in automaton, "turn" in automaton
    (3, 12, True, False)
    """

    arcs: tuple[Mapping[str, int], ...]
    final: tuple[bool, ...]

    @classmethod
    def of(cls, texts: Iterable[str]) -> Automaton:
        """Return the automaton of a list of texts."""
        arcs: list[dict[str, int]] = [{}]
        final = [False]
        for text in texts:
            state = 0
            for character in text:
                if character not in arcs[state]:
                    arcs[state][character] = len(arcs)
                    arcs.append({})
                    final.append(False)
                state = arcs[state][character]
            final[state] = True
        return cls.minimal(arcs, final)

    @classmethod
    def minimal(cls, arcs: list[dict[str, int]], final: list[bool]) -> Automaton:
        """Return the smallest automaton of the same texts.

        States that no text passes are dropped, and states with the same future are merged, from the
        ends to the start (Revuz 1992).

        Args:
            arcs: for every state, the state behind each character; no cycles. State 0 is the start.
            final: for every state, whether a text may end there.
        """
        order = _from_the_ends(arcs)
        merged: dict[Hashable, int] = {}
        number: dict[int, int] = {}  # of the merged state, counted from the ends
        kept: list[tuple[dict[str, int], bool]] = []
        for state in order:
            live = {c: number[to] for c, to in sorted(arcs[state].items()) if number[to] >= 0}
            if not live and not final[state] and state != 0:
                number[state] = -1
                continue
            key = (final[state], tuple(live.items()))
            if key not in merged:
                merged[key] = len(kept)
                kept.append((live, final[state]))
            number[state] = merged[key]
        last = len(kept) - 1  # the start, which comes last
        return cls(
            tuple({c: last - to for c, to in live.items()} for live, _ in reversed(kept)),
            tuple(end for _, end in reversed(kept)),
        )

    @cached_property
    def count(self) -> int:
        """The number of texts, exactly."""
        behind = [0] * len(self.arcs)
        for state in reversed(range(len(self.arcs))):  # arcs lead to higher numbers
            behind[state] = self.final[state] + sum(behind[to] for to in self.arcs[state].values())
        return behind[0]

    @property
    def arc_count(self) -> int:
        """The number of arcs."""
        return sum(map(len, self.arcs))

    @cached_property
    def characters(self) -> frozenset[str]:
        """Every character of the texts."""
        return frozenset(character for arcs in self.arcs for character in arcs)

    @cached_property
    def longest(self) -> int:
        """The characters of the longest text."""
        behind = [0] * len(self.arcs)
        for state in reversed(range(len(self.arcs))):
            behind[state] = max((1 + behind[to] for to in self.arcs[state].values()), default=0)
        return behind[0]

    def __contains__(self, text: str) -> bool:
        state = 0
        for character in text:
            following = self.arcs[state].get(character)
            if following is None:
                return False
            state = following
        return self.final[state]

    def words(self, limit: int = 100_000) -> frozenset[str]:
        """Return every word of the texts, which spaces separate.

        Raises:
            NearfutureError: if there are more than `limit`, as in languages without spaces.
        """
        begins = {0} | {arcs[" "] for arcs in self.arcs if " " in arcs}
        words: set[str] = set()
        seen: set[tuple[int, str]] = set()
        waiting = [(state, "") for state in sorted(begins)]
        characters = 0
        while waiting:
            state, begun = waiting.pop()
            if (state, begun) in seen:
                continue
            seen.add((state, begun))
            characters += len(begun)
            if characters > 100 * limit or len(seen) > 10 * limit or len(words) > limit:
                raise NearfutureError(f"the texts have more than {limit:,} words", code="too_large")
            if begun and (self.final[state] or " " in self.arcs[state]):
                words.add(begun)
            waiting += [(to, begun + c) for c, to in self.arcs[state].items() if c != " "]
        return frozenset(words)

    def restrict(self, characters: Container[str]) -> Automaton:
        """Return the automaton of those texts that have only these characters; maybe none."""
        arcs = [{c: to for c, to in arcs.items() if c in characters} for arcs in self.arcs]
        return Automaton.minimal(arcs, list(self.final))


def _from_the_ends(arcs: list[dict[str, int]]) -> list[int]:
    """Order the states that the start reaches so that each comes behind those it leads to."""
    order: list[int] = []
    seen = {0}
    stack = [(0, iter(arcs[0].values()))]
    while stack:
        state, following = stack[-1]
        for to in following:
            if to not in seen:
                seen.add(to)
                stack.append((to, iter(arcs[to].values())))
                break
        else:
            order.append(state)
            stack.pop()
    return order
