"""Training: the loop, its checkpoints, and what came of it."""

from nearfuture.training.checkpoint import Checkpoint, load_model
from nearfuture.training.evaluation import evaluate
from nearfuture.training.trainer import Batches, Progress, Trainer, TrainingOptions

__all__ = [
    "Batches",
    "Checkpoint",
    "Progress",
    "Trainer",
    "TrainingOptions",
    "evaluate",
    "load_model",
]
