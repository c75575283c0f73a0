"""Law 5: padding changes no valid output, no gradient and no statistic."""

import torch

from nearfuture import laws
from tests.laws.cases import in_both_dtypes
from tests.laws.registry import ALL


@in_both_dtypes
def test_padding_is_nothing(name: str, dtype: torch.dtype, examples: int) -> None:
    laws.padding_is_ignored(ALL[name], dtype=dtype, examples=examples)
