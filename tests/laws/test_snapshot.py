"""Law 6: saved, restored and continued is never interrupted."""

import pytest
import torch

from nearfuture import laws
from tests.laws.registry import ALL

dtypes = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["f64", "f32"])


@dtypes
@pytest.mark.parametrize("name", ALL)
def test_snapshot_round_trip(name: str, dtype: torch.dtype) -> None:
    laws.snapshot_round_trip(ALL[name], dtype=dtype)
