"""The graphs of the figures: real layers, exported, run by ONNX Runtime.

`tools/make_lab_graphs.py` exports them; those that a page stacks read and write frames of the same
width, so that any of them can stand on any other.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearfuture.budget import ReceptiveField
from nearfuture.error import NearfutureError
from nearfuture.lab.page import ASSETS

FOLDER = ASSETS / "graphs"


class Graph:
    """A layer as a graph: `x (B, T, D) → y (B, T, E)`.

    Attributes:
        name: of its file.
        width: values of a frame, D.
        field: the receptive field that the layer declares.

    Raises:
        NearfutureError: where there is no such graph.

    >>> graph = open_graph("row-convolution-2")
    >>> graph(np.zeros((1, 5, 4), np.float32)).shape, graph.field.right
    ((1, 5, 4), 2)
    """

    def __init__(self, name: str) -> None:
        path = FOLDER / f"{name}.onnx"
        if not path.is_file():
            raise NearfutureError(f"the lab has no graph {name}", code="not_found")
        self.name = name
        self._session = open_session(path)
        inputs = {value.name: value.shape for value in self._session.get_inputs()}
        self.width: int = inputs["x"][2]
        metadata = self._session.get_modelmeta().custom_metadata_map
        declared = json.loads(metadata["nearfuture.field"])
        left, right = (
            math.inf if declared[side] is None else declared[side] for side in ("left", "right")
        )
        self.field = ReceptiveField(left=left, right=right, block=declared["block"])

    def __call__(
        self, x: NDArray[Any], *, lengths: Sequence[int] | None = None
    ) -> NDArray[np.float32]:
        """Run the layer on whole sequences.

        Args:
            x: (B, T, D).
            lengths: the valid frames of each row; all by default.
        """
        valid = [x.shape[1]] * len(x) if lengths is None else lengths
        feed = {"x": np.asarray(x, np.float32), "lengths": np.asarray(valid, np.int64)}
        y: NDArray[np.float32] = self._session.run(None, feed)[0]
        return y


def open_session(path: Path) -> Any:
    """Open a graph of any inputs and outputs as a session of ONNX Runtime, on one thread."""
    import onnxruntime as ort

    from nearfuture.runtime.session import session_options

    return ort.InferenceSession(path, session_options(1), providers=["CPUExecutionProvider"])


@cache
def open_graph(name: str) -> Graph:
    """Open a graph, once in a process."""
    return Graph(name)
