"""One call of the graphs for some streams, whose states are in arrays that never grow.

A stream is a row of the arrays, its slot. What a batch has computed stays where it is until the
next one, which has most of the same streams: only the states of the others are copied to their
slots.

Shapes: `S` slots, `B` rows of one batch, padded to a bucket; `Q` samples of a quantum.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from nearfuture.runtime.engine import Engine, Outputs, State


def bucket(rows: int) -> int:
    """Return the size a batch is padded to, so that only a few shapes ever occur.

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
        """Take a free slot; its state is another stream's until `reset`."""
        return self._free.popleft()

    def give_back(self, slot: int) -> None:
        """Free a slot, whose stream has ended."""
        self._free.append(slot)

    def reset(self, slot: int) -> None:
        """Make a slot the state of a stream that has not begun."""
        self._row.pop(slot, None)
        for name, array in self._states.items():
            array[slot] = self._initial[name][0]

    def gather(self, slots: Sequence[int], rows: int) -> State:
        """Return the states of these slots as one batch, valid until the next call.

        Args:
            slots: one for each row.
            rows: B ≥ len(slots); rows without a slot hold some state, to be advanced by nothing.
        """
        count = len(slots)
        stored = [b for b, slot in enumerate(slots) if slot not in self._row]
        stored_slots = [slots[b] for b in stored]
        index = np.array([self._row.get(slot, 0) for slot in slots], np.int64)
        for name, array in self._states.items():
            staged = self._staged[name][:count]
            if len(stored) < count:
                # `clip` lets numpy write straight into place; no row is out of bounds.
                np.take(self._newest[name], index, axis=0, out=staged, mode="clip")
            staged[stored] = array[stored_slots]
        return {name: array[:rows] for name, array in self._staged.items()}

    def scatter(self, state: State, slots: Sequence[int]) -> None:
        """Store what a batch has computed: the inverse of `gather`.

        Args:
            state: its first rows are those of the slots; nobody else may change it any more.
            slots: one for each row.
        """
        rows = {slot: b for b, slot in enumerate(slots)}
        absent = [slot for slot in self._row if slot not in rows]
        if absent:
            index = [self._row[slot] for slot in absent]
            for name, array in self._states.items():
                array[absent] = self._newest[name][index]
        self._newest, self._row = state, rows


class BatchEngine:
    """Gathers states, runs the graphs and scatters the new states; it belongs to one thread.

    Args:
        engine: that runs the graphs.
        slots: the most streams at once.

    Attributes:
        pool: where the states are.
        spent_s: seconds of each part of the work, since `clear` was called on it.
    """

    def __init__(self, engine: Engine, slots: int) -> None:
        rows = bucket(slots)
        self.engine, self.pool = engine, StatePool(engine, slots)
        self.spent_s: defaultdict[str, float] = defaultdict(float)
        self._pcm = np.zeros((rows, engine.quantum_samples), np.float32)
        self._lengths = np.zeros(rows, np.int64)

    def step(self, slots: Sequence[int], quanta: Sequence[NDArray[np.float32]]) -> Outputs:
        """Advance the streams of these slots by one quantum each.

        Args:
            slots: B of them, each once.
            quanta: the samples of each, at most Q.

        Returns:
            Outputs, of which only the first B rows are valid.
        """
        began = perf_counter()
        rows = bucket(len(slots))
        self._lengths[:rows] = 0
        for b, samples in enumerate(quanta):
            self._pcm[b, : len(samples)] = samples
            self._lengths[b] = len(samples)
        state = self.pool.gather(slots, rows)
        gathered = perf_counter()
        outputs, after = self.engine.step(self._pcm[:rows], self._lengths[:rows], state)
        ran = perf_counter()
        self.pool.scatter(after, slots)
        self.spent_s["gather"] += gathered - began
        self.spent_s["run"] += ran - gathered
        self.spent_s["scatter"] += perf_counter() - ran
        return outputs

    def finish(self, slots: Sequence[int]) -> Outputs:
        """Compute the tails of the streams of these slots; the rest is as in `step`."""
        began = perf_counter()
        outputs = self.engine.finish(self.pool.gather(slots, bucket(len(slots))))
        self.spent_s["finish"] += perf_counter() - began
        return outputs
