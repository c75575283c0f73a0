"""A set of texts as the states that CTC passes to spell them, in arrays.

Method. CTC stays on an arc while its symbol lasts, and in a state while the blank does. From a
state, or from an arc that enters it, the next arc begins; but where its symbol is that of the arc
that enters, only the blank between can tell them apart. States that such an arc and others enter
are doubled, so that this is a property of the arc that begins. Example, "oo": from the arc of the
first o to that of the second there is only the way over the blank between.

Shapes: `A` arcs, `S` states, the start among them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nearfuture.decoding.automaton import Automaton
from nearfuture.error import NearfutureError
from nearfuture.text import Vocabulary


@dataclass(frozen=True, eq=False)
class Grammar:
    """The texts that a recogniser may write, compiled for its vocabulary; made by `compile`.

    Args:
        automaton: of the texts that the vocabulary can write.
        vocabulary: of the recogniser.
        label: (A,) the symbol of every arc; arcs are sorted by the state they enter.
        origin: (A,) the state that each begins in.
        target: (A,) the state that each enters.
        source: (A,) `origin`, and `S` more where an arc can only begin behind a blank.
        first: (S - 1,) the first of the arcs that enter each state but the start, 0.
        final: states in which a text ends.
    """

    automaton: Automaton
    vocabulary: Vocabulary
    label: NDArray[np.int64]
    origin: NDArray[np.int64]
    target: NDArray[np.int64]
    source: NDArray[np.int64]
    first: NDArray[np.int64]
    final: NDArray[np.int64]

    @classmethod
    def compile(cls, automaton: Automaton, vocabulary: Vocabulary) -> Grammar:
        """Compile texts for a vocabulary; those with other characters are left out.

        Raises:
            NearfutureError: if the vocabulary can write none of the texts, naming what it lacks.

        >>> grammar = Grammar.compile(Automaton.of(["too", "to"]), Vocabulary(("o", "t")))
        >>> grammar.label.tolist(), grammar.source.tolist(), grammar.final.tolist()
        ([2, 1, 1], [0, 1, 6], [2, 3])
        """
        writable = automaton.restrict(frozenset(vocabulary.symbols))
        if not writable.arc_count:
            lacking = sorted(automaton.characters - set(vocabulary.symbols))
            raise NearfutureError(
                f"the model can write none of the phrases: it lacks {' '.join(map(repr, lacking))}",
                code="unsupported",
                parameter="grammar",
            )
        entering = [set[str]() for _ in writable.arcs]
        for arcs in writable.arcs:
            for character, to in arcs.items():
                entering[to].add(character)
        doubled = [
            characters & arcs.keys() if len(characters) > 1 else set()
            for characters, arcs in zip(entering, writable.arcs, strict=True)
        ]
        # A state, or its double that one of its characters enters.
        numbers: dict[tuple[int, str], int] = {(0, ""): 0}
        waiting = [(0, "")]
        rows: list[tuple[int, int, str, bool]] = []
        for state, entered_by in waiting:
            here = numbers[state, entered_by]
            enter = {entered_by} if entered_by else entering[state] - doubled[state]
            for character, to in writable.arcs[state].items():
                key = (to, character if character in doubled[to] else "")
                if key not in numbers:
                    numbers[key] = len(numbers)
                    waiting.append(key)
                rows.append((numbers[key], here, character, character in enter))
        rows.sort()
        target, origin = (np.array([row[i] for row in rows], np.int64) for i in (0, 1))
        final = [
            number for (state, _), number in numbers.items() if number and writable.final[state]
        ]
        return cls(
            automaton=writable,
            vocabulary=vocabulary,
            label=np.array(vocabulary.encode("".join(row[2] for row in rows)), np.int64),
            origin=origin,
            target=target,
            source=origin + len(numbers) * np.array([row[3] for row in rows]),
            first=np.searchsorted(target, np.arange(1, len(numbers))),
            final=np.array(final, np.int64),
        )
