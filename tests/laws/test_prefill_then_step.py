"""Law 3: one long step, then single frames, give what `forward` gives."""

import pytest
import torch

from nearfuture import laws
from tests.laws.registry import ALL

# Two cases drawn in float32: that only rounding differs is what float64 shows.
dtypes = pytest.mark.parametrize(
    ("dtype", "examples"), [(torch.float64, laws.EXAMPLES), (torch.float32, 2)], ids=["f64", "f32"]
)


@dtypes
@pytest.mark.parametrize("name", ALL)
def test_prefill_then_step_equals_forward(name: str, dtype: torch.dtype, examples: int) -> None:
    laws.prefill_then_step(ALL[name], dtype=dtype, examples=examples)
