"""Export what a copy of the lab computes in the browser: `python tools/make_lab_browser_graphs.py`.

Everything that a figure shows is an output of a graph, so that no formula is written in JavaScript:
the states of a recurrent cell over letters with what is made of them, and greedy decoding.
`tests/lab/test_browser_graphs.py` compares each with what the running lab answers.
"""

from __future__ import annotations

import math
from pathlib import Path

import make_lab_graphs
import torch
from torch import Tensor, nn

from nearfuture.decoding.detokenizer import PAUSE_MS
from nearfuture.export.graphs.translation import translate

FOLDER = Path(__file__).parents[1] / "src" / "nearfuture" / "assets" / "lab" / "in-browser"
CELLS = ("tanh", "relu", "gru", "lstm")
LETTERS = 4
STATE = 8
FRAME_MS = 40.0


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
        at = torch.arange(len(text))
        inside = (swap > 0) & (swap < len(text))
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


FIGURES = ["h", "swapped", "other", "moved", "left"]
TERMS = ["input", "state", "bias", "sum"]


def _norm(x: Tensor) -> Tensor:
    return (x * x).sum(dim=-1).sqrt()


class Greedy(nn.Module):
    """Greedy CTC decoding of a frame: `log_probs (V,), last (), silence () → …`.

    `symbol` is what is written, 0 for nothing; `pause` whether a silence before it divides words.
    `last` and `silence` are the state: the best symbol of the last frame, and frames of blanks.
    """

    def forward(self, log_probs: Tensor, last: Tensor, silence: Tensor) -> tuple[Tensor, ...]:
        """One frame, as `GreedyDecoder.step` and `Detokenizer.begins_word` have it."""
        best = log_probs.argmax(dim=-1)
        symbol = torch.where(best == last, 0, best)
        pause = silence >= math.ceil(PAUSE_MS / FRAME_MS)
        return symbol, pause, best, torch.where(best == 0, silence + 1, 0)


def unrolled(cell: str) -> bytes:
    """Export a cell with its figure; the number of letters is free."""
    text, swap = torch.tensor([0, 1, 0, 2]), torch.tensor(1)
    outputs = FIGURES + (TERMS if cell in ("tanh", "relu") else [])
    inputs = {"text": (text, {0: "T"}), "swap": (swap, {})}
    return translate(Unrolled(cell), inputs, outputs, {"cell": cell}).SerializeToString()


def greedy(symbols: int = 17) -> bytes:
    """Export greedy decoding for a vocabulary of so many symbols with the blank."""
    inputs = {
        "log_probs": (torch.zeros(symbols), {}),
        "last": (torch.tensor(0), {}),
        "silence": (torch.tensor(0), {}),
    }
    outputs = ["symbol", "pause", "last_next", "silence_next"]
    return translate(Greedy(), inputs, outputs, {"frame_ms": FRAME_MS}).SerializeToString()


def main() -> None:
    """Write all of them."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    graphs = {f"unrolled-{cell}": unrolled(cell) for cell in CELLS} | {"greedy": greedy()}
    for name, graph in graphs.items():
        (FOLDER / f"{name}.onnx").write_bytes(graph)
        print(f"{name}: {len(graph):,} bytes", flush=True)


if __name__ == "__main__":
    main()
