"""Law 5: padding changes no valid output, no gradient and no statistic."""

import pytest
import torch

from nearfuture import laws
from tests.laws.registry import ALL

dtypes = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["f64", "f32"])


@dtypes
@pytest.mark.parametrize("name", ALL)
def test_padding_is_nothing(name: str, dtype: torch.dtype) -> None:
    laws.padding_is_nothing(ALL[name], dtype=dtype)
