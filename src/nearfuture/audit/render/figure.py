"""The dependency matrix as part of a page: rectangles, crisp at any size.

Shapes: `T` input frames, `U` output frames.
"""

from __future__ import annotations

import json
import math
from html import escape

import numpy as np
from numpy.typing import NDArray

from nearfuture.audit.render import wording
from nearfuture.audit.render.cells import (
    BEYOND,
    FUTURE,
    PAST,
    allowed,
    cells,
    edge,
    legend,
    pooled,
    ticks,
)
from nearfuture.audit.render.plain import runs
from nearfuture.audit.report import Report

_MAX_RUNS = 50_000
"""A picture of more pieces is drawn coarser, so that a browser can show it."""

_MARKED_FROM = 400
"""With so many frames a single cell is too small to be seen, unless it has a rim."""

_CELL_PX, _SMALLEST_PX, _LARGEST_PX = 36, 120, 640

_CLASSES = {PAST: "past", FUTURE: "future", BEYOND: "beyond"}


def figure(report: Report) -> str:
    """Draw the matrix with its axes, a legend, and a slider that reads single rows.

    Args:
        report: a report with a matrix.
    """
    assert report.matrix is not None
    kinds = cells(report)
    fine = _pieces(kinds) <= _MAX_RUNS
    while _pieces(kinds) > _MAX_RUNS:
        kinds = pooled(kinds, math.ceil(kinds.shape[0] / 2), math.ceil(kinds.shape[1] / 2))
    U, T, stride = report.output_frames, report.input_frames, float(report.stride)
    width, tallest = (min(max(n * _CELL_PX, _SMALLEST_PX), _LARGEST_PX) for n in (T, U))
    # Both axes are time: an output is as high as the inputs that it stands for are wide.
    height = min(width * max(U * stride / T, 0.5), tallest)
    parts = [
        f'<p class="title">output frame, downwards{_each(report, stride)}</p>',
        f'<div class="axes" style="max-width: {width + 80}px">',
        f'<div class="down">{_axis(U, report, stride, "top")}</div>',
        f'<div class="plot" style="aspect-ratio: {width / height:.4f}">',
        _svg(report, kinds),
        "</div>",
        f'<div class="across">{_axis(T, report, 1, "left")}</div>',
        f'<p class="title">input {report.unit}{_each(report, 1)}</p>',
        "</div>",
        _legend(report, kinds),
    ]
    if fine:
        rows = json.dumps([runs(row) for row in report.matrix], separators=(",", ":"))
        parts.append(
            f'<div class="reader" hidden="hidden" style="max-width: {max(width + 80, 320)}px">'
            f'<label for="output">Point at a row, or choose an output:</label>'
            f'<input id="output" type="range" min="0" max="{U - 1}" value="{_farthest(report)}"/>'
            f'<output for="output"></output></div>'
            f'<script type="application/json" id="rows">{rows}</script>'
        )
    else:
        parts.append(
            f'<p class="quiet">Drawn coarser than measured, {kinds.shape[0]} × {kinds.shape[1]} '
            f"cells of {U} × {T}: a cell shows the farthest dependency of those it stands for.</p>"
        )
    return f"<figure>{''.join(parts)}</figure>"


def _farthest(report: Report) -> int:
    """Return the output that looks farthest ahead."""
    assert report.matrix is not None
    last = report.input_frames - 1 - report.matrix[:, ::-1].argmax(axis=1)
    last[~report.matrix.any(axis=1)] = -1
    return int((last - edge(report, 0)).argmax())


def _pieces(kinds: NDArray[np.uint8]) -> int:
    """Count the rectangles of a picture: each begins where another kind or nothing ends."""
    begins = kinds > 0
    begins[:, 1:] &= kinds[:, 1:] != kinds[:, :-1]
    return int(begins.sum())


