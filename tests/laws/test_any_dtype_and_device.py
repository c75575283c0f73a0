"""Law 11: float64, float32 and bfloat16, on the CPU and on CUDA where there is one."""

from nearfuture import laws
from tests.laws.cases import drawn, one_of_each
from tests.laws.registry import ALL


@one_of_each
def test_any_dtype_and_device(name: str) -> None:
    laws.any_dtype_and_device(ALL[name], examples=drawn(name))
