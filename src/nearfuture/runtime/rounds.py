"""One round of a dispatcher: a quantum for each stream whose turn it is, and the tails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from nearfuture.runtime.admission import Load
from nearfuture.runtime.batch import Batch
from nearfuture.runtime.engine import row
from nearfuture.runtime.places import Places
from nearfuture.runtime.seat import Quantum, Seat

MOST_ENDINGS = 16
"""Streams that end in one round. The tail of one costs as much as several quanta, and when many end
at once those that go on must not wait for all of them."""

_SIZES = (1, 8, MOST_ENDINGS, 32)
_TIMES = 4


class Rounds:
    """Computes turns; it belongs to the engine's thread.

    Args:
        batch: that runs the graphs.
        places: whose turns these are.
    """

    def __init__(self, batch: Batch, places: Places) -> None:
        self._batch, self._places = batch, places

    def run(self, turn: Sequence[Seat]) -> None:
        """One quantum for each of these streams, and the tails of some that have ended."""
        began = perf_counter()
        compute_ms: list[float] = []
        final_ms: list[float] = []
        slots = {seat: self._slot(seat) for seat in turn}
        steps = self._places.quanta(turn)
        if steps:
            outputs = self._batch.step(
                [slots[seat] for seat, _ in steps], [quantum.samples for _, quantum in steps]
            )
            for b, (seat, quantum) in enumerate(steps):
                compute_ms += self._read(seat, row(outputs, b), quantum)
        ending = self._places.ending(turn)[:MOST_ENDINGS]
        if ending:
            outputs = self._batch.finish([slots[seat] for seat in ending])
            for b, seat in enumerate(ending):
                final_ms += self._read(seat, row(outputs, b))
        self._places.back(
            turn,
            steps=len(steps),
            tails=len(ending),
            took_s=perf_counter() - began,
            compute_ms=compute_ms,
            final_ms=final_ms,
            spent_s=self._batch.spent_s,
        )
        self._batch.spent_s.clear()

    def _slot(self, seat: Seat) -> int:
        if seat.slot is None:
            seat.slot = self._batch.pool.take()
            self._batch.pool.reset(seat.slot)
        return seat.slot

    def _read(
        self, seat: Seat, log_probs: dict[int, NDArray[np.float32]], quantum: Quantum | None = None
    ) -> list[float]:
        """Read one row, of a quantum or of the end, and deliver its event.

        Its `compute_ms`, unless there was no event, or its audio had come early.
        """
        if seat.closed:
            return []
        spent_s, began = self._batch.spent_s, perf_counter()
        try:
            seat.reading.read(log_probs, 0 if quantum is None else len(quantum.samples))
            spent_s["read"] -= began - (began := perf_counter())
            if quantum is None:
                self._places.ended(seat)  # first, so that whoever is told finds the place free
                assert seat.ended_at is not None
                took_ms = seat.tell(since=seat.ended_at, final=True)
                return [] if seat.ended_early else [took_ms]
            if quantum.tail:
                return []
            took_ms = seat.tell(since=quantum.since)
            return [] if quantum.early else [took_ms]
        except BaseException as error:
            self._places.failed(seat, error)
            return []
        finally:
            spent_s["deliver"] += perf_counter() - began


def calibrated(batch: Batch, slots: int, *, quantum_s: float) -> Load:
    """The load of batches, from rounds of several sizes, timed.

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
        if size <= MOST_ENDINGS:
            tails_s.append(_fastest(partial(batch.finish, taken)))
        for slot in taken:
            batch.pool.give_back(slot)
    batch.spent_s.clear()
    return Load(sizes, seconds, quantum_s=quantum_s, tails=(sizes[: len(tails_s)], tails_s))


def _fastest(run: Callable[[], object]) -> float:
    took = []
    for _ in range(_TIMES):
        began = perf_counter()
        run()
        took.append(perf_counter() - began)
    return min(took)
