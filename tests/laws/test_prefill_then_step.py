"""Law 3: one long step, then single frames, give what `forward` gives."""

import torch

from nearfuture import laws
from tests.laws.cases import in_both_dtypes_one_of_each
from tests.laws.registry import ALL


@in_both_dtypes_one_of_each
def test_prefill_then_step_equals_forward(name: str, dtype: torch.dtype, examples: int) -> None:
    laws.prefill_then_step(ALL[name], dtype=dtype, examples=examples)
