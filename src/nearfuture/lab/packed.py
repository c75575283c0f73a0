"""The bidirectional GRU of a graph as torch's own, on packed sequences; needs torch and onnx.

Shapes: `B` rows, `T` frames, `D` features, `H` hidden.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearfuture.lab import graphs


def installed() -> bool:
    """Whether there is what this needs."""
    return all(importlib.util.find_spec(name) is not None for name in ("torch", "onnx"))


def packed(name: str, x: NDArray[Any], lengths: Sequence[int]) -> NDArray[np.float32]:
    """Run `pack_padded_sequence`, torch's GRU with the weights of a graph, `pad_packed_sequence`.

    Args:
        name: of a graph whose only layer is a bidirectional GRU that concatenates.
        x: (B, T, D).
        lengths: of each row; the longest is T.

    Returns:
        (B, T, 2H).
    """
    import torch
    from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

    frames = torch.from_numpy(np.asarray(x, np.float32))
    rows = pack_padded_sequence(
        frames, torch.tensor(lengths), batch_first=True, enforce_sorted=False
    )
    with torch.inference_mode():
        y, _ = pad_packed_sequence(_gru(name)(rows)[0], batch_first=True)
    outputs: NDArray[np.float32] = y.numpy()
    return outputs


@cache
def _gru(name: str) -> Any:
    import onnx
    import torch
    from onnx import numpy_helper
    from torch import nn

    graph = onnx.load(graphs.FOLDER / f"{name}.onnx").graph
    (node,) = [each for each in graph.node if each.op_type == "GRU"]
    stored = {each.name: numpy_helper.to_array(each) for each in graph.initializer}
    of_x, of_h, biases = (torch.from_numpy(stored[each].copy()) for each in node.input[1:4])
    hidden = of_h.shape[2]
    gru = nn.GRU(of_x.shape[2], hidden, batch_first=True, bidirectional=True)
    with torch.no_grad():
        for direction, suffix in enumerate(("", "_reverse")):
            of_both = biases[direction].chunk(2)
            for weight, value in (
                (f"weight_ih_l0{suffix}", of_x[direction]),
                (f"weight_hh_l0{suffix}", of_h[direction]),
                (f"bias_ih_l0{suffix}", of_both[0]),
                (f"bias_hh_l0{suffix}", of_both[1]),
            ):
                z, r, n = value.chunk(3)  # ONNX's order of gates; torch's is r, z, n
                getattr(gru, weight).copy_(torch.cat([r, z, n]))
    return gru
