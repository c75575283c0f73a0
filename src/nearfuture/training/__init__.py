"""Training: the loop, its checkpoints, and what came of it."""

from nearfuture.data import Batch, Batches
from nearfuture.training.augmentation import SpecAugment
from nearfuture.training.checkpoint import Checkpoint, load_model
from nearfuture.training.company import gently
from nearfuture.training.distillation import distillation_loss, peak_first_loss
from nearfuture.training.distributed import Group, join
from nearfuture.training.evaluation import evaluate
from nearfuture.training.material import Material
from nearfuture.training.options import TrainingOptions
from nearfuture.training.request import Request
from nearfuture.training.session import Note, Outcome, train
from nearfuture.training.trainer import Progress, Trainer

__all__ = [
    "Batch",
    "Batches",
    "Checkpoint",
    "Group",
    "Material",
    "Note",
    "Outcome",
    "Progress",
    "Request",
    "SpecAugment",
    "Trainer",
    "TrainingOptions",
    "distillation_loss",
    "evaluate",
    "gently",
    "join",
    "load_model",
    "peak_first_loss",
    "train",
]
