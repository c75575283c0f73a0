"""The error of a broken law, and the comparison of two tensors."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5, torch.bfloat16: 5e-2, torch.float16: 5e-3}
"""Relative to max(1, |value|). float64 is the truth: it shows that the rest is rounding."""


class LawBroken(AssertionError):  # noqa: N818 (it reads as what it says)
    """A layer breaks a law. The message states where, with both values, and how to reproduce it.

    Args:
        law: its number and name.
        where: the difference, in the smallest case that shows it.
        again: the call that reproduces it.
        fault: the difference without the case; laws that report the same are printed together.

    >>> print(LawBroken("law 1 (any partition)", "row 0, frame 2: 1.0 in chunks, 2.0 whole"))
    law 1 (any partition): row 0, frame 2: 1.0 in chunks, 2.0 whole
    """

    def __init__(self, law: str, where: str, again: str = "", fault: str = "") -> None:
        super().__init__(f"{law}: {where}" + (f"\n  again: {again}" if again else ""))
        self.law = law
        self.where = where
        self.again = again
        self.fault = fault or where


class Violation(Exception):  # noqa: N818 (a law turns it into LawBroken)
    """A difference that breaks a law, without the name of the law and the smallest case."""


def same(
    got: Tensor,
    expected: Tensor,
    *,
    names: tuple[str, str],
    where: str = "",
    words: Sequence[str] = ("frame", "feature"),
    tolerance: float | None = None,
    dtype: torch.dtype | None = None,
) -> None:
    """Raise a `Violation` with the place where two tensors first differ; see `difference`."""
    fault = difference(got, expected, names=names, words=words, tolerance=tolerance, dtype=dtype)
    if fault:
        raise Violation(f"{where}{fault}")


def difference(
    got: Tensor,
    expected: Tensor,
    *,
    names: tuple[str, str],
    words: Sequence[str] = ("frame", "feature"),
    tolerance: float | None = None,
    dtype: torch.dtype | None = None,
) -> str | None:
    """Describe where two tensors first differ; None where they agree.

    Args:
        got: (T, D) frames, or any tensor.
        expected: what it should be; the shapes count too.
        names: what to call the two, e.g. `("in chunks", "whole")`.
        words: what to call the dimensions, where there are as many.
        tolerance: relative to max(1, |value|); that of the dtype by default, 0 for bit-equal.
            Integers are always compared exactly.
        dtype: what was computed in, where the tensors have been cast since.

    >>> difference(torch.tensor([[1.0, 2.0]]), torch.tensor([[1.0, 3.0]]), names=("here", "there"))
    'frame 0, feature 1: 2.0 here, 3.0 there (they differ by 1.0e+00; tolerance 1e-05 in float32)'
    """
    if got.shape != expected.shape:
        return f"shape {tuple(got.shape)} {names[0]}, {tuple(expected.shape)} {names[1]}"
    if got.dtype != expected.dtype:
        return f"{got.dtype} {names[0]}, {expected.dtype} {names[1]}"
    if got.is_floating_point():
        limit = TOLERANCE[got.dtype] if tolerance is None else tolerance
        bound = limit * expected.abs().clamp(min=1.0)
        close = (got == expected) | ((got - expected).abs() <= bound)
        if limit == 0:
            close |= got.isnan() & expected.isnan()
    else:
        close = got == expected
    if bool(close.all()):
        return None
    index = tuple(int(i) for i in (~close).nonzero()[0])
    a, b = got[index].item(), expected[index].item()
    if index and len(words) == len(index):
        where = ", ".join(f"{word} {i}" for word, i in zip(words, index, strict=True)) + ": "
    else:
        where = f"element {index[0] if len(index) == 1 else index}: " if index else ""
    values = f"{where}{a!r} {names[0]}, {b!r} {names[1]}"
    if not got.is_floating_point():
        return values
    there = str(dtype or got.dtype).removeprefix("torch.")
    return f"{values} (they differ by {abs(a - b):.1e}; tolerance {limit:.0e} in {there})"
