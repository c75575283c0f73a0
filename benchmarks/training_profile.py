# ruff: noqa: E402  (waiting threads sleep only where that is set before torch is loaded)
"""Where the time of a training step goes: a batch of 16 recordings of 4 s, model by model.

    python benchmarks/training_profile.py [--presets tiny,base,small] [--threads 1,2] [--turns 7]

Data is what varies a recording (speed, room, noise); a thread does it while the step before is
computed. Heads are lookahead, output and dropout; the optimiser is clipping, Muon, AdamW and the
running average. The last column is what `torch.optim.Muon`, which always computes in bfloat16,
takes for the same matrices, turn by turn in the same run. Times are the processor's, of all threads
together, so that a busy machine is no worse than a quiet one; medians over the turns.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

from nearfuture.cli.train import let_idle_threads_sleep

let_idle_threads_sleep()  # before torch is loaded

import numpy as np
import torch
from _report import emit
from rich.table import Table
from torch import nn

from nearfuture.budget import PRESETS
from nearfuture.data import Augmentation
from nearfuture.model import Recognizer, ctc_loss
from nearfuture.training import OptimizerOptions
from nearfuture.training.ema import EMA
from nearfuture.training.optimizer import Optimizer

ROWS, SECONDS, SYMBOLS_A_ROW = 16, 4, 40
PARTS = ("data", "features", "encoder", "heads", "loss", "backward", "optimiser")
IN_BFLOAT16 = "Muon in bfloat16"


class Subject:
    """A model in training, and what the parts of its steps took."""

    def __init__(self, preset: Any, threads: int) -> None:
        torch.manual_seed(0)
        rng = np.random.default_rng(0)
        self.threads = threads
        self.model = Recognizer(PRESETS[preset]()).train()
        config = self.model.config
        self.recordings = 0.05 * rng.standard_normal(
            (ROWS, SECONDS * config.features.rate), np.float32
        )
        self.lengths = torch.full((ROWS,), SECONDS * config.features.rate)
        self.targets = rng.integers(1, len(config.symbols), (ROWS, SYMBOLS_A_ROW)).tolist()
        self.optimizer = Optimizer(self.model, OptimizerOptions())
        self.ema = EMA(self.model, 0.999)
        self.matrices = [p for p in self.model.encoder.parameters() if p.ndim == 2]
        self.theirs = torch.optim.Muon(self.matrices, lr=0.0, weight_decay=0.0)
        self.took: dict[str, list[float]] = {part: [] for part in (*PARTS, IN_BFLOAT16)}

    def timed(self, part: str, do: Callable[[], Any]) -> Any:
        began = time.process_time()
        done = do()
        self.took[part].append(time.process_time() - began)
        return done

    def turn(self, number: int) -> None:
        torch.set_num_threads(self.threads)
        rate, augmentation = self.model.config.features.rate, Augmentation()
        self.timed(
            "data",
            lambda: [
                augmentation.apply(one, rate, np.random.default_rng([number, row]))
                for row, one in enumerate(self.recordings)
            ],
        )
        pcm = torch.from_numpy(self.recordings)[..., None]
        with torch.no_grad():
            features = self.timed("features", lambda: self.model.features(pcm, self.lengths))
        self.model.zero_grad(set_to_none=True)
        x, counts = self.timed("encoder", lambda: self.model.encoder(*features))
        heads = self.timed("heads", lambda: self.heads(x, counts))
        loss = self.timed("loss", lambda: self.loss(heads, counts))
        self.timed("backward", loss.backward)
        self.timed("optimiser", self.step)
        self.timed(IN_BFLOAT16, self.theirs.step)

    def heads(self, x: torch.Tensor, counts: torch.Tensor) -> list[torch.Tensor]:
        read = self.model.lookahead.all(x, counts)
        return [self.model.output(one, counts)[0] for one in read]

    def loss(self, heads: list[torch.Tensor], counts: torch.Tensor) -> torch.Tensor:
        return torch.stack([ctc_loss(head, counts, self.targets).loss for head in heads]).mean()

    def step(self) -> None:
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step(1.0)
        self.ema.update()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--presets", default="tiny,base,small")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--turns", type=int, default=7)
    options = parser.parse_args()
    subjects = {
        (preset, int(threads)): Subject(preset, int(threads))
        for preset in options.presets.split(",")
        for threads in options.threads.split(",")
    }
    for turn in range(options.turns + 1):
        for subject in subjects.values():
            subject.turn(turn)
            if turn == 0:  # warm up
                for took in subject.took.values():
                    took.clear()
    title = f"ms of a training step, {ROWS} × {SECONDS} s, all threads together"
    table = Table("preset", "threads", *PARTS, "step", IN_BFLOAT16, title=title)
    results = []
    for (preset, threads), subject in subjects.items():
        ms = {part: 1000 * float(np.median(took)) for part, took in subject.took.items()}
        step = sum(ms[part] for part in PARTS)
        shown = [f"{value:.0f}" for value in (*(ms[part] for part in PARTS), step, ms[IN_BFLOAT16])]
        table.add_row(preset, str(threads), *shown)
        results.append({"preset": preset, "threads": threads, "step": step, **ms})
    emit(table, results)


if __name__ == "__main__":
    main()
