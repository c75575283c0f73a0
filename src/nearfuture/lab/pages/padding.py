"""Padding: the same sentence alone and beside a longer one, with lengths and without.

>>> import numpy as np
>>> from nearfuture.lab.graphs import open_graph
>>> layer = open_graph("bidirectional-concat")  # four values forwards, then four backwards
>>> sentence = np.random.default_rng(0).normal(size=(1, 6, 4))
>>> padded = np.concatenate([sentence, np.zeros((1, 8, 4))], axis=1)  # to 14 frames
>>> alone = layer(sentence)
>>> naive = layer(padded)[:, :6]
>>> print(np.array_equal(naive[..., :4], alone[..., :4]))
True
>>> print(np.array_equal(naive[..., 4:], alone[..., 4:]))
False
>>> print(np.array_equal(layer(padded, lengths=[6])[:, :6], alone))
True
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from nearfuture.lab import packed
from nearfuture.lab.endpoint import Between
from nearfuture.lab.graphs import open_graph
from nearfuture.lab.page import Page

Fill = Literal["zeros", "noise"]


def drift(
    words: Annotated[int, Between(2, 10)] = 6,
    padding: Annotated[int, Between(0, 16)] = 8,
    fill: Fill = "zeros",
) -> dict[str, Any]:
    """Measure how far each word's representation moves when its sentence is padded.

    Shares of its norm in a batch of its own, for the half of each direction; and how far the state
    of one direction moves while it reads the padding.
    """
    batch = _batch(words, padding, fill)
    frames = words + padding
    both = open_graph("bidirectional-concat")
    alone = both(batch[:1, :words])[0]
    naive = both(batch)[0, :words]
    exact = both(batch, lengths=[words, frames])[0, :words]
    state = open_graph("gru-1")(batch)[0, words - 1 :]
    return {
        "words": words,
        "padding": padding,
        "naive": _halves(naive, alone),
        "exact": _halves(exact, alone),
        "same": bool(np.array_equal(exact, alone)),
        "state": _share(state, np.broadcast_to(state[0], state.shape)),
    }


def torch_packed(
    words: Annotated[int, Between(2, 10)] = 6,
    padding: Annotated[int, Between(0, 16)] = 8,
    fill: Fill = "zeros",
) -> dict[str, Any] | None:
    """Measure the same with torch's layer on packed sequences; None where there is no torch.

    `farthest` is the largest difference from this library's values with lengths.
    """
    if not packed.installed():
        return None
    name, lengths = "bidirectional-concat", [words, words + padding]
    batch = _batch(words, padding, fill)
    alone = packed.packed(name, batch[:1, :words], lengths[:1])[0]
    beside = packed.packed(name, batch, lengths)[0, :words]
    exact = open_graph(name)(batch, lengths=lengths)[0, :words]
    return {
        **_halves(beside, alone),
        "drift": max(float(each.max()) for each in _halves(beside, alone).values()),
        "farthest": float(np.abs(beside - exact).max()),
    }


def _batch(words: int, padding: int, fill: Fill) -> NDArray[np.float64]:
    """A padded sentence, and a longer one beside it: (2, words + padding, 4)."""
    rng = np.random.default_rng(0)
    sentence, other = rng.normal(size=(10, 4))[:words], rng.normal(size=(26, 4))
    frames = words + padding
    batch = np.stack([np.zeros((frames, 4)), other[:frames]])
    if fill == "noise":
        batch[0] = rng.normal(size=(26, 4))[:frames]
    batch[0, :words] = sentence
    return batch


def _halves(y: NDArray[np.float32], alone: NDArray[np.float32]) -> dict[str, Any]:
    """The drift of each frame in the values of the forward direction, and of the backward one."""
    middle = y.shape[1] // 2
    return {
        "forward": _share(y[:, :middle], alone[:, :middle]),
        "backward": _share(y[:, middle:], alone[:, middle:]),
    }


def _share(y: NDArray[np.float32], alone: NDArray[np.float32]) -> NDArray[np.float64]:
    """`‖y − alone‖ / ‖alone‖` of each frame, in float64."""
    difference = np.linalg.norm(y.astype(np.float64) - alone, axis=1)
    share: NDArray[np.float64] = difference / np.linalg.norm(alone.astype(np.float64), axis=1)
    return share


PAGE = Page(
    name="padding",
    endpoints={"drift": drift, "torch_packed": torch_packed},
    module=__name__,
    behind=("layers/bidirectional.py", "layers/ragged.py", "laws/padding.py"),
)
