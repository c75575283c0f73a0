"""The audit beside a naive loop: one frame replaced at a time, one row a call, in float64.

The loop is what one would write in ten minutes; it shows which output depends on which input of one
example, and nothing else. CPU seconds of one thread, so that a busy machine changes little.

    python benchmarks/audit_loop.py
"""

import copy
import math
import time
from collections.abc import Callable

import numpy as np
import torch
from _report import emit
from rich.table import Table
from torch import Tensor, nn

from nearfuture import audit

_ROUNDING = 1e-12


class Attention(nn.Module):
    """Twelve layers of nn.TransformerEncoder, causal or not."""

    def __init__(self, *, causal: bool) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(64, 4, 256, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 12, enable_nested_tensor=False)
        self.causal = causal

    def forward(self, x: Tensor) -> Tensor:
        mask = None
        if self.causal:
            mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1]).to(x)
        return self.encoder(x, mask=mask, is_causal=False)


class ConvolutionsAndLstm(nn.Module):
    """Three convolutions that look two frames ahead, and three bidirectional layers."""

    def __init__(self) -> None:
        super().__init__()
        self.convs = nn.Sequential(*(nn.Conv1d(64, 64, 5, padding=2) for _ in range(3)))
        self.rnn = nn.LSTM(64, 64, 3, batch_first=True, bidirectional=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.rnn(self.convs(x.transpose(1, 2)).transpose(1, 2))[0]


class Gru(nn.Module):
    """Two layers of 128."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.GRU(64, 128, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.rnn(x)[0]


CASES: list[tuple[str, Callable[[], nn.Module], int, float]] = [
    ("12 layers of attention", lambda: Attention(causal=False), 200, math.inf),
    ("the same, causal", lambda: Attention(causal=True), 200, 0),
    ("3 convolutions, 3 bidirectional LSTM layers", ConvolutionsAndLstm, 48, math.inf),
    ("2 GRU layers of 128", Gru, 200, 0),
]


def loop(model: nn.Module, x: Tensor) -> np.ndarray:
    """(U, T): which output changes when a frame is replaced."""
    model, x = copy.deepcopy(model).double(), x.double()
    with torch.no_grad():
        base = model(x)
        matrix = np.zeros((base.shape[1], x.shape[1]), bool)
        for frame in range(x.shape[1]):
            changed = x.clone()
            changed[:, frame] = torch.randn_like(changed[:, frame])
            gap = (model(changed) - base).abs()[0].amax(-1)
            matrix[:, frame] = (gap > _ROUNDING).numpy()
    return matrix


def cpu_seconds(function: Callable[[], object]) -> tuple[object, float]:
    began = time.process_time()
    result = function()
    return result, time.process_time() - began


def main() -> None:
    torch.set_num_threads(1)
    table = Table(
        "model",
        "T",
        "loop, s",
        "verdict and lookahead, s",
        "of the loop",
        "whole report, s",
        "of the loop",
        title="CPU seconds of one thread, float32; the loop in float64",
    )
    results = []
    for name, build, frames, lookahead in CASES:
        torch.manual_seed(0)
        model, x = build().eval(), torch.randn(1, frames, 64)
        audit.model(model, x[:, :8])  # warm up
        _, loop_s = cpu_seconds(lambda model=model, x=x: loop(model, x))
        alone, alone_s = cpu_seconds(
            lambda model=model, x=x: audit.model(model, x, at_most=0, matrix=False)
        )
        whole, whole_s = cpu_seconds(lambda model=model, x=x: audit.model(model, x, at_most=0))
        assert isinstance(alone, audit.Report)
        assert isinstance(whole, audit.Report)
        assert alone.lookahead == whole.lookahead == lookahead
        ratios = alone_s / loop_s, whole_s / loop_s
        row = (name, str(frames), f"{loop_s:.2f}", f"{alone_s:.2f}", f"{ratios[0]:.2f}")
        table.add_row(*row, f"{whole_s:.2f}", f"{ratios[1]:.2f}")
        results.append(
            {
                "model": name,
                "frames": frames,
                "loop_s": round(loop_s, 3),
                "lookahead_s": round(alone_s, 3),
                "whole_s": round(whole_s, 3),
                "lookahead_ratio": round(ratios[0], 3),
                "whole_ratio": round(ratios[1], 3),
            }
        )
    emit(table, results)


if __name__ == "__main__":
    main()
