"""A training step on a ragged batch: rows reversed by their own lengths, beside packed sequences.

Batch 32, T = 200, lengths uniform in [100, 200], bidirectional GRU-256. A step is forward, CTC
loss, backward, clipping, AdamW. Ours and `nn.GRU` between `pack_padded_sequence` and
`pad_packed_sequence` are one network, with one layer and with three: their losses and gradients are
the same in float64, and ours are as exact as theirs in float32. So are ours and theirs in the form
of deepspeech.pytorch (https://github.com/SeanNaren/deepspeech.pytorch, MIT): time first, sorted
rows, packed layer by layer, directions summed, a batch norm after each layer. That norm counts
padding as frames and ours does not, so these two are compared where all rows are full. Subjects
take turns; a ratio is the median over the turns. With one thread time is the processor's, so that a
busy machine is no worse than a quiet one.

    python benchmarks/training_step.py [--threads 1] [--turns 7]
"""

import argparse
import copy
import time
from dataclasses import dataclass

import numpy as np
import torch
from _report import emit
from rich.table import Table
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from nearfuture.layers import GRU, Bidirectional, SequenceBatchNorm, Serial, StreamingLayer

BATCH, FRAMES, FEATURES, HIDDEN, SYMBOLS = 32, 200, 80, 256, 29
FRAMES_A_SYMBOL = 8
MAX_NORM = 5.0
TOLERANCE = 1e-10
"""In float64, of the largest gradient of a tensor."""


@dataclass(frozen=True)
class Batch:
    x: Tensor  # (B, T, D)
    lengths: Tensor  # longest first
    targets: Tensor  # (B, L)


