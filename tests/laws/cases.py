"""How many cases the laws draw for the layers of the registry, and in which dtypes.

A fault shows in the explicit cases, with few exceptions; the slow tests draw 40 for every layer.
"""

from collections.abc import Sequence
from typing import Any

import pytest
import torch

from nearfuture import laws
from nearfuture.laws.stream import LayerOrFactory
from tests.laws.registry import ALL

DRAWN = 3
"""In float64, which shows that what differs in float32 is rounding."""

ONE_OF_EACH = (
    "rnn clipped batch norm",
    "gru",
    "lstm",
    "lookahead 3",
    "lookahead of several at 2",
    "convolution dilated stride",
    "convolution complete stride 3",
    "convolution 2d strides",
    "stack of 2",
    "attention chunked ahead",
    "attention of dynamic chunks",
    "layer norm",
    "rms norm",
    "batch norm",
    "cumulative norm",
    "linear",
    "residual two lookaheads",
    "complete then padded",
    "transformer",
    "conformer",
    "bidirectional sum shared",
    "attention causal",
)
"""One of each class of layers: all laws, in cases that are drawn too, and in float32. The other
options of a class keep the laws that they could break by themselves, in the explicit cases."""


def drawn(name: str) -> int:
    """How many cases a quick test draws for a layer."""
    return DRAWN if name in ONE_OF_EACH else 0


def obey_in_explicit_cases(
    layer: LayerOrFactory, judges: Sequence[laws.Law] = laws.ALL, **options: Any
) -> None:
    """`laws.check`, without the cases that are drawn."""
    laws.check(
        layer,
        [law for law in judges if law is not laws.declared_is_measured],
        examples=0,
        **options,
    )
    if laws.declared_is_measured in judges:
        laws.declared_is_measured(layer, examples=1, **options)  # initialisations, not cases


def _slow_unless_one_of_each(name: str) -> list[pytest.MarkDecorator]:
    return [] if name in ONE_OF_EACH else [pytest.mark.slow]


_FLOAT32 = [pytest.param(name, torch.float32, 0, id=f"{name}-f32") for name in ONE_OF_EACH]

# The explicit cases once more in float32. What is composed rounds as its parts do.
in_both_dtypes = pytest.mark.parametrize(
    ("name", "dtype", "examples"),
    [
        *(pytest.param(name, torch.float64, drawn(name), id=f"{name}-f64") for name in ALL),
        *_FLOAT32,
    ],
)
in_both_dtypes_one_of_each = pytest.mark.parametrize(
    ("name", "dtype", "examples"),
    [
        *(
            pytest.param(
                *(name, torch.float64, drawn(name)),
                id=f"{name}-f64",
                marks=_slow_unless_one_of_each(name),
            )
            for name in ALL
        ),
        *_FLOAT32,
    ],
)
one_of_each = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=_slow_unless_one_of_each(name)) for name in ALL]
)
