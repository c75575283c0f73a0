"""An RNN, unrolled: its state frame by frame, what it is the sum of, and how long a letter lasts.

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
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from nearfuture.budget import Cell, recurrent_cost
from nearfuture.error import NearfutureError
from nearfuture.lab.endpoint import Between, Text
from nearfuture.lab.graphs import open_graph
from nearfuture.lab.page import Page

LETTERS = "abcd"
LONGEST = 12
STATE = 8

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
    if not text or set(text) - set(LETTERS):
        raise NearfutureError(
            f"`text` is written with the letters {', '.join(LETTERS)}, not {text!r}",
            parameter="text",
        )
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
    endpoints={"states": states},
    module=__name__,
    behind=("layers/cell.py", "layers/recurrent.py", "budget/cost.py"),
)
