"""Law 1: any cut of the input, and `finish`, give what `forward` gives."""

import torch

from nearfuture import laws
from tests.laws.cases import in_both_dtypes
from tests.laws.registry import ALL


@in_both_dtypes
def test_any_partition_equals_forward(name: str, dtype: torch.dtype, examples: int) -> None:
    laws.any_partition(ALL[name], dtype=dtype, examples=examples)
