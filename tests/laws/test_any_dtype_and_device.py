"""Law 11: float64, float32 and bfloat16, on the CPU and on CUDA where there is one."""

import pytest

from nearfuture import laws
from tests.laws.cases import DRAWN
from tests.laws.registry import ALL


@pytest.mark.parametrize("name", ALL)
def test_any_dtype_and_device(name: str) -> None:
    laws.any_dtype_and_device(ALL[name], examples=DRAWN)
