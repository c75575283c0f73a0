"""The dependency matrix drawn with matplotlib, for notebooks and papers.

Shapes: `T` input frames, `U` output frames.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nearfuture.audit.render.cells import (
    BEYOND,
    COLOURS,
    FUTURE,
    NOTHING,
    PAST,
    allowed,
    cells,
    edge,
    legend,
    pooled,
)
from nearfuture.audit.report import Report
from nearfuture.error import MissingDependency, NearfutureError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MAX_CELLS = 400
"""Of an axis: a cell smaller than a pixel would be lost."""

_NOW, _WHITE = "#101418", "#ffffff"


def plot(report: Report, axes: Axes | None = None) -> Axes:
    """Draw the dependency matrix: a row for each output, a column for each input.

    Args:
        report: a report with a matrix.
        axes: where to draw; by default a new figure.

    Returns:
        The axes, which can still be changed.

    Raises:
        NearfutureError: without matplotlib, or without a matrix to draw.
    """
    if report.matrix is None or report.matrix.size == 0:
        raise NearfutureError(
            "this report has no dependency matrix to draw: only the lookahead was measured, or the "
            "model has no outputs",
            parameter="report",
        )
    try:
        from matplotlib import pyplot
        from matplotlib.colors import ListedColormap
        from matplotlib.patches import Patch
        from matplotlib.patheffects import withStroke
    except ModuleNotFoundError as error:
        raise MissingDependency("a plot", error.name, "pip install matplotlib") from error

    U, T = report.output_frames, report.input_frames
    kinds = cells(report)
    if axes is None:
        axes = pyplot.subplots(figsize=(6, 6), layout="constrained")[1]
    palette = ListedColormap([_WHITE, COLOURS[PAST], COLOURS[FUTURE], COLOURS[BEYOND]])
    axes.imshow(
        pooled(kinds, min(U, _MAX_CELLS), min(T, _MAX_CELLS)),
        cmap=palette,
        vmin=NOTHING,
        vmax=BEYOND,
        interpolation="nearest",
        aspect="auto",
        extent=(-0.5, T - 0.5, U - 0.5, -0.5),
    )
    handles: list[object] = [
        Patch(color=COLOURS[kind], label=meaning)
        for kind, meaning in legend(report).items()
        if (kinds == kind).any()
    ]
    limit = allowed(report)
    lines = [(0.0, 0.7, f"end of its own {report.unit}")] if limit != 0 else []
    if limit is not None:
        own = "" if limit else f": its own {report.unit}"
        lines.append((limit, 1.4, f"the limit{own}"))
    rows = np.repeat(np.arange(U + 1), 2)[1:-1] - 0.5
    for ahead, width, label in lines:
        ends = np.repeat(edge(report, ahead), 2) - 0.5
        drawn = axes.plot(ends, rows, color=_NOW, linewidth=width, label=label)
        if ahead == limit:  # seen on every colour
            drawn[0].set_path_effects([withStroke(linewidth=3, foreground=_WHITE)])
        handles += drawn
    axes.set_xlabel(_axis(f"input {report.unit}", report, 1.0))
    axes.set_ylabel(_axis("output frame", report, float(report.stride)))
    axes.legend(handles=handles, loc="best", fontsize="small")
    return axes


def _axis(name: str, report: Report, stride: float) -> str:
    return name if report.frame_ms is None else f"{name} (each {stride * report.frame_ms:g} ms)"
