"""Peak memory of a training step of a row convolution, by how far it looks: 20 frames and 80.

2560 channels, as in Deep Speech 2's deployed model, and 20 s of 40 ms frames. Beside ours, the row
convolution as it is often written, a window of frames for every output (early versions of
deepspeech.pytorch, https://github.com/SeanNaren/deepspeech.pytorch, MIT), and as a depthwise
`nn.Conv1d` (its later ones). Each runs in a process of its own, and all give the same outputs and
gradients.

    python benchmarks/lookahead_memory.py
"""

import argparse
import json
import resource
import subprocess
import sys
from pathlib import Path

import torch
from _report import emit
from rich.table import Table
from torch import Tensor, nn
from torch.nn import functional as F

from nearfuture.layers import Lookahead

CHANNELS, BATCH, FRAMES = 2560, 2, 500
NEAR, FAR = 20, 80


class Windows(nn.Module):
    """`Σ_j W_j x_{t+j}` over a window (τ + 1) of frames for every output."""

    def __init__(self, tau: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(CHANNELS, tau + 1))

    def forward(self, x: Tensor) -> Tensor:
        padded = F.pad(x, (0, 0, 0, self.weight.shape[1] - 1))
        return (padded.unfold(1, self.weight.shape[1], 1) * self.weight).sum(-1)


class Depthwise(nn.Module):
    def __init__(self, tau: int) -> None:
        super().__init__()
        self.conv = nn.Conv1d(CHANNELS, CHANNELS, tau + 1, groups=CHANNELS, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        padded = F.pad(x.transpose(1, 2), (0, self.conv.kernel_size[0] - 1))
        return self.conv(padded).transpose(1, 2)


class Ours(nn.Module):
    def __init__(self, tau: int) -> None:
        super().__init__()
        self.lookahead = Lookahead(CHANNELS, frames=tau)

    def forward(self, x: Tensor) -> Tensor:
        return self.lookahead(x, torch.full((len(x),), x.shape[1]))[0]


KINDS = {"ours": Ours, "a window for every output": Windows, "nn.Conv1d": Depthwise}


def peak_mib() -> float:
    """The most that this process has held so far."""
    status = Path("/proc/self/status")
    if status.exists():  # on Linux, getrusage starts from what the parent has held
        (line,) = (
            line
            for line in status.read_text(encoding="utf-8").splitlines()
            if line.startswith("VmHWM")
        )
        return int(line.split()[1]) / 2**10
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (2**20 if sys.platform == "darwin" else 2**10)  # macOS counts in bytes


def made(kind: str, tau: int) -> nn.Module:
    """The layer, with weights that depend on τ alone."""
    layer = KINDS[kind](tau)
    (weight,) = layer.parameters()
    values = torch.randn(CHANNELS, tau + 1, generator=torch.Generator().manual_seed(tau))
    weight.data.copy_(values.reshape(weight.shape) / (tau + 1))
    return layer


def step(layer: nn.Module, x: Tensor) -> list[Tensor]:
    y = layer(x)
    y.square().sum().backward()
    (weight,) = layer.parameters()
    assert x.grad is not None
    assert weight.grad is not None
    return [y.detach(), x.grad, weight.grad.flatten()]


def of_step(kind: str, tau: int) -> dict[str, float]:
    torch.set_num_threads(1)
    x = torch.randn(BATCH, FRAMES, CHANNELS).requires_grad_()
    layer = made(kind, tau)
    small = torch.zeros(1, 2, CHANNELS).requires_grad_()
    step(layer, small)  # what is loaded at the first call is no part of it
    before = peak_mib()
    step(layer, x)
    return {"before_mib": before, "step_mib": peak_mib() - before}


def assert_same() -> None:
    for tau in (NEAR, FAR):
        found = []
        for kind in KINDS:
            torch.manual_seed(0)
            x = torch.randn(1, 30, CHANNELS).requires_grad_()
            found.append(step(made(kind, tau), x))
        for theirs in found[1:]:
            for a, b in zip(found[0], theirs, strict=True):
                torch.testing.assert_close(a, b.reshape(a.shape), rtol=1e-4, atol=1e-4)


def in_a_process(kind: str, tau: int) -> dict[str, float]:
    command = [sys.executable, __file__, "--kind", kind, "--tau", str(tau)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    measured: dict[str, float] = json.loads(printed)
    return measured


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", choices=KINDS, help="measure this one, here")
    parser.add_argument("--tau", type=int, default=NEAR)
    options = parser.parse_args()
    if options.kind:
        print(json.dumps(of_step(options.kind, options.tau)))
        return
    assert_same()
    title = f"training step of a lookahead, {CHANNELS} channels, batch {BATCH}, {FRAMES} frames"
    columns = (f"τ = {NEAR}: step", "process", f"τ = {FAR}: step", "process", "ratio")
    table = Table("MiB", *columns, "of processes", title=title)
    results = {}
    for kind in KINDS:
        near, far = (in_a_process(kind, tau) for tau in (NEAR, FAR))
        whole = [sum(measured.values()) for measured in (near, far)]
        ratio, of_processes = far["step_mib"] / near["step_mib"], whole[1] / whole[0]
        table.add_row(
            kind,
            f"{near['step_mib']:.0f}",
            f"{whole[0]:.0f}",
            f"{far['step_mib']:.0f}",
            f"{whole[1]:.0f}",
            f"{ratio:.2f} ×",
            f"{of_processes:.2f} ×",
        )
        results[kind] = {"near": near, "far": far, "ratio": ratio, "of_processes": of_processes}
    emit(table, results)


if __name__ == "__main__":
    main()
