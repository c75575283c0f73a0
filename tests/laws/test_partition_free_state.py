"""Law 2: the state after n inputs does not remember how they were cut."""

import pytest
import torch

from nearfuture import laws
from tests.laws.registry import ALL

# Two cases drawn in float32: that only rounding differs is what float64 shows.
dtypes = pytest.mark.parametrize(
    ("dtype", "examples"), [(torch.float64, laws.EXAMPLES), (torch.float32, 2)], ids=["f64", "f32"]
)


@dtypes
@pytest.mark.parametrize("name", ALL)
def test_state_is_the_same_for_every_cut(name: str, dtype: torch.dtype, examples: int) -> None:
    laws.partition_free_state(ALL[name], dtype=dtype, examples=examples)
