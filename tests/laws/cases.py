"""How many cases the laws draw for every layer of the registry, and in which dtypes.

A fault shows in the explicit cases, with few exceptions; the slow tests draw 40 for every layer.
"""

import pytest
import torch

from tests.laws.registry import ALL, COMPOSITIONS

DRAWN = 3
"""In float64, which shows that what differs in float32 is rounding."""

# The explicit cases once more in float32. What is composed rounds as its parts do.
in_both_dtypes = pytest.mark.parametrize(
    ("name", "dtype", "examples"),
    [
        *(pytest.param(name, torch.float64, DRAWN, id=f"{name}-f64") for name in ALL),
        *(
            pytest.param(
                *(name, torch.float32, 0),
                id=f"{name}-f32",
                marks=[pytest.mark.slow] * (name in COMPOSITIONS),
            )
            for name in ALL
        ),
    ],
)
