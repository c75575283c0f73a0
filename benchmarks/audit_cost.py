"""The audit of a two-layer GRU of 256 over 500 frames beside a gradient for every output.

The usual way to measure a dependency matrix is one retained backward pass per output. Same model,
same input, same threads, one run; both matrices are shown. One thread by default: with more, a busy
machine slows each in its own way.

    python benchmarks/audit_cost.py [--threads 1]
"""

import argparse
import time

import numpy as np
import torch
from _report import emit
from rich.table import Table
from torch import Tensor, nn

from nearfuture import audit

FRAMES, FEATURES, HIDDEN = 500, 80, 256
ROWS, COLUMNS = 12, 40


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(FEATURES, HIDDEN, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.gru(x)[0]


def by_gradients(model: nn.Module, x: Tensor) -> np.ndarray:
    x = x.clone().requires_grad_()
    y = model(x)
    direction = torch.randn(HIDDEN)
    matrix = np.zeros((FRAMES, FRAMES), bool)
    for t in range(FRAMES):
        (gradient,) = torch.autograd.grad((y[0, t] * direction).sum(), x, retain_graph=True)
        matrix[t] = (gradient[0] != 0).any(dim=-1).numpy()
    return matrix


def picture(matrix: np.ndarray) -> str:
    """How much of each cell is seen, from outputs (down) to inputs (across)."""
    rows = np.array_split(matrix, ROWS)
    lines = (
        "".join(" ░▒▓█"[round(4 * c.mean())] for c in np.array_split(r, COLUMNS, 1)) for r in rows
    )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=1)
    threads = parser.parse_args().threads
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    model = Encoder().eval()
    x = torch.randn(1, FRAMES, FEATURES)
    audit.lookahead(model, x)  # warm up

    began = time.perf_counter()
    gradients = by_gradients(model, x)
    gradient_s = time.perf_counter() - began
    began = time.perf_counter()
    report = audit.model(model, x)
    audit_s = time.perf_counter() - began
    alone = []
    for _ in range(3):
        began = time.perf_counter()
        ahead = audit.lookahead(model, x)
        alone.append(time.perf_counter() - began)
    lookahead_s = float(np.median(alone))

    assert report.matrix is not None
    causal = np.tri(FRAMES, dtype=bool)
    assert np.array_equal(report.matrix, causal), "the audit's matrix is the lower triangle"
    assert report.lookahead == ahead == 0
    assert not gradients[~causal].any()
    results = {
        "threads": threads,
        "frames": FRAMES,
        "gradients_s": gradient_s,
        "audit_s": audit_s,
        "lookahead_s": lookahead_s,
        "matrix_ratio": gradient_s / audit_s,
        "lookahead_ratio": gradient_s / lookahead_s,
        "pairs": int(causal.sum()),
        "pairs_by_gradients": int(gradients.sum()),
    }
    title = f"T = {FRAMES}, two GRU layers of {HIDDEN}, float32, {threads} thread(s)"
    table = Table(
        "what", "seconds", "ratio", "pairs seen", "outputs down, inputs across", title=title
    )
    seen = f"{int(gradients.sum()):,} of {int(causal.sum()):,}"
    table.add_row("500 gradients", f"{gradient_s:.2f}", "1", seen, picture(gradients))
    table.add_section()
    seen = f"{int(report.matrix.sum()):,} of {int(causal.sum()):,}"
    ratio = f"{results['matrix_ratio']:.1f} ×"
    table.add_row("audit.model, all checks", f"{audit_s:.2f}", ratio, seen, picture(report.matrix))
    table.add_section()
    ratio = f"{results['lookahead_ratio']:.0f} ×"
    table.add_row("audit.lookahead", f"{lookahead_s:.3f}", ratio, "", "")
    emit(table, results)


if __name__ == "__main__":
    main()
