"""Training: the loop, its options and checkpoints, and its results.

Names are imported when they are first used, so that the command line knows the options without
loading torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nearfuture.training.architecture import architectures
    from nearfuture.training.bundle import export_best
    from nearfuture.training.checkpoint import Checkpoint, load_model
    from nearfuture.training.data import TrainingData, read_training_data
    from nearfuture.training.distillation import distillation_loss, peak_first_loss
    from nearfuture.training.distributed import Group, init_group
    from nearfuture.training.options import (
        ArchitectureOptions,
        DataOptions,
        DistillationOptions,
        HardwareOptions,
        OptimizerOptions,
        ScheduleOptions,
        SpecAugmentOptions,
        TrainingOptions,
    )
    from nearfuture.training.progress import ProgressEvent, ProgressReporter, StepProgress
    from nearfuture.training.run import TrainingResult, train
    from nearfuture.training.trainer import Trainer
    from nearfuture.training.validation import evaluate
    from nearfuture.training.worker_group import graceful_interrupt

_FILES = {
    "architecture": ("architectures",),
    "bundle": ("export_best",),
    "checkpoint": ("Checkpoint", "load_model"),
    "data": ("TrainingData", "read_training_data"),
    "distillation": ("distillation_loss", "peak_first_loss"),
    "distributed": ("Group", "init_group"),
    "options": (
        "DataOptions",
        "DistillationOptions",
        "HardwareOptions",
        "ArchitectureOptions",
        "OptimizerOptions",
        "ScheduleOptions",
        "SpecAugmentOptions",
        "TrainingOptions",
    ),
    "progress": ("ProgressEvent", "ProgressReporter", "StepProgress"),
    "run": ("TrainingResult", "train"),
    "trainer": ("Trainer",),
    "validation": ("evaluate",),
    "worker_group": ("graceful_interrupt",),
}
_HOMES = {name: f"{__name__}.{file}" for file, names in _FILES.items() for name in names}

__all__ = [
    "ArchitectureOptions",
    "Checkpoint",
    "DataOptions",
    "DistillationOptions",
    "Group",
    "HardwareOptions",
    "OptimizerOptions",
    "ProgressEvent",
    "ProgressReporter",
    "ScheduleOptions",
    "SpecAugmentOptions",
    "StepProgress",
    "Trainer",
    "TrainingData",
    "TrainingOptions",
    "TrainingResult",
    "architectures",
    "distillation_loss",
    "evaluate",
    "export_best",
    "graceful_interrupt",
    "init_group",
    "load_model",
    "peak_first_loss",
    "read_training_data",
    "train",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
