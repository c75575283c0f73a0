"""Take the backward direction from the bundled twin: `python tools/make_lab_forward.py`.

The twin's own graph, in which each recurrent operator reads one way. Its weights W, U and b hold
both directions, one behind the other; a slice takes the first of each. So the graph needs no
weights of its own: it reads those of the bundle, and is a few kilobytes. Beside the
log-probabilities it gives the log-mel features that the model hears.
"""

from __future__ import annotations

from pathlib import Path

import onnx
from onnx import TensorProto, helper

from nearfuture.runtime import Bundle

FOLDER = Path(__file__).parents[1] / "src" / "nearfuture" / "assets" / "lab" / "derived"
TWIN = "digits-bidirectional"
FEATURES = "log_mel"


def forward_alone() -> onnx.ModelProto:
    """Return the graph of the twin whose recurrent layers read forwards alone."""
    model = onnx.load(Bundle.open(TWIN).folder / "offline.onnx", load_external_data=False)
    graph = model.graph
    bounds = [
        helper.make_tensor(name, TensorProto.INT64, [1], [value])
        for name, value in (("first", 0), ("second", 1))
    ]
    graph.initializer.extend(bounds)
    nodes, seen = [], 0
    for node in graph.node:
        if node.op_type == "GRU":
            for at in (1, 2, 3):  # W, U and b
                both, own = node.input[at], f"{node.input[at]}.forward"
                nodes.append(helper.make_node("Slice", [both, "first", "second", "first"], [own]))
                node.input[at] = own
            (direction,) = (each for each in node.attribute if each.name == "direction")
            direction.s = b"forward"
            seen += 1
        nodes.append(node)
    assert seen == 3, f"the twin has {seen} recurrent layers"
    del graph.node[:]
    graph.node.extend(nodes)
    _give_features(graph)
    del graph.value_info[:]
    return model


def _give_features(graph: onnx.GraphProto) -> None:
    """Let the graph give its features: what the logarithm makes, normalised and masked."""
    by_input = {name: node for node in graph.node for name in node.input}
    (logarithm,) = (node for node in graph.node if node.op_type == "Log")
    node = logarithm
    while node.op_type != "Where":  # −mean, × scale, then 0 in the frames that do not exist
        node = by_input[node.output[0]]
    identity = helper.make_node("Identity", [node.output[0]], [FEATURES])
    graph.node.append(identity)
    shape = ["batch", "windows", None]
    graph.output.append(helper.make_tensor_value_info(FEATURES, TensorProto.FLOAT, shape))


def main() -> None:
    """Write the graph."""
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / "forward-alone.onnx"
    path.write_bytes(forward_alone().SerializeToString())
    print(f"{path.name}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
