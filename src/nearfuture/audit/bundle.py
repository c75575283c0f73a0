"""Bundles of this project, audited like anybody's model: from samples to log-probabilities."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearfuture.audit.target import Target
from nearfuture.error import NearfutureError

Array = NDArray[Any]

_SECONDS = 2.0


class BundleTarget(Target):
    """One head of a bundle: streamed quantum by quantum, or all at once where it is bidirectional.

    Args:
        source: a path, or the name of a model that comes with this package.
        head: lookahead in frames; unless given the largest that keeps the budget, or else the
            smallest. None for a bidirectional model.
        budget_ms: worst-case latency allowed; None: any.

    Attributes:
        rate: samples per second it hears.
        stride: samples per output frame.
        declared_ms: worst-case latency that it declares for this head; inf if bidirectional.
        heads: every head it has.
    """

    follows_nan = False
    unit = "sample"

    def __init__(self, source: str | Path, head: int | None, budget_ms: float | None) -> None:
        from nearfuture.runtime.bundle import Bundle
        from nearfuture.runtime.engine import Engine, OfflineEngine

        bundle = Bundle.open(source)
        manifest = bundle.manifest
        self.rate = manifest.rate
        self.stride = round(manifest.frame_ms * manifest.rate / 1000)
        self.heads = {tau: latency.worst_ms for tau, latency in manifest.heads.items()}
        self._engine: Engine | None = None
        if manifest.kind == "bidirectional":
            self.name = manifest.name
            self.declared_ms = float("inf")
            self._offline = OfflineEngine(bundle)
            return
        if head is None:
            kept = [tau for tau, ms in self.heads.items() if budget_ms is None or ms <= budget_ms]
            head = max(kept, default=min(self.heads))
        if head not in self.heads:
            raise NearfutureError(
                f"{manifest.name} has heads for a lookahead of "
                f"{', '.join(map(str, self.heads))} frames, not {head}"
            )
        self.name = f"{manifest.name}, lookahead {head}"
        self.head = head
        self.declared_ms = self.heads[head]
        self._first = manifest.first_quantum_samples
        self._engine = Engine(bundle)

    def call(self, positional: list[Array], named: Mapping[str, Any], *, seed: int | None) -> Any:
        """Log-probabilities (N, U, V) of samples (N, T)."""
        pcm = np.asarray(positional[0], np.float32)
        if self._engine is None:
            y, n = self._offline.run(pcm, np.full(len(pcm), pcm.shape[1], np.int64))
            return y[:, : int(n[0])]
        quantum = self._engine.quantum_samples
        state, at, pieces = self._engine.start(len(pcm)), 0, []
        while at < pcm.shape[1]:
            size = min(quantum if at else self._first, pcm.shape[1] - at)
            chunk = np.zeros((len(pcm), quantum), np.float32)
            chunk[:, :size] = pcm[:, at : at + size]
            outputs, state = self._engine.step(chunk, np.full(len(pcm), size, np.int64), state)
            pieces.append(outputs[self.head])
            at += size
        pieces.append(self._engine.finish(state)[self.head])
        return np.concatenate([y[:, : int(n[0])] for y, n in pieces], axis=1)


def is_bundle(fn: Any) -> bool:
    """Whether a model is given as a bundle: the name of one, a folder, or a zip file."""
    return isinstance(fn, str | Path) and Path(fn).suffix != ".onnx"


def declared(
    fn: str | Path, head: int | str | None, example: Any, budget_ms: float | None
) -> tuple[BundleTarget, Any]:
    """The target, and an example where none is given: two seconds of noise.

    Raises:
        NearfutureError: where the bundle cannot be opened, or has no such head.
    """
    if isinstance(head, str):
        raise NearfutureError(f"a bundle's output is a lookahead in frames, not {head!r}")
    target = BundleTarget(fn, head, budget_ms)
    if example is None:
        rng = np.random.default_rng(0)
        samples = round(_SECONDS * target.rate)
        example = (0.1 * rng.standard_normal((1, samples))).astype(np.float32)
    return target, example
