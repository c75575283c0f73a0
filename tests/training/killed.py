"""A training of 20 epochs that tells its steps: `python -m tests.training.killed FOLDER`."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from nearfuture.data import Batch
from nearfuture.model import Recognizer
from nearfuture.training import StepProgress, Trainer, evaluate
from tests.recognizers import PLAIN
from tests.training.settings import scripted, training_options
from tests.training.tones import CONFIG, sentences

EPOCHS, STEPS_PER_EPOCH = 20, 3
CONFIGURATION = CONFIG.replace(dropout=0.2, **PLAIN)
OPTIONS = training_options(
    steps=EPOCHS * STEPS_PER_EPOCH,
    learning_rate=1e-2,
    warmup=6,
    ema=0.9,
    save_every=7,  # neither an epoch nor a validation
    validate_every=10,
)


@dataclass
class Epochs:
    """Nine sentences in three batches, in another order every epoch."""

    def batch(self, step: int, *, rank: int = 0, world_size: int = 1) -> Batch:
        epoch, number = divmod(step, STEPS_PER_EPOCH)
        order = torch.randperm(9, generator=torch.Generator().manual_seed(epoch)).tolist()
        items = sentences(9, letters=4)
        chosen = [items[i] for i in order[number * 3 : number * 3 + 3]]
        return Batch(utterances=chosen[rank::world_size], epoch=epoch)


def trainer(folder: Path) -> Trainer:
    """That of the folder, from wherever it stands."""

    def metrics(model: Recognizer) -> dict[str, float]:
        rates = evaluate(model, sentences(3, seed=9, letters=4))
        return {"cer": sum(errors.rate for _, errors in rates.values())}

    torch.set_num_threads(1)
    torch.manual_seed(0)
    return Trainer(Recognizer(CONFIGURATION), scripted(Epochs(), metrics), OPTIONS, folder)


def run(folder: Path, report: Callable[[StepProgress], None]) -> None:
    trainer(folder).run(report)


if __name__ == "__main__":
    run(Path(sys.argv[1]), lambda progress: print(progress.step, progress.epoch, flush=True))
