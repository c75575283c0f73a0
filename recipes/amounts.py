"""How much a recipe trains and measures: whole numbers, none of them nothing."""

from __future__ import annotations

from dataclasses import dataclass

from nearfuture import NearfutureError


@dataclass(frozen=True, kw_only=True)
class Amounts:
    """A base for options that are counts.

    Raises:
        NearfutureError: for a number below 1.
    """

    def __post_init__(self) -> None:
        for name, number in vars(self).items():
            if number < 1:
                raise NearfutureError(
                    f"`{name}` must be 1 or more, not {number}",
                    code="out_of_range",
                    parameter=name,
                )