def _svg(report: Report, kinds: NDArray[np.uint8]) -> str:
    """Draw a rectangle for every run; a unit is a frame of either axis."""
    U, T = report.output_frames, report.input_frames
    tall, wide = U / kinds.shape[0], T / kinds.shape[1]
    look = ' mark"' if max(U, T) >= _MARKED_FROM else '" shape-rendering="crispEdges"'
    limit = allowed(report)
    stairs = "" if limit is None else _stairs(edge(report, limit))
    paths = []
    for kind, name in _CLASSES.items():
        if kind == BEYOND and stairs:  # the limit is seen on every colour, and hides nothing
            paths.append(f'<path class="rim" d="{stairs}"/>')
        drawn = "".join(
            f"M{a * wide:g} {u * tall:g}h{(b - a) * wide:g}v{tall:g}h{(a - b) * wide:g}z"
            for u, row in enumerate(kinds == kind)
            for a, b in runs(row)
        )
        paths += [f'<path class="{name}{look} d="{drawn}"/>'] if drawn else []
    if max(U, T) <= 60:
        columns = "".join(f"M{s} 0v{U}" for s in range(1, T))
        paths.append(
            f'<path class="grid" d="{columns}{"".join(f"M0 {u}h{T}" for u in range(1, U))}"/>'
        )
    if limit != 0:
        paths.append(f'<path class="now" d="{_stairs(edge(report, 0))}"/>')
    if stairs:
        paths.append(f'<path class="limit" d="{stairs}"/>')
    paths.append(f'<rect class="row" width="{T}" height="1" visibility="hidden"/>')
    described = (
        f"{wording.verdict(report)}. A row for each of {U} outputs, a column for each of {T} "
        f"inputs. Lookahead: {wording.lookahead(report)}. Lookback: {wording.lookback(report)}."
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-labelledby="what how" '
        f'viewBox="0 0 {T} {U}" preserveAspectRatio="none">'
        f'<title id="what">Which outputs depend on which inputs</title>'
        f'<desc id="how">{escape(described)}</desc>{"".join(paths)}</svg>'
    )


def _stairs(ends: NDArray[np.int64]) -> str:
    """Draw a line down the right edge of each row."""
    return f"M{ends[0]} 0" + "".join(f"H{end}v1" for end in ends.tolist())


def _axis(frames: int, report: Report, stride: float, side: str) -> str:
    """Label round frame numbers at the middle of their frames, with their times where known."""
    labels = []
    for frame in ticks(frames):
        at_ms = None if report.frame_ms is None else frame * stride * report.frame_ms
        time = "" if at_ms is None else f"<br/>{_time(at_ms)}"
        labels.append((100 * (frame + 0.5) / frames, f"{frame:,}{time}"))
    spans = [f'<span style="{side}: {at:.3f}%">{label}</span>' for at, label in labels]
    if side == "top":  # an invisible copy in the flow makes the column as wide as its labels
        spans += [f"<i>{label}</i>" for _, label in labels]
    return "".join(spans)


def _time(ms: float) -> str:
    return f"{wording.number(ms / 1000)} s" if ms >= 10_000 else f"{wording.number(ms)} ms"


def _each(report: Report, stride: float) -> str:
    if report.frame_ms is None:
        return ""
    return f" (each {wording.number(stride * report.frame_ms)} ms)"


def _legend(report: Report, kinds: NDArray[np.uint8]) -> str:
    limit = allowed(report)
    items = [
        f'<li><b class="{_CLASSES[kind]}"></b>{meaning}</li>'
        for kind, meaning in legend(report).items()
        if (kinds == kind).any()
    ]
    if limit != 0:
        items.append(f'<li><b class="now"></b>end of its own {report.unit}</li>')
    if limit is not None:
        own = "" if limit else f": its own {report.unit}"
        items.append(f'<li><b class="limit"></b>the limit{own}</li>')
    return f'<ul class="legend">{"".join(items)}</ul>'
