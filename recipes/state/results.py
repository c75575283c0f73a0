"""What has been measured, kept in a file after each unit, so that an interrupted study goes on."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from nearfuture.budget import Cell
from recipes.report import about
from recipes.state.recaller import LearningOptions
from recipes.state.study import (
    Gradients,
    Memory,
    Recall,
    gradients,
    memory,
    recall_in_the_middle,
)

CELLS_SHOWN: tuple[Cell, ...] = ("rnn", "gru", "lstm")
NETWORKS: dict[str, tuple[Cell, bool]] = {
    "RNN": ("rnn", False),
    "bidirectional RNN": ("rnn", True),
    "GRU": ("gru", False),
}


@dataclass(frozen=True, kw_only=True)
class StudyOptions:
    """What is measured.

    Args:
        seeds: how often each training and each drawing of weights is repeated.
        hidden_size: H, but where it is varied.
        widths: the H of the GRUs that are compared.
        learning: how they learn to keep the first symbol.
        recall_learning: how they learn to recall one in the middle, at a lower rate.
    """

    seeds: int = 3
    hidden_size: int = 32
    widths: tuple[int, ...] = (4, 32, 128)
    learning: LearningOptions = field(default_factory=LearningOptions)
    recall_learning: LearningOptions = field(default_factory=lambda: LearningOptions(lr=3e-3))


@dataclass(frozen=True, kw_only=True)
class Results:
    """What was measured, one entry a seed.

    Attributes:
        memories: by cell and H.
        gradients: by cell.
        recalls: by the name of the network, as in `NETWORKS`.
    """

    memories: dict[tuple[Cell, int], list[Memory]]
    gradients: dict[Cell, list[Gradients]]
    recalls: dict[str, list[Recall]]


_Unit = Callable[[], Memory | Gradients | Recall]


def units(options: StudyOptions) -> dict[str, _Unit]:
    """Name everything that is measured, and what measures it."""
    return dict(_units(options))


def _units(options: StudyOptions) -> Iterator[tuple[str, _Unit]]:
    hidden, learning = options.hidden_size, options.learning
    for seed in range(options.seeds):
        for cell in CELLS_SHOWN:
            yield f"gradients {cell} {seed}", partial(gradients, cell, hidden, seed)
            yield f"memory {cell} {hidden} {seed}", partial(memory, cell, hidden, seed, learning)
        for width in options.widths:
            if width != hidden:
                yield f"memory gru {width} {seed}", partial(memory, "gru", width, seed, learning)
        for name, (cell, both) in NETWORKS.items():
            measured = partial(
                recall_in_the_middle,
                cell,
                hidden,
                seed,
                options.recall_learning,
                bidirectional=both,
            )
            yield f"recall {name} {seed}", measured


class Store:
    """A file of measurements; those of other options are not taken up, but for other seeds.

    Args:
        path: where it is, or will be.
        options: what is measured.
    """

    def __init__(self, path: Path, options: StudyOptions) -> None:
        self._path = path
        self._options = options
        wanted = json.loads(json.dumps(dataclasses.asdict(options)))
        self.about: dict[str, Any] = {**about(), "options": wanted}
        self._values: dict[str, dict[str, Any]] = {}
        self.seconds = 0.0
        if path.exists():
            kept = json.loads(path.read_text(encoding="utf-8"))
            if {**kept["about"]["options"], "seeds": options.seeds} == wanted:
                self.about, self._values = kept["about"], kept["values"]
                self.seconds = kept["seconds"]

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def add(self, name: str, value: Memory | Gradients | Recall, seconds: float) -> None:
        """Keep one measurement, and the processor's time that it took."""
        self._values[name] = json.loads(json.dumps(dataclasses.asdict(value)))
        self.seconds += seconds
        self._path.parent.mkdir(parents=True, exist_ok=True)
        part = self._path.with_suffix(".part")
        content = {"about": self.about, "seconds": self.seconds, "values": self._values}
        part.write_text(json.dumps(content), encoding="utf-8")
        part.replace(self._path)

    def results(self) -> Results:
        """Sort everything that has been measured by what it is about."""
        hidden, seeds = self._options.hidden_size, range(self._options.seeds)
        sizes = [(cell, hidden) for cell in CELLS_SHOWN]
        sizes += [("gru", width) for width in self._options.widths if width != hidden]
        value = self._values
        return Results(
            memories={
                (cell, h): [Memory(**value[f"memory {cell} {h} {seed}"]) for seed in seeds]
                for cell, h in sizes
            },
            gradients={
                cell: [Gradients(**value[f"gradients {cell} {seed}"]) for seed in seeds]
                for cell in CELLS_SHOWN
            },
            recalls={
                name: [_recall(value[f"recall {name} {seed}"]) for seed in seeds]
                for name in NETWORKS
            },
        )


def _recall(value: dict[str, Any]) -> Recall:
    """JSON's keys are strings."""
    return Recall(right={int(k): share for k, share in value["right"].items()})
