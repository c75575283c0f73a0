"""Law 2: the state after n inputs does not remember how they were cut."""

import torch

from nearfuture import laws
from tests.laws.cases import in_both_dtypes_one_of_each
from tests.laws.registry import ALL


@in_both_dtypes_one_of_each
def test_state_is_the_same_for_every_cut(name: str, dtype: torch.dtype, examples: int) -> None:
    laws.partition_free_state(ALL[name], dtype=dtype, examples=examples)
