"""Export what a copy of the lab computes in the browser: `python tools/make_lab_browser_graphs.py`.

Everything that a figure shows is an output of a graph, so that no formula is written in JavaScript:
the states of a recurrent cell over letters with what is made of them, and greedy decoding.
`tests/lab/test_browser_graphs.py` compares each with what the running lab answers.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import make_lab_graphs
import torch
from torch import Tensor, nn

from nearfuture.decoding.detokenizer import PAUSE_MS
from nearfuture.export.graphs.translation import translate
from nearfuture.runtime import load

FOLDER = Path(__file__).parents[1] / "src" / "nearfuture" / "assets" / "lab" / "in-browser"
CELLS = ("tanh", "relu", "gru", "lstm")
LETTERS = 4
STATE = 8


class Unrolled(nn.Module):
    """What the page on unrolling shows of a cell: `letters (T,), swap () → …`.

    The letters, the letters with two neighbours swapped, and with another start run as one batch.
    """

    letters: Tensor

    def __init__(self, cell: str) -> None:
        super().__init__()
        self.layer = make_lab_graphs.LayerGraph(make_lab_graphs.build(f"unrolled-{cell}"))
        self.register_buffer("letters", torch.eye(LETTERS))

    def forward(self, text: Tensor, swap: Tensor) -> tuple[Tensor, ...]:
        """All numbers of the figure; an LSTM's and a GRU's have no terms."""
        at = torch.arange(text.shape[0])
        inside = (swap > 0) & (swap < text.shape[0])
        later = torch.where(inside & (at == swap - 1), at + 1, at)
        swapped = text[torch.where(inside & (at == swap), at - 1, later)]
        other = torch.where(at == 0, (text + 1) % LETTERS, text)
        rows = torch.stack([text, swapped, other])
        y = self.layer(self.letters[rows], torch.ones_like(rows).sum(dim=1))
        h, of_swapped, of_other = y[..., -STATE:].double()
        moved = _norm(of_swapped[-1] - h[-1]) / _norm(h[-1]).clamp(min=1e-12)
        difference = _norm(of_other - h)
        figures = (y[0, :, -STATE:], swapped, other, moved, difference / difference[0])
        if y.shape[-1] == STATE:
            return figures
        of_x, of_h, bias = y[0, :, : 3 * STATE].split(STATE, dim=-1)
        return (*figures, of_x, of_h, bias, of_x + of_h + bias)


class Stacked(nn.Module):
    """What that page shows of a stack: `text (T,), rows (B,) → …`; `rows` counts from 0.

    Each row of the batch begins a letter later. `h_n_L` are the last states of L layers, `last_L`
    what the outputs end with.
    """

    letters: Tensor

    def __init__(self, directions: str) -> None:
        super().__init__()
        self.layer = make_lab_graphs.LayerGraph(make_lab_graphs.build(f"stacked-{directions}"))
        self.count = 1 if directions == "one" else 2
        self.register_buffer("letters", torch.eye(LETTERS))

    def forward(self, text: Tensor, rows: Tensor) -> tuple[Tensor, ...]:
        """All tensors of the figure, for one, two and three layers."""
        at = torch.arange(text.shape[0])
        x = self.letters[text[(at + rows[:, None]) % torch.ones_like(text).sum()]]
        y = self.layer(x, torch.ones_like(x[..., 0], dtype=torch.int64).sum(dim=1))
        levels = y.unflatten(-1, (LEVELS, self.count, STATE))
        ends = [levels[:, -1, :, 0], levels[:, 0, :, -1]][: self.count]
        final = torch.stack(ends, dim=2)  # (B, L, D, H)
        figures: list[Tensor] = [x, x.transpose(0, 1)]
        for layers in range(1, LEVELS + 1):
            top = levels[:, :, layers - 1]
            outputs = top.flatten(-2)
            h_n = final[:, :layers].flatten(1, 2).transpose(0, 1)
            gap = _norm((top[0, -1] - final[0, layers - 1]).double())
            apart = gap / _norm(final[0, layers - 1].double()).clamp(min=1e-12)
            figures += [outputs, outputs.transpose(0, 1), top[0], h_n, h_n[:, 0], apart]
        return tuple(figures)


LEVELS = make_lab_graphs.LEVELS
EACH = ["outputs_batch_first", "outputs_time_first", "outputs", "h_n", "first_h_n", "apart"]
STACKED = ["x_batch_first", "x_time_first"] + [
    f"{name}_{layers}" for layers in range(1, LEVELS + 1) for name in EACH
]

FIGURES = ["h", "swapped", "other", "moved", "left"]
TERMS = ["input", "state", "bias", "sum"]


def _norm(x: Tensor) -> Tensor:
    return (x * x).sum(dim=-1).sqrt()


class Greedy(nn.Module):
    """Greedy CTC decoding of a frame: `log_probs (V,), last (), silence (), frame () → …`.

    `symbol` is what is written, 0 for nothing; `pause` whether a silence before it divides words;
    `start_ms` and `end_ms` where a word begins and ends that begins and ends with it; `light`
    the probabilities in 255 steps. `last` and `silence` are the state: the best symbol of the last
    frame, and frames of blanks.
    """

    def __init__(self, frame_ms: float, centre_ms: float) -> None:
        super().__init__()
        self.frame_ms, self.centre_ms = frame_ms, centre_ms

    def forward(
        self, log_probs: Tensor, last: Tensor, silence: Tensor, frame: Tensor
    ) -> tuple[Tensor, ...]:
        """One frame, as `GreedyDecoder.step` and `Detokenizer` have it."""
        best = log_probs.argmax(dim=-1)
        symbol = torch.where(best == last, 0, best)
        pause = silence >= math.ceil(PAUSE_MS / self.frame_ms)
        start_ms = self.centre_ms + self.frame_ms * frame
        end_ms = self.centre_ms + self.frame_ms * (frame + 0.5)
        light = (255 * log_probs.exp()).round()
        silence = torch.where(best == 0, silence + 1, 0)
        return symbol, pause, start_ms, end_ms, light, best, silence


def unrolled(cell: str) -> bytes:
    """Export a cell with its figure; the number of letters is free."""
    text, swap = torch.tensor([0, 1, 0, 2, 3]), torch.tensor(1)
    outputs = FIGURES + (TERMS if cell in ("tanh", "relu") else [])
    inputs = {"text": (text, {0: "T"}), "swap": (swap, {})}
    return translate(Unrolled(cell), inputs, outputs, {"cell": cell}).SerializeToString()


def stacked(directions: str) -> bytes:
    """Export a stack with its figure; the letters and the rows are free."""
    text, rows = torch.tensor([0, 1, 0, 2, 3]), torch.tensor([0, 1])
    inputs = {"text": (text, {0: "T"}), "rows": (rows, {0: "B"})}
    return translate(Stacked(directions), inputs, STACKED, {}).SerializeToString()


def greedy() -> bytes:
    """Export greedy decoding for the bundled model."""
    manifest = load("digits").manifest
    symbols = len(manifest.vocabulary)
    inputs = {
        "log_probs": (torch.zeros(symbols), {}),
        "last": (torch.tensor(0), {}),
        "silence": (torch.tensor(0), {}),
        "frame": (torch.tensor(0), {}),
    }
    outputs = ["symbol", "pause", "start_ms", "end_ms", "light", "last_next", "silence_next"]
    decoder = Greedy(manifest.frame_ms, manifest.centre_ms)
    return translate(decoder, inputs, outputs, {}).SerializeToString()


GRAPHS: dict[str, Callable[[], bytes]] = {
    **{f"unrolled-{cell}": partial(unrolled, cell) for cell in CELLS},
    **{f"stacked-{directions}": partial(stacked, directions) for directions in ("one", "both")},
    "greedy": greedy,
}


def main(names: list[str]) -> None:
    """Write the graphs of these names, or all of them."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in names or GRAPHS:
        graph = GRAPHS[name]()
        (FOLDER / f"{name}.onnx").write_bytes(graph)
        print(f"{name}: {len(graph):,} bytes", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
