"""A bidirectional model on a recording of any length: memory does not grow with hours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from nearfuture.runtime.engine import OfflineEngine
from nearfuture.runtime.manifest import Manifest

# A recording is computed at once up to this length, and a longer one in windows of this length with
# so much context on both sides.
_WINDOW_S, _CONTEXT_S = 180.0, 20.0


def offline_log_probs(
    engine: OfflineEngine, manifest: Manifest, blocks: Iterable[NDArray[np.float32]]
) -> Iterator[NDArray[np.float32]]:
    """Compute the log-probabilities of a recording, window by window.

    Args:
        engine: of the model.
        manifest: of the model.
        blocks: (n,) samples at the model's rate, one behind another.

    Yields:
        (T, V): one behind another, all frames of the recording; of a short one all at once.
    """
    stride = manifest.frame_ms * manifest.rate / 1000
    if not stride.is_integer():  # no window begins where a frame does
        yield _log_probs(engine, _concatenate(list(blocks)))
        return
    window, context = (
        round(1000 * seconds / manifest.frame_ms) for seconds in (_WINDOW_S, _CONTEXT_S)
    )
    hop = int(stride)
    reach = (window + context) * hop  # samples from the start of a window to its context
    kept: list[NDArray[np.float32]] = []  # from the context in front of the window on
    before = 0  # frames of that context
    waiting = 0  # samples from the beginning of the window on

    def next_window() -> NDArray[np.float32]:
        """Compute the next window, and keep the samples that the one behind it needs."""
        nonlocal before, waiting
        samples = _concatenate(kept)
        log_probs = _log_probs(engine, samples[: before * hop + reach])[before : before + window]
        waiting -= window * hop
        before = min(context, before + window)
        kept[:] = [samples[max(0, len(samples) - waiting - before * hop) :].copy()]
        return log_probs

    for block in blocks:
        kept.append(block)
        waiting += len(block)
        while waiting > reach:
            yield next_window()
    yield next_window()
    while waiting > 0:
        yield next_window()


def _log_probs(engine: OfflineEngine, samples: NDArray[np.float32]) -> NDArray[np.float32]:
    log_probs, frames = engine.run(samples[None], np.array([len(samples)], np.int64))
    return log_probs[0, : frames[0]]


def _concatenate(blocks: list[NDArray[np.float32]]) -> NDArray[np.float32]:
    return np.concatenate(blocks) if blocks else np.zeros(0, np.float32)
