"""What a state is: how long it shows an input, what its width is not, how gradients fade.

    python -m recipes.state

Functions return numbers; `study` measures, `__main__` repeats it over seeds and draws.
"""

from recipes.state.gradient import GradientNorms, fading, gradient_norms
from recipes.state.perturbation import frames_seen, state_difference
from recipes.state.recaller import CELLS, LearningOptions, Recaller, accuracy, learn
from recipes.state.study import (
    DISTANCES,
    KEPT,
    SPAN,
    WITHIN,
    Gradients,
    Memory,
    Recall,
    gradients,
    memory,
    recall_in_the_middle,
)
from recipes.state.task import RecallBatch, RecallTask, with_another_symbol

__all__ = [
    "CELLS",
    "DISTANCES",
    "KEPT",
    "SPAN",
    "WITHIN",
    "GradientNorms",
    "Gradients",
    "LearningOptions",
    "Memory",
    "Recall",
    "RecallBatch",
    "RecallTask",
    "Recaller",
    "accuracy",
    "fading",
    "frames_seen",
    "gradient_norms",
    "gradients",
    "learn",
    "memory",
    "recall_in_the_middle",
    "state_difference",
    "with_another_symbol",
]
