"""Every node of an ONNX graph with what went in and what came out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearfuture.audit.blame import Event
from nearfuture.audit.target import OnnxTarget

Array = NDArray[Any]


def trace(target: OnnxTarget, positional: list[Array], named: Mapping[str, Any]) -> list[Event]:
    """Run the graph once with every node's outputs as outputs of the graph."""
    import onnx
    import onnxruntime as ort

    assert target.path is not None
    if target.watched is None:
        graph = onnx.load(str(target.path), load_external_data=False)
        outputs = [name for node in graph.graph.node for name in node.output if name]
        del graph.graph.output[:]
        graph.graph.output.extend(onnx.ValueInfoProto(name=name) for name in outputs)
        options = ort.SessionOptions()
        options.log_severity_level = 4
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        # Weights in files beside the graph are found from its folder.
        options.add_session_config_entry(
            "session.model_external_initializers_file_folder_path", str(target.path.parent)
        )
        session = ort.InferenceSession(
            graph.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        nodes = [
            (node.name or node.op_type, node.op_type, list(node.input), list(node.output))
            for node in graph.graph.node
        ]
        target.watched = (session, outputs, nodes)
    session, outputs, nodes = target.watched
    feed = target.feed(positional, named)
    values = dict(zip(outputs, session.run(outputs, feed), strict=True)) | feed
    return [
        Event(
            where=name,
            what=kind,
            operation=kind,
            source=None,
            inputs=_arrays(values, taken),
            outputs=_arrays(values, given),
        )
        for name, kind, taken, given in nodes
    ]


def _arrays(values: Mapping[str, Any], names: list[str]) -> tuple[Array, ...]:
    """Those that are known; weights are not."""
    found = [values[name] for name in names if name in values]
    return tuple(value for value in found if isinstance(value, np.ndarray))
