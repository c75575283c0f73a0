"""Every node of an ONNX graph with what went in and what came out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from nearfuture.audit.adapters import OnnxAdapter
from nearfuture.audit.attribution.operation import Array, Operation


class OnnxTracer:
    """A copy of an ONNX graph that also outputs the result of every node."""

    def __init__(self, adapter: OnnxAdapter, path: Path) -> None:
        import onnx
        import onnxruntime as ort

        self._adapter = adapter
        model = onnx.load(str(path), load_external_data=False)
        self._nodes = list(model.graph.node)
        read = {*_names_read(self._nodes), *(value.name for value in model.graph.output)}
        # A last state that nothing reads can be nobody's culprit.
        self._outputs = [name for node in self._nodes for name in node.output if name in read]
        del model.graph.output[:]
        model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in self._outputs)
        options = ort.SessionOptions()
        options.log_severity_level = 4
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        # Weights in files beside the graph are found from its folder.
        options.add_session_config_entry(
            "session.model_external_initializers_file_folder_path", str(path.parent)
        )
        self._session = ort.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )

    def trace(self, positional: list[Array], named: Mapping[str, Any]) -> list[Operation]:
        """Run the graph once and return its nodes in order."""
        feed = self._adapter.feed(positional, named)
        outputs = self._session.run(self._outputs, feed)
        values = dict(zip(self._outputs, outputs, strict=True)) | feed
        return [
            Operation(
                where=node.name or node.op_type,
                what=node.op_type,
                name=node.op_type,
                source=None,
                call=0 if node.name else number,
                inputs=_arrays(values, node.input),
                outputs=_arrays(values, node.output),
            )
            for number, node in enumerate(self._nodes)
        ]


def _names_read(nodes: Iterable[Any]) -> Iterator[str]:
    """Yield what nodes read, those of the graphs inside them too."""
    for node in nodes:
        yield from node.input
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                yield from _names_read(graph.node)


def _arrays(values: Mapping[str, Any], names: Any) -> tuple[Array, ...]:
    """Return the values that are known; weights are not."""
    known = [values[name] for name in names if name in values]
    return tuple(value for value in known if isinstance(value, np.ndarray))
