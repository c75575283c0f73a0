"""An RNN, unrolled: its states, what they are sums of, how long a letter lasts, and their shapes.

>>> import numpy as np
>>> from nearfuture.budget import recurrent_cost
>>> from nearfuture.lab.graphs import open_graph
>>> print(recurrent_cost("rnn", 4, 8, biases=1).parameters, recurrent_cost("rnn", 4, 8).parameters)
104 112
>>> letters = np.eye(4)[[0, 1, 0, 2, 3]]  # a b a c d, one-hot
>>> of_x, of_h, bias, h = np.split(open_graph("unrolled-tanh")(letters[None])[0], 4, axis=1)
>>> print(np.allclose(np.tanh(of_x + of_h + bias), h, atol=1e-6))
True
>>> other = np.eye(4)[[1, 0, 0, 2, 3]]  # the first two swapped
>>> print(np.allclose(open_graph("unrolled-tanh")(other[None])[0, -1, 24:], h[-1]))
False
>>> both = open_graph("stacked-both")(letters[None])[0, :, :16]  # the first layer, both ways
>>> print(np.array_equal(both[-1, 8:], both[0, 8:]))  # outputs[:, -1] against h_n[-1]
False
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from nearfuture.budget import Cell, recurrent_cost
from nearfuture.lab.endpoint import Between, Text
from nearfuture.lab.graphs import open_graph
from nearfuture.lab.page import Page
from nearfuture.lab.refusal import Refusal

LETTERS = "abcd"
LONGEST = 12
STATE = 8

Directions = Literal["one", "both"]
Kind = Literal["tanh", "relu", "gru", "lstm"]
_CELLS: dict[Kind, Cell] = {"tanh": "rnn", "relu": "rnn", "gru": "gru", "lstm": "lstm"}
_PLAIN = ("tanh", "relu")
"""Cells whose state is a function of one sum; the others have gates."""


def states(
    text: Annotated[str, Text(LONGEST)] = "abacdabc",
    cell: Kind = "tanh",
    swap: Annotated[int, Between(0, LONGEST - 1)] = 0,
) -> dict[str, Any]:
    """Run a cell over a text, over the text with two neighbours swapped, and with another start.

    Args:
        text: of the letters a, b, c and d.
        cell: the kind of cell.
        swap: the frame that changes places with the next one; 0 for none.
    """
    _check(text)
    graph = open_graph(f"unrolled-{cell}")
    y = graph(_one_hot(text))[0]
    h = y[:, -STATE:]
    terms = None
    if cell in _PLAIN:
        of_x, of_h, bias, _ = np.split(y, 4, axis=1)
        terms = {"input": of_x, "state": of_h, "bias": bias, "sum": of_x + of_h + bias}
    swapped = _swapped(text, swap)
    first = LETTERS[(LETTERS.index(text[0]) + 1) % len(LETTERS)]
    return {
        "letters": text,
        "h": h,
        "terms": terms,
        "swapped": swapped,
        "moved": float(_distance(graph(_one_hot(swapped))[0, -1:, -STATE:], h[-1:])[0]),
        "other": first + text[1:],
        "left": _left(graph(_one_hot(first + text[1:]))[0, :, -STATE:], h),
        "parameters": {
            str(biases): recurrent_cost(_CELLS[cell], len(LETTERS), STATE, biases=biases).parameters
            for biases in (1, 2)
        },
        "outputs": [1, *h.shape],
        "final": [1, 1, STATE],
    }


def stack(
    text: Annotated[str, Text(LONGEST)] = "abacdabc",
    layers: Annotated[int, Between(1, 3)] = 1,
    directions: Directions = "one",
    rows: Annotated[int, Between(1, 4)] = 2,
    layout: Literal["batch-first", "time-first"] = "batch-first",
) -> dict[str, Any]:
    """Run layers on each other over a batch: all outputs, and the last state of each direction.

    The first row of the batch is the text; every other one begins a letter later.

    Args:
        text: of the letters a, b, c and d.
        layers: L, plain RNNs of eight values a direction.
        directions: D.
        rows: B.
        layout: of input and outputs; states are never batch-first.
    """
    _check(text)
    count = 1 if directions == "one" else 2
    shifted = [text[row % len(text) :] + text[: row % len(text)] for row in range(rows)]
    x = np.concatenate([_one_hot(each) for each in shifted])
    every = open_graph(f"stacked-{directions}")(x).reshape(rows, len(text), -1, count, STATE)
    levels = every[:, :, :layers]
    ends = [levels[:, -1, :, 0], levels[:, 0, :, -1]]  # each direction ends where it has read all
    final = np.stack(ends[:count], axis=2)  # (B, L, D, H)
    h_n = final.reshape(rows, layers * count, STATE).swapaxes(0, 1)
    outputs = levels[:, :, -1].reshape(rows, len(text), count * STATE)
    last = outputs[0, -1].reshape(count, STATE)
    batch_first = layout == "batch-first"
    return {
        "letters": text,
        "directions": count,
        "layers": layers,
        "inputs_shape": (x if batch_first else x.swapaxes(0, 1)).shape,
        "outputs_shape": (outputs if batch_first else outputs.swapaxes(0, 1)).shape,
        "h_n_shape": h_n.shape,
        "outputs": outputs[0].reshape(len(text), count, STATE),
        "h_n": h_n[:, 0],
        "apart": _distance(last, final[0, -1]),
        "parameters": recurrent_cost(
            "rnn", len(LETTERS), STATE, layers=layers, bidirectional=count == 2
        ).parameters,
    }


def _check(text: str) -> None:
    if not text or set(text) - set(LETTERS):
        raise Refusal(
            "letters",
            f"`text` is written with the letters {', '.join(LETTERS)}, not {text!r}",
            parameter="text",
            letters=", ".join(LETTERS),
            value=text,
        )


def _one_hot(text: str) -> NDArray[np.float32]:
    frames = [LETTERS.index(letter) for letter in text]
    return np.eye(len(LETTERS), dtype=np.float32)[frames][None]


def _swapped(text: str, swap: int) -> str:
    """The text with two neighbours in each other's place, counted from 1."""
    if not 0 < swap < len(text):
        return text
    return text[: swap - 1] + text[swap] + text[swap - 1] + text[swap + 1 :]


def _distance(a: NDArray[np.float32], b: NDArray[np.float32]) -> NDArray[np.float64]:
    """How far states are apart, as a share of the second's norm."""
    share: NDArray[np.float64] = _norm(a - b) / np.maximum(_norm(b), 1e-12)
    return share


def _left(other: NDArray[np.float32], h: NDArray[np.float32]) -> NDArray[np.float64]:
    """What is left, frame by frame, of the first difference between two runs."""
    difference = _norm(other - h)
    share: NDArray[np.float64] = difference / difference[0]
    return share


def _norm(x: NDArray[np.float32]) -> NDArray[np.float64]:
    norm: NDArray[np.float64] = np.linalg.norm(x.astype(np.float64), axis=1)
    return norm


PAGE = Page(
    name="unrolled",
    endpoints={"states": states, "stack": stack},
    module=__name__,
    behind=("layers/cell.py", "layers/recurrent.py", "budget/cost.py"),
    in_browser=("states", "stack"),
)
