"""The tables of the study, for a terminal and for the page, and the same numbers as data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from rich.table import Table

from recipes.report import mean_over_seeds
from recipes.state.gradient import fading
from recipes.state.perturbation import frames_seen
from recipes.state.results import CELLS_SHOWN, NETWORKS, Results
from recipes.state.study import DISTANCES, KEPT, SPAN, Memory

_NEAR, _FAR = 10, 40
"""The distances between which the fading of a gradient is read."""


def memory_table(results: Results) -> Table:
    """For how many frames 1 % of a change is seen, in each kind of cell."""
    table = Table(
        "cell", "H", "not trained", "trained: the symbol to keep", "trained: another symbol",
        f"right answers, up to {KEPT} frames", f"{SPAN} frames",
    )  # fmt: skip
    for (cell, hidden), measured in sorted(results.memories.items(), key=_order):
        table.add_row(
            cell.upper(),
            str(hidden),
            *(_frames(_seen(measured, of)) for of in ("untrained", "marked", "unmarked")),
            _percent([each.recall for each in measured]),
            _percent([each.recall_far for each in measured]),
        )
    return table


def gradient_table(results: Results) -> Table:
    """By what factor a gradient shrinks in every frame, in each direction."""
    table = Table("cell", "alone", "forward, beside a backward direction", "backward")
    for cell, measured in results.gradients.items():
        factors = (
            [_fading(getattr(each, of)) for each in measured] for of in ("alone", "ahead", "back")
        )
        table.add_row(cell.upper(), *(f"{mean:.3f} ± {half:.3f}" for mean, half in
                                      map(mean_over_seeds, factors)))  # fmt: skip
    return table


def recall_table(results: Results) -> Table:
    """How often a symbol in the middle is recalled."""
    table = Table("frames on either side", *(str(k) for k in DISTANCES))
    for name in NETWORKS:
        shares = [[each.right[k] for each in results.recalls[name]] for k in DISTANCES]
        table.add_row(name, *map(_percent, shares))
    return table


TABLES: dict[str, Callable[[Results], Table]] = {
    "memory": memory_table,
    "gradients": gradient_table,
    "recall": recall_table,
}
"""Each table by its name."""


def summary(results: Results) -> dict[str, Any]:
    """The numbers of the tables, by seed."""
    memories, fadings = ("untrained", "marked", "unmarked"), ("alone", "ahead", "back")
    return {
        "frames_seen": {
            f"{cell} {hidden}": {of: _seen(measured, of) for of in memories}
            for (cell, hidden), measured in results.memories.items()
        },
        "fading": {
            cell: {of: [_fading(getattr(each, of)) for each in measured] for of in fadings}
            for cell, measured in results.gradients.items()
        },
        "recall": {name: [each.right for each in found] for name, found in results.recalls.items()},
    }


def _order(entry: tuple[tuple[str, int], Any]) -> tuple[int, int]:
    (cell, hidden), _ = entry
    return [*CELLS_SHOWN].index(cell), hidden  # type: ignore[arg-type]


def _seen(measured: Sequence[Memory], of: str) -> list[int]:
    return [frames_seen(torch.tensor(getattr(each, of))) for each in measured]


def _fading(curve: Sequence[float]) -> float:
    return fading(torch.tensor(curve, dtype=torch.float64), _NEAR, _FAR)


def _frames(seen: Sequence[int]) -> str:
    """The median over seeds, and the least and the most."""

    def written(frames: float) -> str:
        return f"over {SPAN}" if frames >= SPAN else f"{frames:g}"

    low, middle, high = min(seen), float(np.median(seen)), max(seen)
    if low == high:
        return written(middle)
    return f"{written(middle)} ({written(low)} to {written(high)})"


def _percent(shares: Sequence[float]) -> str:
    mean, half = mean_over_seeds([100 * share for share in shares])
    return f"{mean:.0f} ± {half:.0f} %"
