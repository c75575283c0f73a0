"""The states of all streams, in arrays that never grow: a stream is a row, its slot.

What a batch has computed stays where it is until the next one, which most of its streams are in as
well: only those that are not are copied into their slots.

Shapes: `S` slots, `B` rows of one batch, padded to a bucket.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from nearfuture.runtime.engine import Engine, State


def bucket(rows: int) -> int:
    """The size a batch is padded to, so that only so many shapes ever occur.

    ONNX Runtime keeps a little memory for each shape it has seen. Up to 16 rows nothing is padded,
    beyond that less than one row in eight.

    >>> [bucket(n) for n in (1, 5, 16, 17, 31, 33, 100, 128)]
    [1, 5, 16, 18, 32, 36, 104, 128]
    """
    step = 1 << max(0, (rows - 1).bit_length() - 4)
    return -(-rows // step) * step


class StatePool:
    """Rows for the states of `slots` streams.

    Slots may be taken and given back in any thread; the arrays belong to the one that calls the
    rest.

    Args:
        engine: whose states these are.
        slots: the most streams at once.

    >>> from nearfuture.runtime import Bundle, Engine
    >>> pool = StatePool(Engine(Bundle.open("digits")), slots=4)
    >>> slot = pool.take()
    >>> pool.reset(slot)
    >>> {len(array) for array in pool.gather([slot], rows=2).values()}
    {2}
    """

    def __init__(self, engine: Engine, slots: int) -> None:
        self._free = deque(range(slots))
        self._initial = engine.start(1)
        self._states = engine.start(slots)
        self._staged = engine.start(bucket(slots))
        self._newest: State = {}
        self._row: dict[int, int] = {}
        """Slots whose state is a row of the newest batch, and not in their slot."""

    def take(self) -> int:
        """A slot that is free; what is in it is another stream's until `reset`."""
        return self._free.popleft()

    def give_back(self, slot: int) -> None:
        """The stream of this slot is gone."""
        self._free.append(slot)

    def reset(self, slot: int) -> None:
        """Make a slot the state of a stream that has not begun."""
        self._row.pop(slot, None)
        for name, array in self._states.items():
            array[slot] = self._initial[name][0]

    def gather(self, slots: Sequence[int], rows: int) -> State:
        """The states of these slots as one batch, valid until the next call.

        Args:
            slots: one for each row.
            rows: B ≥ len(slots); rows without a slot hold some state, to be advanced by nothing.
        """
        count = len(slots)
        away = [b for b, slot in enumerate(slots) if slot not in self._row]
        slots_away = [slots[b] for b in away]
        index = np.array([self._row.get(slot, 0) for slot in slots], np.int64)
        for name, array in self._states.items():
            staged = self._staged[name][:count]
            if len(away) < count:
                # `clip` lets numpy write straight into place; no row is out of bounds.
                np.take(self._newest[name], index, axis=0, out=staged, mode="clip")
            staged[away] = array[slots_away]
        return {name: array[:rows] for name, array in self._staged.items()}

    def scatter(self, state: State, slots: Sequence[int]) -> None:
        """Take over what a batch has computed: the inverse of `gather`.

        Args:
            state: its first rows are those of the slots; nobody else may change it any more.
            slots: one for each row.
        """
        rows = {slot: b for b, slot in enumerate(slots)}
        left = [slot for slot in self._row if slot not in rows]
        if left:
            index = [self._row[slot] for slot in left]
            for name, array in self._states.items():
                array[left] = self._newest[name][index]
        self._newest, self._row = state, rows
