"""How many cases the laws draw for every layer of the registry, and in which dtypes.

A fault shows in the explicit cases, with few exceptions; the slow tests draw 40 for every layer.
"""

import pytest
import torch

DRAWN = 3
"""In float64, which shows that what differs in float32 is rounding."""

# The explicit cases once more in float32.
dtypes = pytest.mark.parametrize(
    ("dtype", "examples"), [(torch.float64, DRAWN), (torch.float32, 0)], ids=["f64", "f32"]
)
