"""Runs the graphs of a bundle: many streams at once, each a row, none of which changes another.

Shapes: `B` rows, `Q` samples of a quantum, `V` vocabulary, `T` frames that one call can emit.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from nearfuture.error import NearfutureError, NotStreamable
from nearfuture.runtime.bundle import Bundle
from nearfuture.runtime.precision import FLOAT32, graph_name
from nearfuture.runtime.processor import AUTO, fastest, refuse_unsupported
from nearfuture.runtime.session import session_options

State: TypeAlias = dict[str, NDArray[Any]]
"""The state of some rows: named arrays, rows first. A value: steps return new ones."""

Outputs: TypeAlias = dict[int, tuple[NDArray[np.float32], NDArray[np.int64]]]
"""For every head τ: log-probabilities (B, T, V), and how many frames of each row are valid (B,)."""


class Engine:
    """A streaming bundle, ready to run; it holds no stream's state.

    Every row is computed with the same bits whatever rows are beside it.

    Args:
        bundle: of a streaming model.
        threads: of one call; more than one pays only for wide models.
        precision: `float32`, or a low precision that the bundle has quantized graphs in; `auto` is
            the fastest of them that this processor offers.

    Attributes:
        precision: of the graphs that run.
        heads: the lookahead τ of each, in frames.
        quantum_samples: Q, the most samples a row may advance in one step.

    Raises:
        NotStreamable: for a bidirectional bundle.
        UnsupportedPrecision: for a precision whose rows change each other on this processor.
        NearfutureError: for a precision that the bundle does not have, and where ONNX Runtime
            cannot load a graph.
    """

    def __init__(self, bundle: Bundle, *, threads: int = 1, precision: str = FLOAT32) -> None:
        refuse_bidirectional(bundle)
        self.precision = choose_precision(bundle, precision)
        self._step = _session(bundle, graph_name("step.onnx", self.precision), threads)
        self._finish = _session(bundle, graph_name("finish.onnx", self.precision), threads)
        try:
            metadata = self._step.get_modelmeta().custom_metadata_map
            self._leaves = json.loads(metadata["nearfuture.state"])
            self.heads: tuple[int, ...] = tuple(json.loads(metadata["nearfuture.heads"]))
            self.quantum_samples = int(metadata["nearfuture.quantum_samples"])
        except (KeyError, TypeError, ValueError) as error:
            raise NearfutureError(
                f"step.onnx does not describe its own state: {error}", code="damaged"
            ) from error
        if self.heads != tuple(bundle.manifest.heads):
            raise NearfutureError(
                f"step.onnx has heads {self.heads}, but model.json {tuple(bundle.manifest.heads)}",
                code="damaged",
            )
        self._tail_inputs = [value.name for value in self._finish.get_inputs()]

    def start(self, rows: int) -> State:
        """Return the state of `rows` streams that have not begun."""
        return {
            leaf["name"]: np.full((rows, *leaf["shape"]), leaf["initial"], leaf["dtype"])
            for leaf in self._leaves
        }

    def step(
        self, pcm: NDArray[np.float32], lengths: NDArray[np.int64], state: State
    ) -> tuple[Outputs, State]:
        """Advance every row by its own number of samples.

        Args:
            pcm: (B, Q) samples in [-1, 1]; what lies past a row's length is ignored.
            lengths: (B,) samples of each row, 0 to Q.
            state: of these rows; it stays valid.

        Returns:
            What became final, and the state after it.
        """
        results = self._step.run(None, {"pcm": pcm[:, :, None], "lengths": lengths, **state})
        outputs = self._outputs(results)
        leaves = results[2 * len(self.heads) :]
        return outputs, {leaf["name"]: x for leaf, x in zip(self._leaves, leaves, strict=True)}

    def finish(self, state: State) -> Outputs:
        """Compute the tail of every row, whose stream ends here; the state is spent."""
        return self._outputs(
            self._finish.run(None, {name: state[name] for name in self._tail_inputs})
        )

    def _outputs(self, results: list[Any]) -> Outputs:
        return {tau: (results[2 * i], results[2 * i + 1]) for i, tau in enumerate(self.heads)}


class OfflineEngine:
    """A bidirectional bundle, ready to run on whole recordings.

    Args:
        bundle: of a bidirectional model.
        threads: of one call.

    Raises:
        NearfutureError: for a streaming bundle, or where ONNX Runtime cannot load the graph.
    """

    def __init__(self, bundle: Bundle, *, threads: int = 1) -> None:
        if bundle.manifest.kind != "bidirectional":
            raise NearfutureError(
                f"{bundle.manifest.name} is a streaming model: use Engine", code="unsupported"
            )
        self._session = _session(bundle, "offline.onnx", threads)

    def run(
        self, pcm: NDArray[np.float32], lengths: NDArray[np.int64]
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Compute the log-probabilities of whole recordings.

        Args:
            pcm: (B, N) samples in [-1, 1].
            lengths: (B,) samples of each row, 0 to N.

        Returns:
            (B, T, V), zero past a row's frames, and the frames (B,).
        """
        log_probs, frames = self._session.run(None, {"pcm": pcm[:, :, None], "lengths": lengths})
        return log_probs, frames


def row(outputs: Outputs, b: int) -> dict[int, NDArray[np.float32]]:
    """Return the valid log-probabilities (frames, V) of one row, for every head."""
    return {tau: log_probs[b, : frames[b]] for tau, (log_probs, frames) in outputs.items()}


def refuse_bidirectional(bundle: Bundle) -> None:
    """Raise `NotStreamable` for a model that needs the whole recording."""
    if bundle.manifest.kind == "bidirectional":
        name = bundle.manifest.name
        raise NotStreamable(
            f"{name} is bidirectional: its backward direction starts at the last sample, so its "
            f"first output needs the whole recording. Use transcribe() on a complete recording, or "
            f"a streaming model, which looks a fixed time ahead"
        )


def choose_precision(bundle: Bundle, precision: str) -> str:
    """Return the precision in which a bundle's graphs run; the requested one may be `auto`.

    Raises:
        UnsupportedPrecision: where this processor does not offer the precision.
        NearfutureError: where the bundle does not have it.
    """
    manifest = bundle.manifest
    if precision == AUTO:
        return fastest(manifest.precisions)
    refuse_unsupported(precision)
    if precision in (FLOAT32, *manifest.precisions):
        return precision
    available = ", ".join((FLOAT32, *manifest.precisions))
    command = f"nearfuture quantize {shlex.quote(bundle.source)} --precision {precision}"
    if manifest.kind != "streaming":
        remedy = "only streaming models have others"
    elif Path(bundle.source) == bundle.folder:
        remedy = f"add it with: {command}"
    else:  # it came with this package, or from a zip file, and stays as it is
        remedy = f"make a copy that has it with: {command} --to FOLDER"
    raise NearfutureError(
        f"{manifest.name} has no graphs in {precision!r}, only in {available}: {remedy}",
        code="unsupported",
        parameter="precision",
    )


def _session(bundle: Bundle, name: str, threads: int) -> ort.InferenceSession:
    options = session_options(threads)
    path = bundle.graph(name)
    try:
        return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # ONNX Runtime's errors have no base class of their own
        reason = " ".join(str(error).split())
        raise NearfutureError(
            f"{name} of {bundle.manifest.name} cannot be run: {reason}", code="damaged"
        ) from error
