"""Options that several commands share."""

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

Flag = Annotated[bool, Parameter(negative="", show_default=False)]
"""A flag without a value and without a negative."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """The model that transcribes, and its latency budget.

    Attributes:
        model: A bundled model, or a bundle's folder or zip file.
        budget_ms: The longest time in ms from the start of a sound to its final text; by default
            the largest that the model has.
    """

    model: str = "digits"
    budget_ms: Annotated[float | None, Parameter(name="--budget")] = None
