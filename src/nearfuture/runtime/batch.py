"""One call of the graphs for some of the streams whose states are in a pool.

Shapes: `B` rows, padded to a bucket; `Q` samples of a quantum.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from nearfuture.runtime.engine import Engine, Outputs
from nearfuture.runtime.pool import StatePool, bucket


class Batch:
    """Gathers, runs and scatters; it belongs to one thread.

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
            Outputs of which only the first B rows mean anything.
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
        """The tails of the streams of these slots; as in `step`."""
        began = perf_counter()
        outputs = self.engine.finish(self.pool.gather(slots, bucket(len(slots))))
        self.spent_s["finish"] += perf_counter() - began
        return outputs
