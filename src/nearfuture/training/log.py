"""Curves of a training for TensorBoard: `tensorboard --logdir` the folder of its checkpoint."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class Log:
    """Writes figures by step to `folder/tensorboard`; nothing there until the first figure.

    Args:
        folder: that of the checkpoint.
        step: where the training stands; what an interrupted one wrote for later steps is hidden.
    """

    def __init__(self, folder: Path, step: int) -> None:
        self.folder, self.begun = folder / "tensorboard", step
        self.writer: Any = None

    def add(self, step: int, figures: Mapping[str, float]) -> None:
        """Write figures by name; those that are not finite are left out."""
        if self.writer is None:
            from torch.utils.tensorboard import SummaryWriter  # a second of import

            self.writer = SummaryWriter(str(self.folder), purge_step=self.begun + 1)
        for name, value in figures.items():
            if math.isfinite(value):
                self.writer.add_scalar(name, value, step)

    def close(self) -> None:
        """Write what is still held back."""
        if self.writer is not None:
            self.writer.close()
            self.writer = None


@dataclass
class Speed:
    """What has been done since the last record.

    >>> speed = Speed()
    >>> speed.add(seconds=0.5, audio_seconds=60.0)
    >>> speed.add(seconds=1.5, audio_seconds=60.0)
    >>> speed.figures()
    {'speed/seconds per step': 1.0, 'speed/audio seconds per second': 60.0}
    """

    steps: int = 0
    seconds: float = 0.0
    audio_seconds: float = 0.0

    def add(self, *, seconds: float, audio_seconds: float) -> None:
        """Count a step."""
        self.steps += 1
        self.seconds += seconds
        self.audio_seconds += audio_seconds

    def figures(self) -> dict[str, float]:
        """Means over the steps that were counted."""
        return {
            "speed/seconds per step": self.seconds / self.steps,
            "speed/audio seconds per second": self.audio_seconds / self.seconds,
        }
