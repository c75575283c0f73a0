"""Weights once: a file beside the graphs, where equal weights of any graph are the same bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

import onnx
from onnx import numpy_helper

from nearfuture.runtime import StoredFile

ALIGNMENT = 64  # bytes: what vector instructions like
SMALLEST = 1024  # bytes: anything smaller stays in the graph


class WeightFile:
    """Collects the large constants of several graphs, of floating point or of single bytes.

    Args:
        name: of the file, which lies in the graphs' own folder.

    >>> weights = WeightFile("weights.bin")
    >>> graph = onnx.helper.make_graph([], "g", [], [])
    >>> model = onnx.helper.make_model(graph)
    >>> for name in ("a", "b"):
    ...     tensor = onnx.helper.make_tensor(name, 1, [512], [1.0] * 512)
    ...     model.graph.initializer.extend([tensor])
    >>> weights.take(model.graph.initializer)
    >>> len(weights.data)
    2048
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.data = bytearray()
        self._offsets: dict[bytes, int] = {}

    def take(self, tensors: Iterable[onnx.TensorProto]) -> None:
        """Move large weights into this file and leave references behind.

        Weights that are in a file already stay there.
        """
        for tensor in tensors:
            if tensor.data_location == onnx.TensorProto.EXTERNAL:
                continue
            values = numpy_helper.to_array(tensor)
            is_weight = values.dtype.kind == "f" or values.dtype.itemsize == 1
            if values.nbytes < SMALLEST or not is_weight:
                continue
            content = values.tobytes()
            place = {"location": self.name, "offset": self._put(content), "length": len(content)}
            for field in ("raw_data", "float_data", "double_data", "int32_data"):
                tensor.ClearField(field)
            tensor.data_location = onnx.TensorProto.EXTERNAL
            for key, value in place.items():
                entry = tensor.external_data.add()
                entry.key, entry.value = key, str(value)

    def _put(self, content: bytes) -> int:
        digest = hashlib.sha256(content).digest()
        if digest not in self._offsets:
            self.data.extend(bytes(-len(self.data) % ALIGNMENT))
            self._offsets[digest] = len(self.data)
            self.data.extend(content)
        return self._offsets[digest]


def write_graphs(
    folder: Path, graphs: Mapping[str, onnx.ModelProto], weights: WeightFile
) -> dict[str, StoredFile]:
    """Write graphs, by name, and their weights, and return the files' entries of a manifest."""
    for name, graph in graphs.items():
        (folder / name).write_bytes(graph.SerializeToString(deterministic=True))
    (folder / weights.name).write_bytes(weights.data)
    return {name: stored_file(folder / name) for name in (*graphs, weights.name)}


def stored_file(path: Path) -> StoredFile:
    """Return the entry of a manifest for a file."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return StoredFile(bytes=path.stat().st_size, sha256=digest)
