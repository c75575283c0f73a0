"""The same small training in any number of processes: `python -m tests.training.workers FOLDER …`.

Each process writes what it ended with to `FOLDER/<rank>.safetensors`.
"""

import argparse
import multiprocessing
import os
import socket
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from nearfuture.model import Recognizer
from nearfuture.training import Group, StepProgress, Trainer, init_group
from tests.patience import PATIENCE_S
from tests.recognizers import PLAIN
from tests.training.settings import changed, plain, training_options
from tests.training.tones import CONFIG, Drawn, Listed, noisy, poisoned, sentences

QUIET = CONFIG.replace(dropout=0.0)  # each process draws its own dropout
CONFIGS = {
    "layer norm": QUIET,
    "batch norm": QUIET.replace(**PLAIN),
    "batch norm, both ways": QUIET.replace(**PLAIN).twin(),
}
STEPS = 6
OPTIONS = training_options(steps=STEPS, learning_rate=1e-2, warmup=2, ema=0.9, delay_penalty=0.1)
# One utterance is too few for two processes; what one of them cannot use, none uses.
BATCHES = {
    "three": Drawn(3),
    "one": Drawn(1),
    "noisy": Listed([noisy(one) for one in sentences(5)]),
    "poison": Listed(sentences(3), special={2: poisoned(), 4: poisoned()[1:2]}),
}


def teacher(*, double: bool) -> Recognizer:
    """One that has learnt nothing, the same in every process."""
    torch.manual_seed(17)
    model = Recognizer(QUIET.twin())
    model.features.fit(torch.randn(50, model.features.output_size))
    return model.double() if double else model


def train(
    folder: Path,
    group: Group,
    *,
    config: str,
    batches: str,
    double: bool,
    muon: bool = True,
    taught: bool = False,
) -> list[StepProgress]:
    """Train, and write what this process has in the end."""
    torch.manual_seed(group.rank)  # the first decides all the same
    model = Recognizer(CONFIGS[config])
    model = model.double() if double else model
    changes = {} if muon else {"muon_lr": 0.0}
    changes |= {"distill": 1.0, "shifts": {0: 2}} if taught else {}
    trainer = Trainer(
        model,
        plain(BATCHES[batches]),
        changed(OPTIONS, **changes),
        folder,
        teacher=teacher(double=double) if taught else None,
        group=group,
    )
    seen: list[StepProgress] = []
    trainer.run(seen.append)
    save_file(learnt(trainer), folder / f"{group.rank}.safetensors")
    return seen


def learnt(of: Trainer) -> dict[str, Tensor]:
    """Weights, statistics, their averages and moments."""
    ema = of.checkpoint.ema
    tensors = of.checkpoint.optimizer.state()
    tensors |= {f"ema.{k}": v for k, v in ema.model.state_dict().items()}
    tensors |= of.model.state_dict()
    return {name: value.clone() for name, value in tensors.items()}


CASES: dict[str, dict[str, Any]] = {
    "layer norm": {"config": "layer norm", "batches": "three", "double": True},
    "batch norm": {"config": "batch norm", "batches": "three", "double": True},
    "both ways": {"config": "batch norm, both ways", "batches": "three", "double": True},
    "teacher": {"config": "layer norm", "batches": "three", "double": True, "taught": True},
    "float32": {"config": "batch norm", "batches": "noisy", "double": False},
    "AdamW alone": {"config": "batch norm", "batches": "noisy", "double": False, "muon": False},
    "one utterance": {"config": "batch norm", "batches": "one", "double": True},
    "poison": {"config": "batch norm", "batches": "poison", "double": True},
}

# Muon makes small singular values as large as the others, and with them what is rounding in them.
TOLERANCE = dict.fromkeys(CASES, 1e-10) | {"float32": 1e-3, "AdamW alone": 1e-5}


def every_case(folder: Path, group: Group) -> None:
    """Train all of them, each in its folder, and write what was skipped."""
    for name, case in CASES.items():
        lines = [str(line) for seen in train(folder / name, group, **case) for line in seen.skipped]
        (folder / name / f"{group.rank}.txt").write_text("\n".join(lines), encoding="utf-8")


def work(folder: Path, rank: int, world_size: int, port: int) -> None:
    """One of several processes: all cases, and one of them again as torchrun would start it."""
    torch.set_num_threads(1)
    with init_group(rank=rank, world_size=world_size, rendezvous=folder / "rendezvous") as group:
        every_case(folder, group)
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(world_size)}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    with init_group() as group:
        train(folder / "torchrun", group, **CASES["batch norm"])


def together(folder: Path, world_size: int) -> None:
    """Train in so many processes, and wait until they are done."""
    context = multiprocessing.get_context("spawn")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    workers = [
        context.Process(target=work, args=(folder, rank, world_size, port))
        for rank in range(world_size)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=PATIENCE_S)
    stuck = [worker for worker in workers if worker.is_alive()]
    for worker in stuck:
        worker.kill()
    assert not stuck, "processes wait for each other"
    assert [worker.exitcode for worker in workers] == [0] * world_size


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    torch.set_num_threads(1)
    with init_group() as torchrun_group:
        train(parser.parse_args().folder, torchrun_group, **CASES["batch norm"])
