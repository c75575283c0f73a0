"""ONNX graphs, run by ONNX Runtime on the CPU."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from nearfuture.audit.adapters.base import Adapter, Array, cannot_run
from nearfuture.audit.source import place
from nearfuture.error import NearfutureError

_DTYPES = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(int8)": np.int8,
    "tensor(uint8)": np.uint8,
    "tensor(bool)": np.bool_,
}


class OnnxAdapter(Adapter):
    """An adapter for an ONNX graph.

    Some kernels drop NaN (a recurrent node with ReLU, and others depending on version and
    processor), so NaN probes prove nothing here.

    Args:
        session: an `onnxruntime.InferenceSession`.
        name: its name in a report.
        path: the file it was read from, which names the nodes.
    """

    propagates_nan = False

    def __init__(self, session: Any, name: str, path: Path | None) -> None:
        self.session = session
        self.name = name
        self.path = path
        self.source = None if path is None else place(path, 1)
        self.inputs = {value.name: _DTYPES[value.type] for value in session.get_inputs()}
        self.outputs = [value.name for value in session.get_outputs()]

    @classmethod
    def open(cls, path: Path) -> OnnxAdapter:
        """Read a file.

        Raises:
            NearfutureError: where ONNX Runtime cannot.
        """
        import onnxruntime as ort

        if not path.is_file():
            raise NearfutureError(f"there is no file {path}", code="not_found", parameter="fn")
        options = ort.SessionOptions()
        options.log_severity_level = 4
        try:
            session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # ONNX Runtime's errors have no base class of their own
            raise NearfutureError(
                f"{path} cannot be run: {' '.join(str(error).split())}", parameter="fn"
            ) from error
        return cls(session, path.name, path)

    def feed(self, positional: list[Array], named: Mapping[str, Any]) -> dict[str, Array]:
        """Arrays by the name of the graph's inputs, in the types that the graph takes."""
        free = [name for name in self.inputs if name not in named]
        feed = dict(zip(free, positional, strict=False)) | dict(named)
        if missing := [name for name in self.inputs if name not in feed]:
            raise NearfutureError(
                f"{self.name} also takes {', '.join(missing)}: give them in Python, with "
                f"extra={{name: array}}",
                parameter="extra",
            )
        if unknown := [name for name in feed if name not in self.inputs]:
            raise NearfutureError(
                f"{self.name} has no input {', '.join(unknown)}; it has {', '.join(self.inputs)}",
                code="not_found",
                parameter="keyword",
            )
        return {name: np.asarray(value, self.inputs[name]) for name, value in feed.items()}

    def call(self, positional: list[Array], named: Mapping[str, Any], *, seed: int | None) -> Any:
        feed = self.feed(positional, named)
        try:
            values = self.session.run(None, feed)
        except Exception as error:  # as above
            raise cannot_run(self.name, positional, error) from error
        return dict(zip(self.outputs, values, strict=True)) if len(values) > 1 else values[0]
