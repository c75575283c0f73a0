"""The dependency matrix as cells to draw: past, future, beyond the limit.

Shapes: `T` input frames, `U` output frames.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from nearfuture.audit.report import Report, allowed_frames

NOTHING, PAST, FUTURE, BEYOND = range(4)
COLOURS = {PAST: "#3d72b4", FUTURE: "#eda31d", BEYOND: "#c81e3a"}


def allowed(report: Report) -> float | None:
    """Return the lookahead that a report allows, in input frames; None without a limit."""
    if report.at_most is None and (report.at_most_ms is None or report.frame_ms is None):
        return None
    return allowed_frames(report.at_most, report.at_most_ms, report.frame_ms)


def edge(report: Report, ahead: float) -> NDArray[np.int64]:
    """Return (U,): the first input frame more than `ahead` after each output's own frame.

    Frames that are known beforehand never are.
    """
    ends = np.clip(report.own_frames() + ahead + 1, report.observed, report.input_frames)
    return np.asarray(ends, np.int64)


def cells(report: Report) -> NDArray[np.uint8]:
    """Return (U, T): `NOTHING`, `PAST` (the own frame included), `FUTURE` or `BEYOND` the limit."""
    assert report.matrix is not None
    frames = np.arange(report.input_frames)
    kinds = np.where(frames >= edge(report, 0)[:, None], FUTURE, PAST)
    limit = allowed(report)
    if limit is not None:
        kinds[frames >= edge(report, limit)[:, None]] = BEYOND
    return np.where(report.matrix, kinds, NOTHING).astype(np.uint8)


def legend(report: Report) -> dict[int, str]:
    """Return what each kind of cell means."""
    known = ", or known beforehand" if report.observed else ""
    limited = allowed(report) is not None
    return {
        PAST: f"depends on its own {report.unit} and before{known}",
        FUTURE: "looks ahead, as far as allowed" if limited else "looks ahead",
        BEYOND: "looks ahead, too far",
    }


def pooled(values: NDArray[np.uint8], outputs: int, inputs: int) -> NDArray[np.uint8]:
    """Return (outputs, inputs): coarser cells, each the gravest of those it stands for.

    >>> pooled(np.array([[0, 1, 0, 0], [0, 0, 0, 3]], np.uint8), 1, 2)
    array([[1, 3]], dtype=uint8)
    """
    for axis, count in enumerate((outputs, inputs)):
        starts = np.arange(count) * values.shape[axis] // count
        values = np.maximum.reduceat(values, starts, axis=axis)
    return values


def ticks(frames: int, count: int = 5) -> list[int]:
    """Return round frame numbers for an axis.

    >>> ticks(200), ticks(3), ticks(1)
    ([0, 50, 100, 150], [0, 1, 2], [0])
    """
    rough = max(frames / count, 1)
    power = 10 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    return list(range(0, frames, step))
