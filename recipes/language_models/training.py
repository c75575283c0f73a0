"""Train a character model, with its loss on held-out text along the way, exactly resumable.

Every step draws its batch and its dropout from a generator seeded by the seed and the step's
number, so that a run that is stopped and resumed gives the same weights as one that never stopped.

Shapes: `B` rows, `T` symbols, `V` symbols of the text.
"""

from __future__ import annotations

import dataclasses
import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor
from torch.nn import functional as F

from nearfuture import NearfutureError
from recipes.language_models.model import CharacterModel, Kind
from recipes.language_models.task import batch, random_windows, read


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """How a model is trained.

    Attributes:
        steps: batches, at a learning rate that rises over the first 20 and falls to 0 along half a
            cosine.
        rows: windows in a batch.
        frames: symbols that a model reads of each window.
        lr: the highest learning rate (AdamW).
        size: see `CharacterModel`.
        seed: decides the weights at the start and every batch.

    Raises:
        NearfutureError: for no steps.
    """

    steps: int = 600
    rows: int = 16
    frames: int = 128
    lr: float = 6e-3
    size: int = 112
    seed: int = 0

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise NearfutureError(
                f"`steps` must be 1 or more, not {self.steps}",
                code="out_of_range",
                parameter="steps",
            )


@dataclass(frozen=True, kw_only=True)
class Score:
    """How well a model predicts a text.

    Attributes:
        loss: mean -ln p of the targets, in nats a symbol.
        accuracy: the share of targets that are the most probable symbol.
        last_loss: the same mean over the last output of each window alone, which no future follows;
            None for a masked model, which has no target there in most windows.
        deviation: the standard error of `loss`, taking windows of the text as independent.
        targets: how many were counted.
    """

    loss: float
    accuracy: float
    last_loss: float | None
    deviation: float
    targets: int


@dataclass(frozen=True, kw_only=True)
class Point:
    """A point of a learning curve: after `step` steps, in nats a symbol."""

    step: int
    train: float
    dev: float
    accuracy: float
    last_loss: float | None


@dataclass(frozen=True, kw_only=True)
class Trained:
    """A model and how it got there.

    Attributes:
        model: in eval mode.
        curve: its points so far.
        finished: False where it was interrupted.
        cpu_seconds: processor time of the training, validations included, all threads together.
    """

    model: CharacterModel
    curve: tuple[Point, ...]
    finished: bool
    cpu_seconds: float


@torch.inference_mode()
def score(model: CharacterModel, numbers: Tensor, *, frames: int = 128, seed: int = 1) -> Score:
    """Score a model on a text (N,), cut into windows one after another.

    Args:
        model: what is scored.
        numbers: the text, at least `frames` + 1 symbols.
        frames: symbols of a window.
        seed: decides what is erased for a masked model; each window is read four times then.

    Raises:
        NearfutureError: for a text shorter than one window.
    """
    count = (len(numbers) - 1) // frames
    if count < 1:
        raise NearfutureError(
            f"a window has {frames + 1} symbols, but the text only {len(numbers)}",
            parameter="numbers",
        )
    readings = 4 if model.kind == "masked" else 1
    windows = numbers.unfold(0, frames + 1, frames).repeat(readings, 1)
    made = batch(model.kind, windows, torch.Generator().manual_seed(seed))
    model.eval()
    log_probs = torch.cat([model(part) for part in torch.split(read(model, made), 64)])
    counted = made.counted.double()
    losses = -log_probs.gather(2, made.targets[..., None])[..., 0].double() * counted
    right = (log_probs.argmax(dim=2) == made.targets).double() * counted
    total = counted.sum()
    loss = losses.sum() / total
    excess = (losses - loss * counted).sum(dim=1)
    spread = (excess.view(readings, -1).sum(dim=0) ** 2).sum().sqrt() / total
    return Score(
        loss=loss.item(),
        accuracy=(right.sum() / total).item(),
        last_loss=None if model.kind == "masked" else losses[:, -1].mean().item(),
        deviation=spread.item(),
        targets=int(total),
    )


