"""Law 5: padding changes no valid output, no gradient and no statistic."""

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
def test_padding_is_nothing(name: str, dtype: torch.dtype, examples: int) -> None:
    laws.padding_is_ignored(ALL[name], dtype=dtype, examples=examples)
