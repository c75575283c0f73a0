"""Curves of a training for TensorBoard: `tensorboard --logdir` the folder of its checkpoint."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class TensorBoardLog:
    """Writes metrics by step to `folder/tensorboard`, which is made with the first of them.

    Args:
        folder: The folder of the checkpoint.
        step: The step the training resumes from; what was written for later steps is hidden.
    """

    def __init__(self, folder: Path, step: int) -> None:
        self.folder, self.resumed_from = folder / "tensorboard", step
        self.writer: Any = None

    def add(self, step: int, metrics: Mapping[str, float]) -> None:
        """Write metrics by name; those that are not finite are skipped."""
        if self.writer is None:
            from torch.utils.tensorboard import SummaryWriter  # a second of import

            self.writer = SummaryWriter(str(self.folder), purge_step=self.resumed_from + 1)
        for name, value in metrics.items():
            if math.isfinite(value):
                self.writer.add_scalar(name, value, step)

    def close(self) -> None:
        """Write what is buffered."""
        if self.writer is not None:
            self.writer.close()
            self.writer = None


@dataclass
class Speed:
    """Steps and audio since the last record.

    >>> speed = Speed()
    >>> speed.add(seconds=0.5, audio_seconds=60.0)
    >>> speed.add(seconds=1.5, audio_seconds=60.0)
    >>> speed.metrics()
    {'speed/seconds_per_step': 1.0, 'speed/audio_seconds_per_second': 60.0}
    """

    steps: int = 0
    seconds: float = 0.0
    audio_seconds: float = 0.0

    def add(self, *, seconds: float, audio_seconds: float) -> None:
        """Count a step."""
        self.steps += 1
        self.seconds += seconds
        self.audio_seconds += audio_seconds

    def metrics(self) -> dict[str, float]:
        """Compute means over the steps that were counted."""
        return {
            "speed/seconds_per_step": self.seconds / self.steps,
            "speed/audio_seconds_per_second": self.audio_seconds / self.seconds,
        }
