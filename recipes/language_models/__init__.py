"""Language models four ways: one way, both ways (leaks), masked, and causal attention.

`python -m recipes.language_models` trains all of them; docs/language-models.md shows the outcome.
"""

from recipes.language_models.generation import Filled, fill, generate, next_log_probs
from recipes.language_models.judge import NGram, Quality, quality
from recipes.language_models.model import TITLES, CharacterModel, Kind
from recipes.language_models.task import Batch, audit_labels, batch, random_windows, read
from recipes.language_models.text import Language, Text, words
from recipes.language_models.training import Point, Score, Trained, TrainingConfig, score, train

__all__ = [
    "TITLES",
    "Batch",
    "CharacterModel",
    "Filled",
    "Kind",
    "Language",
    "NGram",
    "Point",
    "Quality",
    "Score",
    "Text",
    "Trained",
    "TrainingConfig",
    "audit_labels",
    "batch",
    "fill",
    "generate",
    "next_log_probs",
    "quality",
    "random_windows",
    "read",
    "score",
    "train",
    "words",
]
