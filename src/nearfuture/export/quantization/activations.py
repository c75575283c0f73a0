"""The largest activations: the static scales of int8, the same for every row and batch.

A scale that is computed from a batch would let the other rows of the batch change a row's result.
So it is a constant for every weight: 1 where the graph shows that the activations lie in [-1, 1],
as the state of a gated cell does, and otherwise the largest value while calibration recordings are
streamed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from numpy.typing import NDArray
from onnx import numpy_helper

from nearfuture.export.quantization.products import weight_key
from nearfuture.export.quantization.replacement import GRAPHS, quantizable
from nearfuture.export.streams import run_streams
from nearfuture.runtime import Bundle, Engine
from nearfuture.runtime.session import session_options

_GATED = ("gru", "lstm")

_MOVES = {"Unsqueeze", "Squeeze", "Reshape", "Slice", "Gather", "Identity", "Transpose"}
"""Operations that only move the values of their first input."""


def activation_ranges(
    bundle: Bundle,
    graphs: Mapping[str, onnx.ModelProto],
    recordings: Sequence[NDArray[np.float32]],
) -> dict[str, float]:
    """Find the largest activation that every weight is multiplied with, in whichever graph.

    Args:
        bundle: of a streaming model.
        graphs: its float32 graphs, by name.
        recordings: (n,) each, at the model's rate, to calibrate with.

    Returns:
        Magnitudes by `weight_key`.
    """
    keys: dict[tuple[str, str], str] = {}
    ranges: dict[str, float] = {}
    bounded: set[str] = set()
    recurrence = bundle.manifest.architecture.recurrence
    gated = recurrence is not None and recurrence.cell in _GATED
    for name, model in graphs.items():
        unit = unit_values(model.graph) if gated else set()
        for operation in quantizable(model.graph, "int8"):
            key = weight_key(model.graph, operation.weight)
            keys[name, operation.x] = key
            ranges[key] = 0.0
            if operation.x in unit:
                bounded.add(key)
    values = {name: [x for graph, x in keys if graph == name] for name in graphs}
    for place, magnitude in largest_values(bundle, values, recordings).items():
        ranges[keys[place]] = max(ranges[keys[place]], magnitude)
    return ranges | dict.fromkeys(bounded, 1.0)


def largest_values(
    bundle: Bundle,
    values: Mapping[str, Sequence[str]],
    recordings: Sequence[NDArray[np.float32]],
) -> dict[tuple[str, str], float]:
    """Measure the largest magnitude of values inside the float32 graphs.

    Args:
        bundle: of a streaming model.
        values: the names of values, by graph: `step.onnx` and `finish.onnx`.
        recordings: (n,) each, at the model's rate.

    Returns:
        By graph and name.
    """
    engine = _ObservedEngine(bundle, values)
    run_streams(engine, recordings)
    return engine.largest


def unit_values(graph: onnx.GraphProto) -> set[str]:
    """Find the values in [-1, 1]: a gated cell's state begins at 0 and moves towards a tanh.

    A state is an input `….hidden`, and `where(the row goes on, new state, state)` is a state again.
    Operations that only move such values, or put zeros in their place, keep them in [-1, 1].

    Args:
        graph: of GRU or LSTM layers; the states of other cells have no such bound.
    """
    states = {value.name for value in graph.input if value.name.endswith(".hidden")}
    unit = set(states)
    for node in graph.node:  # they are in order
        if node.op_type == "Where" and node.input[2] in states:
            states.add(node.output[0])
            unit |= {node.input[1], node.output[0]}
    zeros = {tensor.name for tensor in graph.initializer if _is_zero(tensor)}
    for node in graph.node:
        moved = _moved_values(node)
        if moved and all(name in unit or name in zeros for name in moved):
            unit.update(node.output)
    return unit


def _moved_values(node: onnx.NodeProto) -> list[str]:
    """The inputs whose values the node moves; nothing where it computes."""
    if node.op_type == "Where":
        return list(node.input[1:])
    if node.op_type == "Concat":
        return list(node.input)
    return list(node.input[:1]) if node.op_type in _MOVES else []


def _is_zero(tensor: onnx.TensorProto) -> bool:
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        return False
    values = numpy_helper.to_array(tensor)
    return values.dtype.kind == "f" and values.size == 1 and not values.any()


class _ObservedEngine(Engine):
    """An engine that records the largest magnitude of values inside its graphs."""

    def __init__(self, bundle: Bundle, values: Mapping[str, Sequence[str]]) -> None:
        super().__init__(bundle)
        self.largest: dict[tuple[str, str], float] = {}
        self._step, self._finish = (
            _ObservedSession(bundle, name, set(values[name]), self.largest) for name in GRAPHS
        )


class _ObservedSession:
    """A session of a graph that outputs inner values, too, and takes note of them itself."""

    def __init__(
        self, bundle: Bundle, name: str, values: set[str], largest: dict[tuple[str, str], float]
    ) -> None:
        path = bundle.graph(name)
        model = onnx.load(path, load_external_data=False)
        self._name, self._largest = name, largest
        self._outputs = [value.name for value in model.graph.output]
        inputs = {value.name for value in model.graph.input}
        self._inputs = sorted(values & inputs)
        self._values = sorted(values - inputs - {*self._outputs})
        for value in self._values:
            model.graph.output.append(
                onnx.helper.make_tensor_value_info(value, onnx.TensorProto.FLOAT, None)
            )
        options = session_options(1)
        options.add_session_config_entry(
            "session.model_external_initializers_file_folder_path", str(path.parent)
        )
        self._session = ort.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )

    def run(self, _: None, feed: Mapping[str, NDArray[Any]]) -> list[Any]:
        results: list[Any] = self._session.run([*self._outputs, *self._values], feed)
        observed = dict(zip(self._values, results[len(self._outputs) :], strict=True))
        observed |= {name: feed[name] for name in self._inputs}
        for value, x in observed.items():
            key = self._name, value
            self._largest[key] = max(self._largest.get(key, 0.0), float(np.abs(x).max(initial=0.0)))
        return results[: len(self._outputs)]
