"""The decorator of a law: its number, its name, and the arguments that all laws share."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Protocol

import torch

from nearfuture.laws.stream import LayerOrFactory
from nearfuture.laws.trial import Trial


class Law(Protocol):
    """A function that raises `LawBroken` where a layer breaks it.

    Args:
        layer: a layer, which is copied, or a function that makes one.
        seed: of weights (where the layer is made here), inputs and cases; the outcome follows from
            it.
        dtype: of weights and inputs; float64 shows that what differs in float32 is rounding.
        options: `examples`, the number of cases to draw, and what else the law's own docstring
            names.

    Raises:
        LawBroken: with the smallest case that shows the difference.
        NearfutureError: for anything but a `StreamingLayer` or a function that makes one.
    """

    __name__: str

    def __call__(
        self,
        layer: LayerOrFactory,
        *,
        seed: int = 0,
        dtype: torch.dtype = torch.float64,
        **options: Any,
    ) -> None:
        """Test a layer against this law."""


def law(number: int, name: str, *, streaming: bool = True) -> Callable[[Callable[..., None]], Law]:
    """Turn a function of a trial and of options into a law.

    Args:
        number: the number of the law.
        name: the name of the law in its messages.
        streaming: whether a layer that refuses to stream is exempt.
    """

    def decorate(check: Callable[..., None]) -> Law:
        @functools.wraps(check)
        def checked(
            layer: LayerOrFactory,
            *,
            seed: int = 0,
            dtype: torch.dtype = torch.float64,
            **options: Any,
        ) -> None:
            title = f"law {number} ({name})"
            trial = Trial(title, checked, layer, seed=seed, dtype=dtype, **options)
            if not (streaming and trial.refuses_to_stream()):
                check(trial, **options)

        shared = inspect.signature(checked, follow_wrapped=False).parameters
        own = list(inspect.signature(check).parameters.values())[1:]
        checked.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [shared["layer"], shared["seed"], shared["dtype"], *own], return_annotation=None
        )
        return checked

    return decorate
