"""Law 5: padding changes no valid output, no gradient and no statistic."""

import pytest
import torch

from nearfuture import laws
from tests.laws.cases import dtypes
from tests.laws.registry import ALL


@dtypes
@pytest.mark.parametrize("name", ALL)
def test_padding_is_nothing(name: str, dtype: torch.dtype, examples: int) -> None:
    laws.padding_is_ignored(ALL[name], dtype=dtype, examples=examples)
