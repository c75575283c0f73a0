"""Recordings streamed side by side through an engine, quantum by quantum.

Shapes: `B` rows, `N` samples, `T` frames, `V` vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nearfuture.runtime import Engine
from nearfuture.runtime.engine import row


def heard(
    engine: Engine, recordings: Sequence[NDArray[np.float32]], *, rows: int = 16
) -> list[dict[int, NDArray[np.float32]]]:
    """Of each recording every head's log-probabilities (T, V), the tail included.

    Args:
        engine: of a streaming model.
        recordings: (N,) each, at its rate.
        rows: how many at once, at most.
    """
    found: list[dict[int, NDArray[np.float32]]] = []
    for at in range(0, len(recordings), rows):
        found += _together(engine, recordings[at : at + rows])
    return found


def _together(
    engine: Engine, recordings: Sequence[NDArray[np.float32]]
) -> list[dict[int, NDArray[np.float32]]]:
    rows, quantum = len(recordings), engine.quantum_samples
    state = engine.start(rows)
    lengths = np.array([len(one) for one in recordings], np.int64)
    parts: list[list[dict[int, NDArray[np.float32]]]] = [[] for _ in recordings]
    for at in range(0, int(lengths.max(initial=0)), quantum):
        sizes = (lengths - at).clip(0, quantum)
        pcm = np.zeros((rows, quantum), np.float32)
        for b, one in enumerate(recordings):
            pcm[b, : sizes[b]] = one[at : at + quantum]
        outputs, state = engine.step(pcm, sizes, state)
        for b in range(rows):
            parts[b].append(row(outputs, b))
    tails = engine.finish(state)
    for b in range(rows):
        parts[b].append(row(tails, b))
    return [
        {tau: np.concatenate([part[tau] for part in own]) for tau in engine.heads} for own in parts
    ]