def batch_of(lengths: Tensor) -> Batch:
    inside = torch.arange(FRAMES) < lengths[:, None]
    x = torch.randn(len(lengths), FRAMES, FEATURES) * inside[..., None]
    targets = torch.randint(1, SYMBOLS, (len(lengths), FRAMES // FRAMES_A_SYMBOL))
    return Batch(x, lengths, targets)


class Ours(nn.Module):
    def __init__(self, *layers: StreamingLayer) -> None:
        super().__init__()
        self.layers = Serial(*layers)
        self.head = nn.Linear(self.layers.output_size, SYMBOLS)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        return self.head(self.layers(x, lengths)[0])


class Packed(nn.Module):
    def __init__(self, depth: int) -> None:
        super().__init__()
        self.gru = nn.GRU(FEATURES, HIDDEN, depth, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * HIDDEN, SYMBOLS)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        return self.head(pad_packed_sequence(self.gru(packed)[0], batch_first=True)[0])


class PackedLayerByLayer(nn.Module):
    def __init__(self, depth: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList()
        for size in [FEATURES] + [HIDDEN] * (depth - 1):
            self.layers.append(nn.GRU(size, HIDDEN, bidirectional=True))
            self.layers.append(nn.BatchNorm1d(HIDDEN))
        self.head = nn.Linear(HIDDEN, SYMBOLS)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        x = x.transpose(0, 1)
        for layer in self.layers:
            if isinstance(layer, nn.GRU):
                both, _ = pad_packed_sequence(layer(pack_padded_sequence(x, lengths))[0])
                x = both.unflatten(2, (2, HIDDEN)).sum(2)
            else:
                x = layer(x.flatten(0, 1)).unflatten(0, x.shape[:2])
        return self.head(x).transpose(0, 1)


def plain(depth: int) -> tuple[nn.Module, nn.Module]:
    sizes = [FEATURES] + [2 * HIDDEN] * (depth - 1)
    ours = Ours(*(Bidirectional(GRU(size, HIDDEN)) for size in sizes))
    return ours, with_weights_of(ours, Packed(depth))


def summed(depth: int) -> tuple[nn.Module, nn.Module]:
    layers: list[StreamingLayer] = []
    for size in [FEATURES] + [HIDDEN] * (depth - 1):
        layers += [Bidirectional(GRU(size, HIDDEN), merge="sum"), SequenceBatchNorm(HIDDEN)]
    ours = Ours(*layers)
    return ours, with_weights_of(ours, PackedLayerByLayer(depth))


def with_weights_of(ours: nn.Module, theirs: nn.Module) -> nn.Module:
    """Both list their parameters in one order: layers, directions, torch's names."""
    with torch.no_grad():
        for parameter, source in zip(theirs.parameters(), ours.parameters(), strict=True):
            assert parameter.shape == source.shape
            parameter.copy_(source)
    return theirs


def loss_of(logits: Tensor, batch: Batch) -> Tensor:
    log_probs = F.log_softmax(logits, dim=-1).transpose(0, 1)
    symbols = batch.lengths // FRAMES_A_SYMBOL
    loss = F.ctc_loss(log_probs, batch.targets, batch.lengths, symbols, reduction="sum")
    return loss / len(batch.targets)


def assert_same(ours: nn.Module, theirs: nn.Module, batch: Batch) -> None:
    """One network in float64; and in float32 ours is no further from that than theirs, times 2."""
    true, also_true = (gradients(model, batch, torch.float64) for model in (ours, theirs))
    apart = furthest(also_true, true)
    assert apart <= TOLERANCE, f"float64: {apart:.1e} apart, {TOLERANCE} is allowed"
    rounding = furthest(gradients(theirs, batch, torch.float32), true)
    apart = furthest(gradients(ours, batch, torch.float32), true)
    assert apart <= 2 * rounding, f"float32: {apart:.1e} from float64, theirs {rounding:.1e}"


def gradients(model: nn.Module, batch: Batch, dtype: torch.dtype) -> list[Tensor]:
    """The loss, and its gradients with respect to the input and every parameter."""
    model = copy.deepcopy(model).to(dtype)
    x = batch.x.to(dtype, copy=True).requires_grad_()
    loss = loss_of(model(x, batch.lengths), batch)
    return [loss.detach(), *torch.autograd.grad(loss, [x, *model.parameters()])]


def furthest(found: list[Tensor], true: list[Tensor]) -> float:
    """The largest difference, relative to the largest value of its tensor."""
    return max(float((a - b).abs().max() / b.abs().max()) for a, b in zip(found, true, strict=True))


class Subject:
    """A model, its optimizer, and what its turns took."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
        self.forward_s: list[float] = []
        self.step_s: list[float] = []

    def turn(self, batch: Batch) -> None:
        self.optimizer.zero_grad()
        began = self.clock()
        loss = loss_of(self.model(batch.x, batch.lengths), batch)
        self.forward_s.append(self.clock() - began)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), MAX_NORM)
        self.optimizer.step()
        self.step_s.append(self.clock() - began)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--turns", type=int, default=7)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    lengths = torch.randint(FRAMES // 2, FRAMES + 1, (BATCH,)).sort(descending=True).values
    lengths[0] = FRAMES
    batch, full = batch_of(lengths), batch_of(torch.full((BATCH,), FRAMES))
    padding = 1 - float(lengths.sum()) / (BATCH * FRAMES)

    pairs = {
        "1 layer, nn.GRU packed": plain(1),
        "3 layers, nn.GRU packed": plain(3),
        "3 layers, as deepspeech.pytorch": summed(3),
    }
    for name, pair in pairs.items():
        assert_same(*pair, full if "deepspeech" in name else batch)
    subjects = {name: [Subject(model) for model in pair] for name, pair in pairs.items()}
    for turn in range(options.turns + 1):
        for pair in subjects.values():
            for subject in pair:
                subject.turn(batch)
                if turn == 0:  # warm up
                    subject.forward_s.clear()
                    subject.step_s.clear()

    title = (
        f"bidirectional GRU-{HIDDEN}, batch {BATCH}, T = {FRAMES}, {padding:.0%} padding, float32, "
        f"{options.threads} thread(s)"
    )
    columns = ("ours", "theirs", "theirs / ours")
    table = Table("model and theirs", "ms", *columns, title=title)
    results: dict[str, object] = {
        "threads": options.threads,
        "turns": options.turns,
        "padding": padding,
    }
    for name, (ours, theirs) in subjects.items():
        for what in ("forward", "step"):
            mine, packed = (np.array(getattr(s, f"{what}_s")) for s in (ours, theirs))
            ratio = float(np.median(packed / mine))
            milliseconds = [1000 * float(np.median(took)) for took in (mine, packed)]
            shown = [f"{value:.0f}" for value in milliseconds]
            table.add_row(name if what == "forward" else "", what, *shown, f"{ratio:.2f} ×")
            results[f"{name}, {what}"] = {
                "ours_ms": milliseconds[0],
                "theirs_ms": milliseconds[1],
                "ratio": ratio,
                "ratios": [round(value, 2) for value in (packed / mine).tolist()],
            }
    emit(table, results)


if __name__ == "__main__":
    main()
