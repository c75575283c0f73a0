"""The front page: the three shapes of the lab, measured when it opens."""

from __future__ import annotations

from typing import Annotated, Any

from nearfuture.lab.dependency import examine
from nearfuture.lab.endpoint import Between
from nearfuture.lab.page import Page
from nearfuture.lab.pages.who_looks_at_whom import FRAME_MS, Family, stack_of

FRAMES = 12
FAMILIES: tuple[Family, ...] = ("unidirectional", "row-convolution", "bidirectional")


def shapes(tau: Annotated[int, Between(0, 6)] = 3) -> dict[str, Any]:
    """Measure one layer of each family: what it sees, and when its first output exists."""
    found = {family: examine(stack_of(family, tau, 1), FRAMES) for family in FAMILIES}
    return {
        "frames": FRAMES,
        "frame_ms": FRAME_MS,
        "shapes": [
            {
                "family": family,
                "measured": each.measured,
                "first": next(n for n, count in enumerate(each.emitted(FRAMES)) if count > 0),
            }
            for family, each in found.items()
        ],
    }


PAGE = Page(name="front", endpoints={"shapes": shapes}, module=__name__)
