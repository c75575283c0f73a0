"""The suite of all laws."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from nearfuture.laws.field import declared_is_measured
from nearfuture.laws.gradients import gradients_agree
from nearfuture.laws.law import Law
from nearfuture.laws.padding import padding_is_ignored
from nearfuture.laws.partition import any_partition, prefill_then_step
from nearfuture.laws.precision import any_dtype_and_device
from nearfuture.laws.reset import reset_equals_new_stream
from nearfuture.laws.rows import rows_are_independent
from nearfuture.laws.schedule import emission_schedule
from nearfuture.laws.snapshot import snapshot_round_trip
from nearfuture.laws.state import partition_free_state
from nearfuture.laws.stream import LayerOrFactory
from nearfuture.laws.violation import LawBroken

ALL: tuple[Law, ...] = (
    any_partition,
    partition_free_state,
    prefill_then_step,
    rows_are_independent,
    padding_is_ignored,
    snapshot_round_trip,
    emission_schedule,
    declared_is_measured,
    gradients_agree,
    reset_equals_new_stream,
    any_dtype_and_device,
)
"""Laws 1 to 11, in order. The twelfth is that they can fail; the tests of this package prove it
on wrong layers."""


def check(
    layer: LayerOrFactory,
    laws: Sequence[Law] = ALL,
    *,
    seed: int = 0,
    examples: int | None = None,
    dtype: torch.dtype = torch.float64,
) -> None:
    """Test a layer against the laws.

    Args:
        layer: a layer, which is copied, or a function that makes one.
        laws: the laws to test; all eleven by default.
        seed: of weights (where they are made here), inputs and cases; the outcome follows from it.
        examples: cases that each law draws besides its explicit ones; few by default, which takes
            about a second for a small layer.
        dtype: float64 shows errors above 1e-10.

    Raises:
        LawBroken: for the first law that is broken, with the differences that later laws report; a
            difference that several report in the same words is printed once.
        NearfutureError: for anything but a `StreamingLayer` or a function that makes one.

    >>> from nearfuture.layers import GRU, Lookahead, Serial
    >>> check(Serial(GRU(2, 3), Lookahead(3, frames=2)))
    """
    options = {} if examples is None else {"examples": examples}
    broken: list[LawBroken] = []
    for law in laws:
        try:
            law(layer, seed=seed, dtype=dtype, **options)
        except LawBroken as error:
            broken.append(error)
    if broken:
        first = broken[0]
        raise LawBroken(first.law, first.where + _also(broken), first.again) from first


def _also(broken: Sequence[LawBroken]) -> str:
    """Format the differences that the laws after the first report, a line for each."""
    first, *rest = broken
    together: dict[str, list[LawBroken]] = {first.fault: []}
    for error in rest:
        together.setdefault(error.fault, []).append(error)
    lines = []
    for fault, errors in together.items():
        if errors:
            names = [error.law for error in errors]
            laws = names[0] if len(names) == 1 else ", ".join(n.split(" (")[0] for n in names)
            difference = "the same" if fault == first.fault else errors[0].where
            lines.append(f"\n  also {laws}: {difference}")
    return "".join(lines)
