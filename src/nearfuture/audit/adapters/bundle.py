"""Bundles of this project, audited like any other model: samples in, log-probabilities out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from nearfuture.audit.adapters.base import Adapter, Array
from nearfuture.error import NearfutureError

_SECONDS = 2.0


class BundleAdapter(Adapter):
    """An adapter for one head of a bundle: streamed by quanta, or run whole if bidirectional.

    Args:
        source: a path, or the name of a model that comes with this package.
        head: lookahead in frames; by default the largest that keeps the budget, or else the
            smallest. None for a bidirectional model.
        budget_ms: worst-case latency allowed; None: any.

    Attributes:
        stride: samples per output frame.
    """

    propagates_nan = False
    unit = "sample"

    def __init__(self, source: str | Path, head: int | str | None, budget_ms: float | None) -> None:
        from nearfuture.runtime import Bundle, Engine, OfflineEngine

        bundle = Bundle.open(source)
        manifest = bundle.manifest
        self.frame_ms = 1000 / manifest.rate
        self.stride = round(manifest.frame_ms * manifest.rate / 1000)
        self._samples = round(_SECONDS * manifest.rate)
        self._engine: Engine | None = None
        if manifest.kind == "bidirectional":
            self.name = manifest.name
            self.declared_ms = float("inf")
            self._offline = OfflineEngine(bundle)
            return
        heads = {tau: latency.worst_ms for tau, latency in manifest.heads.items()}
        if head is None:
            allowed = [tau for tau, ms in heads.items() if budget_ms is None or ms <= budget_ms]
            head = max(allowed, default=min(heads))
        if not isinstance(head, int) or head not in heads:
            raise NearfutureError(
                f"`output` of {manifest.name} is a lookahead of "
                f"{', '.join(map(str, heads))} frames, not {head!r}",
                code="not_found",
                parameter="output",
            )
        self.name = f"{manifest.name}, lookahead {head}"
        self.head = head
        self.declared_ms = heads[head]
        self._first = manifest.first_quantum_samples
        self._engine = Engine(bundle)

    def example(self) -> Array:
        """Draw two seconds of noise."""
        noise = np.random.default_rng(0).standard_normal((1, self._samples))
        return (0.1 * noise).astype(np.float32)

    def call(self, positional: list[Array], named: Mapping[str, Any], *, seed: int | None) -> Any:
        """Compute log-probabilities (N, U, V) of samples (N, T)."""
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
