"""How large activations become: the static scales of int8, the same for every row and batch.

A scale that is computed from what is in the batch would let a row's mates change its result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from numpy.typing import NDArray

from nearfuture.export.listening import heard
from nearfuture.runtime import Bundle, Engine
from nearfuture.runtime.session import session_options


def largest_activations(
    bundle: Bundle,
    values: Mapping[str, Sequence[str]],
    recordings: Sequence[NDArray[np.float32]],
) -> dict[tuple[str, str], float]:
    """The largest magnitude of some values inside the float32 graphs while they hear recordings.

    Args:
        bundle: of a streaming model.
        values: the names of values, by graph: `step.onnx` and `finish.onnx`.
        recordings: (n,) each, at the model's rate.

    Returns:
        By graph and name.
    """
    engine = _Watched(bundle, values)
    heard(engine, recordings)
    return engine.largest


class _Watched(Engine):
    """An engine that notes the largest magnitude of values inside its graphs."""

    def __init__(self, bundle: Bundle, values: Mapping[str, Sequence[str]]) -> None:
        self._values = values
        self.largest: dict[tuple[str, str], float] = {}
        super().__init__(bundle)

    def _open(self, bundle: Bundle, name: str, threads: int) -> Any:
        return _Session(bundle, name, list(dict.fromkeys(self._values[name])), self.largest)


class _Session:
    """A session of a graph whose inner values are outputs too, which it keeps to itself."""

    def __init__(
        self, bundle: Bundle, name: str, values: list[str], largest: dict[tuple[str, str], float]
    ) -> None:
        path = bundle.graph(name)
        model = onnx.load(path, load_external_data=False)
        self._name, self._largest = name, largest
        self._outputs = [value.name for value in model.graph.output]
        self._values = [value for value in values if value not in self._outputs]
        given = {value.name for value in model.graph.input}
        self._inputs = [value for value in self._values if value in given]
        self._values = [value for value in self._values if value not in given]
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
        seen = dict(zip(self._values, results[len(self._outputs) :], strict=True))
        for value, x in [*seen.items(), *((name, feed[name]) for name in self._inputs)]:
            key = self._name, value
            self._largest[key] = max(self._largest.get(key, 0.0), float(np.abs(x).max(initial=0.0)))
        return results[: len(self._outputs)]

    def get_inputs(self) -> Any:
        return self._session.get_inputs()

    def get_modelmeta(self) -> Any:
        return self._session.get_modelmeta()
