"""Recordings streamed side by side through an engine, chunk by chunk.

Shapes: `B` rows, `N` samples, `T` frames, `V` vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nearfuture.runtime import Engine, row

Heads = dict[int, NDArray[np.float32]]
"""Log-probabilities (T, V) by lookahead."""

_ROWS = 16


def run_streams(
    engine: Engine,
    recordings: Sequence[NDArray[np.float32]],
    random: np.random.Generator | None = None,
) -> list[Heads]:
    """Stream recordings, at most 16 at once.

    Args:
        engine: of a streaming model.
        recordings: (N,) each, at its rate.
        random: draws the size of every chunk of every row, 0 included, and what lies past a row is
            NaN, which the graph ignores. Without it rows advance by whole quanta.

    Returns:
        Each recording's log-probabilities by head, the tail included.
    """
    results: list[Heads] = []
    for first in range(0, len(recordings), _ROWS):
        results += _run_batch(engine, recordings[first : first + _ROWS], random)
    return results


def _run_batch(
    engine: Engine,
    recordings: Sequence[NDArray[np.float32]],
    random: np.random.Generator | None,
) -> list[Heads]:
    rows, quantum = len(recordings), engine.quantum_samples
    padding = 0.0 if random is None else np.nan
    lengths = np.array([len(samples) for samples in recordings], np.int64)
    read = np.zeros(rows, np.int64)
    state = engine.start(rows)
    parts: list[list[Heads]] = [[] for _ in recordings]
    while (read < lengths).any():
        sizes = np.full(rows, quantum) if random is None else random.integers(0, quantum + 1, rows)
        sizes = np.minimum(sizes, lengths - read)
        pcm = np.full((rows, quantum), padding, np.float32)
        for b, samples in enumerate(recordings):
            pcm[b, : sizes[b]] = samples[read[b] : read[b] + sizes[b]]
        outputs, state = engine.step(pcm, sizes, state)
        read += sizes
        for b in range(rows):
            parts[b].append(row(outputs, b))
    tails = engine.finish(state)
    return [
        {
            tau: np.concatenate([*(part[tau] for part in parts[b]), row(tails, b)[tau]])
            for tau in engine.heads
        }
        for b in range(rows)
    ]
