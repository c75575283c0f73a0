"""Law 6: saved, restored and continued is never interrupted."""

import torch

from nearfuture import laws
from tests.laws.cases import in_both_dtypes_one_of_each
from tests.laws.registry import ALL


@in_both_dtypes_one_of_each
def test_snapshot_round_trip(name: str, dtype: torch.dtype, examples: int) -> None:
    laws.snapshot_round_trip(ALL[name], dtype=dtype, examples=examples)
