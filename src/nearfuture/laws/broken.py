"""How a law says that it was broken, and when two numbers count as the same."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["TOLERANCE", "LawBroken", "difference"]

TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5, torch.bfloat16: 5e-2, torch.float16: 5e-3}
"""Relative to max(1, |value|). float64 is the truth: it shows that the rest is rounding."""


class LawBroken(AssertionError):  # noqa: N818 (it reads as what it says)
    """A layer breaks a law; the message says where, with both values.

    Args:
        law: its number and name.
        where: what differs, in the smallest example that was found.

    >>> str(LawBroken("law 1 (any partition)", "row 0, frame 2: 1.0 in chunks, 2.0 whole"))
    'law 1 (any partition): row 0, frame 2: 1.0 in chunks, 2.0 whole'
    """

    def __init__(self, law: str, where: str) -> None:
        super().__init__(f"{law}: {where}")
        self.law = law
        self.where = where


def difference(
    got: Tensor, expected: Tensor, *, names: tuple[str, str], tolerance: float | None = None
) -> str | None:
    """Where two tensors first differ, in words; None where they agree.

    Args:
        got: (T, D) frames, or any tensor.
        expected: what it should be; the shapes count too.
        names: what to call the two, e.g. `("in chunks", "whole")`.
        tolerance: relative to max(1, |value|); the dtype's own unless given, 0 for bit-equal.
            Integers are always compared exactly.

    >>> difference(torch.tensor([[1.0, 2.0]]), torch.tensor([[1.0, 3.0]]), names=("here", "there"))
    'frame 0, feature 1: 2.0 here, 3.0 there (they differ by 1.0e+00; tolerance 1e-05 in float32)'
    """
    if got.shape != expected.shape:
        return f"shape {tuple(got.shape)} {names[0]}, {tuple(expected.shape)} {names[1]}"
    if got.dtype != expected.dtype:
        return f"{got.dtype} {names[0]}, {expected.dtype} {names[1]}"
    if got.is_floating_point():
        limit = TOLERANCE[got.dtype] if tolerance is None else tolerance
        close = torch.isclose(got, expected, rtol=limit, atol=limit, equal_nan=limit == 0)
    else:
        limit = 0.0
        close = got == expected
    if bool(close.all()):
        return None
    index = tuple(int(i) for i in (~close).nonzero()[0])
    a, b = got[index].item(), expected[index].item()
    words = ("frame", "feature") if len(index) == 2 else ("element",) * len(index)
    where = ", ".join(f"{word} {i}" for word, i in zip(words, index, strict=True))
    dtype = str(got.dtype).removeprefix("torch.")
    return (
        f"{where}{': ' if where else ''}{a!r} {names[0]}, {b!r} {names[1]} "
        f"(they differ by {abs(a - b):.1e}; tolerance {limit:.0e} in {dtype})"
    )
