"""Law 4: batch mates, row order, partial reset and inactive rows change nothing."""

import torch

from nearfuture import laws
from tests.laws.cases import in_both_dtypes
from tests.laws.registry import ALL


# Matrix products round by the shape of the batch: float32 is held to 1e-6, float64 to 1e-10.
@in_both_dtypes
def test_rows_are_independent(name: str, dtype: torch.dtype, examples: int) -> None:
    laws.rows_are_independent(ALL[name], dtype=dtype, examples=examples)
