"""Four figures: what is left in a state, what its width changes, gradients, and what is learnt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib
import numpy as np
import torch
from matplotlib.figure import Figure
from numpy.typing import NDArray

from recipes.state.perturbation import frames_seen
from recipes.state.results import CELLS_SHOWN, NETWORKS, Results
from recipes.state.study import DISTANCES, KEPT, SPAN, WITHIN

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BLUE, _ORANGE, _GREEN, _GREY = "#0072b2", "#d55e00", "#009e73", "#5c6570"
"""Colours that people who see no red or green can distinguish (Okabe and Ito)."""
_INK, _RULE = "#1f2328", "#e4e7eb"


def draw_memory(results: Results, path: Path) -> None:
    """Draw what is left of a change of one input, by the frames since, for each kind of cell."""
    figure, panels = _panels(3, "What is left of a change of one input in the state")
    for axes, cell in zip(panels, CELLS_SHOWN, strict=True):
        measured = next(values for (kind, _), values in results.memories.items() if kind == cell)
        for label, colour, curves in (
            ("not trained", _GREY, [each.untrained for each in measured]),
            ("trained: the symbol to keep", _BLUE, [each.marked for each in measured]),
            ("trained: another symbol", _ORANGE, [each.unmarked for each in measured]),
        ):
            _draw_decades(axes, range(SPAN + 1), curves, colour, label)
        axes.axhline(0.01, color=_INK, linewidth=0.8, linestyle=(0, (2, 3)))
        axes.set_title(cell.upper(), fontsize=10.5, color=_INK)
        axes.set_xlabel("frames since the change", color=_INK)
        axes.set_xlim(0, SPAN)
        axes.set_ylim(1e-8, 1e3)
    panels[0].set_ylabel("share of the first difference", color=_INK)
    panels[0].annotate("1 %", (SPAN, 0.01), xytext=(-2, 3), textcoords="offset points",
                       ha="right", fontsize=8.5, color=_INK)  # fmt: skip
    _finish(figure, panels[0], path)


def draw_width(results: Results, path: Path) -> None:
    """Draw for how many frames a change is seen, by H, before and after learning to recall."""
    figure, (axes,) = _panels(1, "H is the width of the state, not a number of inputs", width=6.2)
    sizes = sorted(h for cell, h in results.memories if cell == "gru")
    axes.plot(sizes, sizes, color=_INK, linewidth=1.0, linestyle=(0, (2, 3)),
              label="if H were a number of inputs")  # fmt: skip
    for label, colour, marker, of in (
        (f"trained to keep a symbol for up to {KEPT} frames", _BLUE, "o", "marked"),
        ("not trained", _GREY, "s", "untrained"),
    ):
        seen = [
            [frames_seen(torch.tensor(getattr(each, of))) for each in results.memories["gru", h]]
            for h in sizes
        ]
        middle = np.array([np.median(each) for each in seen])
        low = middle - [min(each) for each in seen]
        high = [max(each) for each in seen] - middle
        axes.errorbar(sizes, middle, yerr=[low, high], color=colour, marker=marker, markersize=6,
                      linewidth=1.4, capsize=3.5, label=label)  # fmt: skip
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_ylim(1, 160)
    axes.set_yticks([1, 2, 5, 10, 20, 50, 100], ["1", "2", "5", "10", "20", "50", "100"])
    axes.set_yticks([], minor=True)
    axes.set_xticks(sizes, [str(h) for h in sizes])
    axes.set_xticks([], minor=True)
    axes.axhline(SPAN, color=_RULE, linewidth=1.2, zorder=0)
    axes.annotate(f"measured up to {SPAN} frames", (sizes[0], SPAN), xytext=(0, 4),
                  textcoords="offset points", fontsize=8.5, color=_GREY)  # fmt: skip
    axes.set_xlabel("H, values of the state of a GRU", color=_INK)
    axes.set_ylabel("frames until 1 % of a change is left", color=_INK)
    _finish(figure, axes, path)


def draw_gradients(results: Results, path: Path) -> None:
    """Draw how large the gradient of one frame is in every other, for each kind of cell."""
    figure, panels = _panels(3, "The gradient of one frame's output in every input frame")
    distances = np.arange(WITHIN + 1)
    for axes, cell in zip(panels, CELLS_SHOWN, strict=True):
        measured = results.gradients[cell]
        for label, colour, sign, curves in (
            ("forward direction", _BLUE, -1, [each.ahead for each in measured]),
            ("backward direction", _ORANGE, 1, [each.back for each in measured]),
        ):
            _draw_decades(axes, sign * distances, curves, colour, label)
        alone = _middle([each.alone for each in measured])
        axes.plot(-distances, alone, color=_BLUE, alpha=0.3, linewidth=6, zorder=1,
                  label="the forward direction alone")  # fmt: skip
        axes.set_title(cell.upper(), fontsize=10.5, color=_INK)
        axes.set_xlim(-WITHIN, WITHIN)
        axes.set_ylim(1e-18, 10)
        axes.set_xlabel("s − t, in frames", color=_INK)
    panels[0].set_ylabel(r"$\Vert\partial h_t\,/\,\partial x_s\Vert$", color=_INK)
    _finish(figure, panels[0], path)


def draw_recall(results: Results, path: Path) -> None:
    """Draw how often each network is right about a symbol in the middle, by its distance."""
    figure, (axes,) = _panels(1, "A symbol as far from the start as from the end", width=6.2)
    for name, colour, marker in zip(
        NETWORKS, (_BLUE, _ORANGE, _GREEN), ("o", "s", "D"), strict=True
    ):
        shares = np.array(
            [[100 * each.right[k] for k in DISTANCES] for each in results.recalls[name]]
        )
        middle = shares.mean(axis=0)
        spread = [middle - shares.min(axis=0), shares.max(axis=0) - middle]
        axes.errorbar(DISTANCES, middle, yerr=spread, color=colour, marker=marker, markersize=6,
                      linewidth=1.4, elinewidth=1.0, capsize=3, label=name)  # fmt: skip
    axes.axhline(25, color=_INK, linewidth=0.8, linestyle=(0, (2, 3)), label="chance")
    axes.set_ylim(0, 104)
    axes.set_xlim(-0.5, DISTANCES[-1] + 0.5)
    axes.set_xticks(DISTANCES, [str(k) for k in DISTANCES])
    axes.yaxis.set_major_formatter("{x:g} %")
    axes.set_xlabel("frames on either side of the symbol", color=_INK)
    axes.set_ylabel("right answers", color=_INK)
    _finish(figure, axes, path)


def _draw_decades(
    axes: Axes,
    x: Sequence[int] | NDArray[np.int64],
    curves: Sequence[Sequence[float]],
    colour: str,
    label: str,
) -> None:
    """Draw the geometric mean over seeds, and a band from the least to the most."""
    values = np.maximum(np.asarray(curves), 1e-30)
    axes.set_yscale("log")
    axes.plot(x, _middle(curves), color=colour, linewidth=1.6, label=label)
    axes.fill_between(x, values.min(axis=0), values.max(axis=0), color=colour, alpha=0.16,
                      linewidth=0)  # fmt: skip


def _middle(curves: Sequence[Sequence[float]]) -> NDArray[np.float64]:
    logs = np.log10(np.maximum(np.asarray(curves), 1e-30))
    middle: NDArray[np.float64] = 10 ** logs.mean(axis=0)
    return middle


def _panels(count: int, title: str, *, width: float = 9.2) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(width, 3.9), layout="constrained", facecolor="white")
    panels = list(np.atleast_1d(figure.subplots(1, count, sharey=True)))
    figure.suptitle(title, fontsize=11.5, fontweight="bold", color=_INK)
    for axes in panels:
        axes.grid(color=_RULE, linewidth=0.7)
        axes.set_axisbelow(True)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        for side in ("left", "bottom"):
            axes.spines[side].set_color(_GREY)
        axes.tick_params(colors=_INK, labelsize=9)
    return figure, panels


def _finish(figure: Figure, axes: Axes, path: Path) -> None:
    """Put the legend below and write the file, the same bytes for the same measurements."""
    handles, labels = axes.get_legend_handles_labels()
    columns = 3 if len(figure.axes) > 1 else 2
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, fontsize=9,
                  frameon=False, labelcolor=_INK)  # fmt: skip
    with matplotlib.rc_context({"svg.hashsalt": path.stem}):
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


FIGURES: dict[str, Callable[[Results, Path], None]] = {
    "memory": draw_memory,
    "width": draw_width,
    "gradients": draw_gradients,
    "recall": draw_recall,
}
"""Each figure by its name."""
