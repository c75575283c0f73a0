"""Cut the features out of the bundled twin for the lab: `python tools/make_lab_features.py`.

The graph keeps no weights: it reads them out of the bundle's own file, so that a spectrogram of the
lab is what the model itself computes. `tests/lab/test_live.py` compares it with the layer.
"""

from __future__ import annotations

from pathlib import Path

import onnx
from onnx.utils import Extractor

ASSETS = Path(__file__).parents[1] / "src" / "nearfuture" / "assets"
SOURCE = ASSETS / "models" / "digits-bidirectional" / "offline.onnx"
TARGET = ASSETS / "lab" / "log-mel.onnx"


def cut() -> onnx.ModelProto:
    """The graph from `pcm (B, N, 1), lengths (B,)` to `bands (B, T, M)`."""
    model = onnx.load(SOURCE, load_external_data=False)
    last = next(node for node in model.graph.node if "model.features.scale" in node.input)
    bands = last.output[0]
    width = next(each.dims[0] for each in model.graph.initializer if each.name in last.input)
    model.graph.value_info.append(
        onnx.helper.make_tensor_value_info(bands, onnx.TensorProto.FLOAT, ["B", "T", width])
    )
    graph = Extractor(model).extract_model(["pcm", "lengths"], [bands])
    for node in graph.graph.node:
        node.output[:] = ["bands" if name == bands else name for name in node.output]
    graph.graph.output[0].name = "bands"
    return graph


def main() -> None:
    """Write the graph."""
    content = cut().SerializeToString()
    TARGET.write_bytes(content)
    print(f"{TARGET.name}: {len(content):,} bytes", flush=True)


if __name__ == "__main__":
    main()
