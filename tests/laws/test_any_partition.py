"""Law 1: any cut of the input, and `finish`, give what `forward` gives."""

import pytest
import torch

from nearfuture import laws
from tests.laws.registry import ALL

dtypes = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["f64", "f32"])


@dtypes
@pytest.mark.parametrize("name", ALL)
def test_any_partition_equals_forward(name: str, dtype: torch.dtype) -> None:
    laws.any_partition(ALL[name], dtype=dtype)
