"""One round of a dispatcher: a quantum for each stream that has one, and the tails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from nearfuture.runtime.engine import row
from nearfuture.runtime.scheduler.batch import BatchEngine
from nearfuture.runtime.scheduler.load import Load
from nearfuture.runtime.scheduler.queue_entry import Quantum, QueueEntry
from nearfuture.runtime.scheduler.stats import RoundStats
from nearfuture.runtime.scheduler.stream_queue import StreamQueue

MAX_TAILS = 16
"""Streams that end in one round. The tail of one costs as much as several quanta, and when many end
at once those that go on must not wait for all of them."""

_SIZES = (1, 8, MAX_TAILS, 32)
_REPEATS = 4


class Rounds:
    """Computes rounds; it belongs to the engine's thread.

    Args:
        batch: that runs the graphs.
        queue: whose entries are computed.
    """

    def __init__(self, batch: BatchEngine, queue: StreamQueue) -> None:
        self._batch, self._queue = batch, queue

    def run(self, entries: Sequence[QueueEntry]) -> None:
        """Compute one quantum of each of these streams, and the tails of some that have ended."""
        began = perf_counter()
        stats = RoundStats(spent_s=self._batch.spent_s)
        slots = {entry: self._slot(entry) for entry in entries}
        steps = self._queue.next_quanta(entries)
        if steps:
            outputs = self._batch.step(
                [slots[entry] for entry, _ in steps], [quantum.samples for _, quantum in steps]
            )
            for b, (entry, quantum) in enumerate(steps):
                stats.compute_ms += self._decode(entry, row(outputs, b), quantum)
        ending = self._queue.ending(entries)[:MAX_TAILS]
        if ending:
            outputs = self._batch.finish([slots[entry] for entry in ending])
            for b, entry in enumerate(ending):
                stats.final_ms += self._decode(entry, row(outputs, b))
        stats.steps, stats.tails = len(steps), len(ending)
        stats.seconds = perf_counter() - began
        self._queue.end_round(entries, stats)
        self._batch.spent_s.clear()

    def _slot(self, entry: QueueEntry) -> int:
        if entry.slot is None:
            entry.slot = self._batch.pool.take()
            self._batch.pool.reset(entry.slot)
        return entry.slot

    def _decode(
        self,
        entry: QueueEntry,
        log_probs: dict[int, NDArray[np.float32]],
        quantum: Quantum | None = None,
    ) -> list[float]:
        """Decode one row, of a quantum or of the tail, and deliver its event.

        Returns:
            The event's `compute_ms`; nothing without an event, or where its audio came early.
        """
        if entry.closed:
            return []
        spent_s, began = self._batch.spent_s, perf_counter()
        try:
            entry.decoder.step(log_probs, 0 if quantum is None else len(quantum.samples))
            spent_s["decode"] -= began - (began := perf_counter())
            if quantum is None:
                # First, so that the place is free when the client learns that its stream is over.
                self._queue.release(entry)
                assert entry.end is not None
                return entry.deliver_event(entry.end, final=True)
            return [] if quantum.tail else entry.deliver_event(quantum.arrival)
        except BaseException as error:
            self._queue.fail(entry, error)
            return []
        finally:
            spent_s["deliver"] += perf_counter() - began


def measure_load(batch: BatchEngine, slots: int, *, quantum_s: float) -> Load:
    """Measure the load that batches are on this machine, by rounds of several sizes.

    ONNX Runtime also takes its memory for the largest of them here, and not while people wait.
    """
    sizes = sorted({min(size, slots) for size in (*_SIZES, slots)})
    samples = np.zeros(batch.engine.quantum_samples, np.float32)
    seconds, tails_s = [], []
    for size in sizes:
        taken = [batch.pool.take() for _ in range(size)]
        for slot in taken:
            batch.pool.reset(slot)
        seconds.append(_fastest(partial(batch.step, taken, [samples] * size)))
        if size <= MAX_TAILS:
            tails_s.append(_fastest(partial(batch.finish, taken)))
        for slot in taken:
            batch.pool.give_back(slot)
    batch.spent_s.clear()
    return Load(sizes, seconds, quantum_s=quantum_s, tails=(sizes[: len(tails_s)], tails_s))


def _fastest(run: Callable[[], object]) -> float:
    seconds = []
    for _ in range(_REPEATS):
        began = perf_counter()
        run()
        seconds.append(perf_counter() - began)
    return min(seconds)
