"""Does a bundle do what the torch model does? Asked of every export before it is kept.

Shapes: `B` rows, `N` samples, `T` frames, `V` vocabulary.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from nearfuture.error import NearfutureError
from nearfuture.model import Recognizer
from nearfuture.runtime import Bundle, Engine, OfflineEngine
from nearfuture.runtime.engine import row

TOLERANCE = 1e-4
"""Largest difference of a log-probability between torch and ONNX Runtime, both in float32."""

_SECONDS = 2


def verify(model: Recognizer, folder: Path) -> float:
    """Compare a bundle with the model it was made from, on noise of several loudnesses.

    The rows have different lengths, one of them 0, and are streamed in random ragged chunks.

    Args:
        model: float32, in eval mode.
        folder: of the bundle.

    Returns:
        The largest difference of a log-probability.

    Raises:
        NearfutureError: if it exceeds `TOLERANCE`, or the number of frames differs.
    """
    random = np.random.default_rng(0)
    longest = _SECONDS * model.config.features.rate
    lengths = np.array([longest, longest * 2 // 3 + 1, longest // 7, 0], np.int64)
    loudness = np.array([0.1, 0.5, 0.01, 0.1])
    pcm = (loudness[:, None] * random.standard_normal((4, longest))).clip(-1, 1).astype(np.float32)
    bundle = Bundle.open(folder)
    ours: dict[int | None, list[NDArray[np.float32]]] = {}
    if model.lookahead is None:
        log_probs, frames = OfflineEngine(bundle).run(pcm, lengths)
        ours[None] = [log_probs[b, :n] for b, n in enumerate(frames)]
    else:
        for head, streamed in run_ragged(Engine(bundle), pcm, lengths, random).items():
            ours[head] = streamed
    worst = 0.0
    for tau, rows in ours.items():
        with torch.inference_mode():
            expected, counts = model.at(tau)(
                torch.from_numpy(pcm[..., None]), torch.from_numpy(lengths)
            )
        for b, found in enumerate(rows):
            wanted = expected[b, : counts[b]].numpy()
            if found.shape != wanted.shape:
                raise NearfutureError(
                    f"the exported graph gives {len(found)} frames for {lengths[b]} samples where "
                    f"torch gives {len(wanted)} (lookahead {tau})"
                )
            difference = np.abs(found - wanted).max(initial=0.0)
            worst = float(np.maximum(worst, difference))  # a NaN stays
    if not worst <= TOLERANCE:
        raise NearfutureError(
            f"the exported graph differs from torch by {worst:.2g}, more than {TOLERANCE:g}"
        )
    return worst


def run_ragged(
    engine: Engine,
    pcm: NDArray[np.float32],
    lengths: NDArray[np.int64],
    random: np.random.Generator,
) -> dict[int, list[NDArray[np.float32]]]:
    """Stream rows side by side, each in chunks of its own random sizes, 0 included.

    Args:
        engine: of a streaming model.
        pcm: (B, N).
        lengths: (B,) samples of each row.
        random: decides the sizes.

    Returns:
        For every head each row's log-probabilities (T, V), the tail included.
    """
    rows, quantum = len(pcm), engine.quantum_samples
    state = engine.start(rows)
    read = np.zeros(rows, np.int64)
    found: dict[int, list[list[NDArray[np.float32]]]] = {
        tau: [[] for _ in range(rows)] for tau in engine.heads
    }
    while (read < lengths).any():
        sizes = np.minimum(random.integers(0, quantum + 1, rows), lengths - read)
        chunk = np.full((rows, quantum), np.nan, np.float32)  # what lies past a row is ignored
        for b, size in enumerate(sizes):
            chunk[b, :size] = pcm[b, read[b] : read[b] + size]
        outputs, state = engine.step(chunk, sizes, state)
        read += sizes
        for b in range(rows):
            for tau, values in row(outputs, b).items():
                found[tau][b].append(values)
    tails = engine.finish(state)
    return {
        tau: [np.concatenate([*parts[b], row(tails, b)[tau]]) for b in range(rows)]
        for tau, parts in found.items()
    }
