"""Compare a bundle with the torch model: every export does, before its files appear.

Shapes: `B` rows, `N` samples, `T` frames, `V` vocabulary.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from nearfuture.error import NearfutureError
from nearfuture.export.streams import run_streams
from nearfuture.model import Recognizer
from nearfuture.runtime import Bundle, Engine, OfflineEngine

TOLERANCE = 1e-4
"""Largest difference of a log-probability between torch and ONNX Runtime, both in float32."""

_SECONDS = 2


def verify(model: Recognizer, folder: Path) -> float:
    """Compare a bundle with the model it was made from, on noise of several levels.

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
    heads: dict[int | None, list[NDArray[np.float32]]] = {}
    if model.lookahead is None:
        log_probs, frames = OfflineEngine(bundle).run(pcm, lengths)
        heads[None] = [log_probs[b, :n] for b, n in enumerate(frames)]
    else:
        rows = [pcm[b, :n] for b, n in enumerate(lengths)]
        engine = Engine(bundle)
        streams = run_streams(engine, rows, random)
        heads |= {tau: [stream[tau] for stream in streams] for tau in engine.heads}
    worst = 0.0
    for tau, outputs in heads.items():
        with torch.inference_mode():
            expected, counts = model.at(tau)(
                torch.from_numpy(pcm[..., None]), torch.from_numpy(lengths)
            )
        for b, output in enumerate(outputs):
            wanted = expected[b, : counts[b]].numpy()
            if output.shape != wanted.shape:
                raise NearfutureError(
                    f"the exported graph gives {len(output)} frames for {lengths[b]} samples where "
                    f"torch gives {len(wanted)} (lookahead {tau})",
                    code="internal",
                )
            difference = np.abs(output - wanted).max(initial=0.0)
            worst = float(np.maximum(worst, difference))  # a NaN stays
    if not worst <= TOLERANCE:
        raise NearfutureError(
            f"the exported graph differs from torch by {worst:.2g}, more than {TOLERANCE:g}",
            code="internal",
        )
    return worst