def train(
    kind: Kind,
    symbols: int,
    numbers: Tensor | Callable[[int], Tensor],
    dev: Tensor,
    config: TrainingConfig,
    *,
    checkpoint: Path | None = None,
    progress: Callable[[Point], None] = lambda point: None,
    interrupted: Callable[[], bool] = lambda: False,
) -> Trained:
    """Train one model; go on from its checkpoint where there is one.

    Args:
        kind: which model.
        symbols: V.
        numbers: the text to learn from, (N,); or the text of each step, by its number.
        dev: the text of the validation.
        config: how to train.
        checkpoint: a file, written at each validation and when interrupted.
        progress: called at each validation.
        interrupted: asked after each step; True ends the training there.

    Raises:
        NearfutureError: for a checkpoint of another kind of model or configuration.
    """
    torch.manual_seed(config.seed)
    model = CharacterModel(kind, symbols, size=config.size)
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.lr, betas=(0.9, 0.99))
    run = _Run(kind, symbols, config, model, optimizer)
    if checkpoint is not None and checkpoint.exists():
        run.load(checkpoint)
    for point in run.curve:
        progress(point)
    while run.step < config.steps:
        begun = time.process_time()
        _learn(run, numbers)
        if _validates(run.step, config.steps):
            run.validate(dev)
            progress(run.curve[-1])
        run.cpu_seconds += time.process_time() - begun
        stops = interrupted()
        if checkpoint is not None and (stops or _validates(run.step, config.steps)):
            run.save(checkpoint)
        if stops:
            break
    return Trained(
        model=model.eval(),
        curve=tuple(run.curve),
        finished=run.step == config.steps,
        cpu_seconds=run.cpu_seconds,
    )


def _validates(step: int, steps: int) -> bool:
    """Validate often at the beginning, where the loss falls fast."""
    return step == steps or step in (1, 3, 10, 20) or step % (25 if step <= 200 else 50) == 0


def _lr(step: int, config: TrainingConfig) -> float:
    rising = min(1.0, (step + 1) / 20)
    return config.lr * rising * 0.5 * (1 + math.cos(math.pi * step / config.steps))


def _learn(run: _Run, numbers: Tensor | Callable[[int], Tensor]) -> None:
    config, model = run.config, run.model
    generator = torch.Generator().manual_seed(config.seed * 1_000_003 + run.step)
    known = numbers(run.step) if callable(numbers) else numbers
    windows = random_windows(known, config.rows, config.frames, generator)
    made = batch(run.kind, windows, generator)
    for group in run.optimizer.param_groups:
        group["lr"] = _lr(run.step, config)
    model.train()
    log_probs = model(read(model, made))[made.counted]
    loss = F.nll_loss(log_probs, made.targets[made.counted])
    run.optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    run.optimizer.step()
    run.step += 1
    run.losses.append(loss.item())


class _Run:
    """All that a training consists of, as it is saved."""

    def __init__(
        self,
        kind: Kind,
        symbols: int,
        config: TrainingConfig,
        model: CharacterModel,
        optimizer: torch.optim.AdamW,
    ) -> None:
        self.kind, self.symbols, self.config = kind, symbols, config
        self.model, self.optimizer = model, optimizer
        self.step = 0
        self.cpu_seconds = 0.0
        self.losses: list[float] = []
        self.curve: list[Point] = []

    def validate(self, dev: Tensor) -> None:
        scored = score(self.model, dev, frames=self.config.frames)
        self.curve.append(
            Point(
                step=self.step,
                train=math.fsum(self.losses) / len(self.losses),
                dev=scored.loss,
                accuracy=scored.accuracy,
                last_loss=scored.last_loss,
            )
        )
        self.losses = []

    def save(self, path: Path) -> None:
        tensors = {f"model.{name}": value for name, value in self.model.state_dict().items()}
        for name, parameter in self.model.named_parameters():
            for moment, value in self.optimizer.state[parameter].items():
                tensors[f"optimizer.{moment}.{name}"] = value
        about = {
            **self._identity(),
            "step": self.step,
            "cpu_seconds": self.cpu_seconds,
            "losses": self.losses,
            "curve": [dataclasses.asdict(point) for point in self.curve],
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        written = path.with_suffix(".part")
        save_file(tensors, written, metadata={"training": json.dumps(about)})
        written.replace(path)

    def load(self, path: Path) -> None:
        with safe_open(path, framework="pt") as file:
            about = json.loads(file.metadata()["training"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        mine = self._identity()
        differs = [name for name in mine if about.get(name) != mine[name]]
        if differs:
            raise NearfutureError(
                f"{path} holds a training with {differs[0]} {about.get(differs[0])!r}, not "
                f"{mine[differs[0]]!r}: choose another folder, or delete it to begin again",
                code="conflict",
                parameter="checkpoint",
            )
        self.model.load_state_dict(
            {n.removeprefix("model."): v for n, v in tensors.items() if n.startswith("model.")}
        )
        for name, parameter in self.model.named_parameters():
            moments = ("step", "exp_avg", "exp_avg_sq")
            self.optimizer.state[parameter] = {
                moment: tensors[f"optimizer.{moment}.{name}"] for moment in moments
            }
        self.step, self.cpu_seconds = about["step"], about["cpu_seconds"]
        self.losses = about["losses"]
        self.curve = [Point(**point) for point in about["curve"]]

    def _identity(self) -> dict[str, object]:
        return {
            "kind": self.kind,
            "symbols": self.symbols,
            "config": dataclasses.asdict(self.config),
        }
