"""A stack of layers that somebody types: "gru 8, lookahead 2, attention 4", built with torch.

Layers are divided by commas, each a word and its numbers. Nothing is evaluated: a word that is not
in the table is refused by its name.

Shapes: `B` batch, `T` frames, `D` values of a frame.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nearfuture.budget import ReceptiveField
from nearfuture.lab.refusal import Refusal

if TYPE_CHECKING:
    from nearfuture.layers import StreamingLayer

INPUT = 4
"""Values of a frame of the input."""

MOST = 6


@dataclass(frozen=True)
class LayerKind:
    """A word of the language.

    Attributes:
        kind: what a page calls such a layer.
        numbers: the limits and the default of each number behind it.
        build: makes the layer from the width of its input and its numbers.
    """

    kind: str
    numbers: tuple[tuple[int, int, int], ...]
    build: Callable[..., StreamingLayer]


def _recurrent(name: str, width: int, hidden: int) -> StreamingLayer:
    import nearfuture.layers as layers

    layer: StreamingLayer = getattr(layers, name)(width, hidden)
    return layer


def _bidirectional(width: int, hidden: int) -> StreamingLayer:
    from nearfuture.layers import GRU, Bidirectional

    return Bidirectional(GRU(width, hidden), merge="sum")


def _lookahead(width: int, frames: int) -> StreamingLayer:
    from nearfuture.layers import Lookahead

    return Lookahead(width, frames)


def _convolution(width: int, left: int, right: int) -> StreamingLayer:
    from nearfuture.layers import Convolution

    return Convolution(width, width, left=left, right=right)


def _attention(width: int, left: int, right: int) -> StreamingLayer:
    from nearfuture.layers import SelfAttention, SlidingMask

    return SelfAttention(width, 1, mask=SlidingMask(left=left, right=right))


def _chunks(width: int, chunk: int, before: int) -> StreamingLayer:
    from nearfuture.layers import ChunkedMask, SelfAttention

    return SelfAttention(width, 1, mask=ChunkedMask(chunk=chunk, left_chunks=before))


_WIDTH = (1, 16, INPUT)
WORDS: dict[str, LayerKind] = {
    "rnn": LayerKind("gru", (_WIDTH,), lambda *of: _recurrent("RNN", *of)),
    "gru": LayerKind("gru", (_WIDTH,), lambda *of: _recurrent("GRU", *of)),
    "lstm": LayerKind("gru", (_WIDTH,), lambda *of: _recurrent("LSTM", *of)),
    "bidirectional": LayerKind("bidirectional", (_WIDTH,), _bidirectional),
    "lookahead": LayerKind("row-convolution", ((0, 6, 2),), _lookahead),
    "convolution": LayerKind("convolution", ((0, 6, 2), (0, 6, 0)), _convolution),
    "attention": LayerKind("sliding-attention", ((0, 15, 4), (0, 6, 0)), _attention),
    "chunks": LayerKind("chunked-attention", ((1, 8, 4), (0, 4, 1)), _chunks),
}
"""The language: each word, and what stands behind it. Numbers that are left out are defaults."""


def available() -> bool:
    """Return whether torch is installed, without loading it."""
    return importlib.util.find_spec("torch") is not None


@dataclass(frozen=True)
class TorchLayer:
    """A layer with random weights, `x (B, T, D) → y (B, T, E)`, as a graph of the lab.

    Attributes:
        word: of the language.
        numbers: behind it.
        width: values of a frame of its input, D.
        place: in the stack, counted from 1 below; each place has weights of its own.
    """

    word: str
    numbers: tuple[int, ...]
    width: int
    place: int

    @property
    def name(self) -> str:
        """What a page calls it, with its place."""
        return f"{WORDS[self.word].kind}-{self.place}"

    @property
    def output_width(self) -> int:
        """Values of a frame of its output, E."""
        return self._layer.output_size

    @property
    def field(self) -> ReceptiveField:
        """The receptive field that the layer declares."""
        return self._layer.field

    def __call__(self, x: NDArray[Any]) -> NDArray[np.float32]:
        """Run the layer on whole sequences (B, T, D)."""
        import torch

        given = torch.from_numpy(np.ascontiguousarray(x, np.float32))
        with torch.no_grad():
            y, _ = self._layer(given, torch.full((len(x),), x.shape[1]))
        return np.asarray(y.numpy(), np.float32)

    @cached_property
    def _layer(self) -> StreamingLayer:
        import torch

        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.place)
            return WORDS[self.word].build(self.width, *self.numbers).eval()


def parse(text: str) -> list[TorchLayer]:
    """Return the layers of a text, from below.

    Raises:
        Refusal: for a word that is not in the table, for what is no number or beyond its limits,
            and for more layers than there may be.

    >>> [(layer.name, layer.numbers) for layer in parse("GRU 8, lookahead 2, attention 4")]
    [('gru-1', (8,)), ('row-convolution-2', (2,)), ('sliding-attention-3', (4, 0))]
    """
    parts = [part.split() for part in text.lower().split(",") if part.strip()]
    if not 1 <= len(parts) <= MOST:
        raise Refusal("stack-size", f"a stack has 1 to {MOST} layers, not {len(parts)}", most=MOST)
    layers: list[TorchLayer] = []
    width = INPUT
    for place, (word, *numbers) in enumerate(parts, 1):
        if word not in WORDS:
            raise Refusal(
                "stack-word",
                f"there is no layer {word!r}; there is {', '.join(WORDS)}",
                parameter="stack",
                word=word,
                words=", ".join(WORDS),
            )
        layer = TorchLayer(word, _numbers(word, numbers), width, place)
        layers.append(layer)
        width = layer.output_width
    return layers


def _numbers(word: str, texts: list[str]) -> tuple[int, ...]:
    limits = WORDS[word].numbers
    if len(texts) > len(limits):
        raise Refusal(
            "stack-numbers",
            f"{word} takes {len(limits)} numbers, not {len(texts)}",
            parameter="stack",
            word=word,
            most=len(limits),
        )
    found = []
    for at, (lowest, highest, default) in enumerate(limits):
        text = texts[at] if at < len(texts) else str(default)
        # isdecimal: int() would take "1_000" and digits that nobody can see
        number = int(text) if text.isascii() and text.isdecimal() and len(text) < 4 else -1
        if not lowest <= number <= highest:
            raise Refusal(
                "stack-number",
                f"{word} takes a number from {lowest} to {highest}, not {text!r}",
                code="out_of_range",
                parameter="stack",
                word=word,
                lowest=lowest,
                highest=highest,
                value=text,
            )
        found.append(number)
    return tuple(found)
