"""Error against latency: what each millisecond of future buys, and how far the twin is."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from nearfuture.error import NearfutureError
from nearfuture.evaluation.bootstrap import Interval
from nearfuture.evaluation.evaluation import Evaluation
from nearfuture.evaluation.summary import By, HeadFigures, Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Measure = Literal["cer", "wer"]

DEEP_SPEECH_2 = (760.0, 1.05)
"""Lookahead in ms, and CER relative to its bidirectional model: 6.10 against 5.81 (§3.7)."""

# Told apart by those who see no red and green, too (Okabe and Ito).
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
_ALONE = "#b35000"
"""Of the twin where there is one evaluation; among several it has the colour of its model."""

_INK, _GREY, _RULE = "#1f2328", "#5c6570", "#e4e7eb"
_ASIDE_MS = 10.0
_LABEL = 0.09
"""Width of a label beside a point, of the largest latency; points closer than that go without."""
_DASHES = (0, (6, 3))
_NOTHING_READ = 90.0
"""In %; a relative difference to a twin that is no better says nothing."""

_STREAMING, _TWIN = "streaming", "bidirectional twin"
_PUBLISHED = "Deep Speech 2's published +5 % at 760 ms of lookahead"


def plot_error_against_latency(
    evaluations: Mapping[str, Evaluation],
    path: Path,
    *,
    measure: Measure = "cer",
    by: By = "utterance",
) -> None:
    """Draw the error rate of every head against its worst-case algorithmic latency, as PNG or SVG.

    Bars are 95 % intervals; the twin is a line with its band. Deep Speech 2's published point is
    drawn relative to the (first) twin, at 1.05 × its error and 760 ms, and labelled as what it is:
    not measured here, and its 760 ms are the lookahead alone; not beside a twin that reads next to
    nothing. Several evaluations stand a few ms
    beside each other, so that their bars can be told apart.

    Args:
        evaluations: by the name to show.
        path: ends in .png or .svg.
        measure: character or word errors.
        by: what the intervals are drawn over.

    Raises:
        NearfutureError: without matplotlib, without an evaluation, for another kind of file, or
            where the file cannot be written.
    """
    if path.suffix.lower() not in (".png", ".svg"):
        raise NearfutureError(f"a plot is a .png or .svg file, not {path.name}")
    if not evaluations:
        raise NearfutureError("there is no evaluation to plot")
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise NearfutureError(
            f"a plot needs {error.name}, which the base install leaves out; install it with: "
            f"pip install matplotlib"
        ) from error

    figure = Figure(figsize=(7.0, 4.8), dpi=200, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    summaries = {name: one.summary(by) for name, one in evaluations.items()}
    _frame(axes, summaries, measure)
    alone = len(summaries) == 1
    for number, (name, summary) in enumerate(summaries.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        aside_ms = _ASIDE_MS * (number - (len(summaries) - 1) / 2)
        label = name if _STREAMING in name else f"{name}, {_STREAMING}"
        _draw(axes, label, summary, measure, colour, aside_ms, numbered=alone)
    twins = _twins(summaries)
    for number, (label, figures) in enumerate(twins.items()):
        colour = _COLOURS[number % len(_COLOURS)] if len(twins) > 1 else _ALONE
        _draw_twin(axes, label, _percent(figures, measure), colour)
    if twins:
        label, figures = next(iter(twins.items()))
        rate = _percent(figures, measure)
        if rate.value < _NOTHING_READ:
            _draw_deep_speech_2(axes, label, rate)
    _limit(axes)
    handles, labels = axes.get_legend_handles_labels()
    order = sorted(range(len(labels)), key=lambda i: (_PUBLISHED in labels[i], _TWIN in labels[i]))
    for columns in (2, 1):
        legend = figure.legend(
            [handles[i] for i in order],
            [labels[i] for i in order],
            loc="outside lower center",
            ncols=columns,
            fontsize=9,
            frameon=False,
            labelcolor=_INK,
            handlelength=2.4,
            columnspacing=2.4,
        )
        figure.draw_without_rendering()
        if columns == 1 or legend.get_window_extent().width <= figure.bbox.width:
            break
        legend.remove()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path)
    except OSError as error:
        raise NearfutureError(f"cannot write {path}: {error.strerror}") from error


def _draw(
    axes: Axes,
    name: str,
    summary: Summary,
    measure: Measure,
    colour: str,
    aside_ms: float,
    *,
    numbered: bool,
) -> None:
    from matplotlib.patheffects import withStroke

    x = [_latency_ms(head) + aside_ms for head in summary.heads]
    rates = [_percent(head, measure) for head in summary.heads]
    known = [math.isfinite(rate.high) for rate in rates]
    axes.errorbar(
        x,
        [rate.value for rate in rates],
        yerr=[
            [rate.value - rate.low if bar else 0.0 for rate, bar in zip(rates, known, strict=True)],
            [
                rate.high - rate.value if bar else 0.0
                for rate, bar in zip(rates, known, strict=True)
            ],
        ],
        color=colour,
        linewidth=1.4,
        elinewidth=1.4,
        capsize=3.5,
        marker="o",
        markersize=7,
        markeredgecolor="white",
        markeredgewidth=1.2,
        label=name,
        clip_on=False,  # a point at 0 is seen as a whole
        zorder=4,
    )
    room, last = _LABEL * max(x, default=0.0), -math.inf
    for ms, rate in zip(x, rates, strict=True) if numbered else ():
        if ms - last < room:
            continue
        last = ms
        axes.annotate(
            f"{round(ms, 1):g} ms",
            (ms, rate.value),
            xytext=(8, 7),
            textcoords="offset points",
            fontsize=9,
            color=_INK,
            path_effects=[withStroke(linewidth=2.5, foreground="white")],
            zorder=5,
        )


def _twins(summaries: Mapping[str, Summary]) -> dict[str, HeadFigures]:
    """The figures of the twins by label; one that all have in common comes once."""
    known = {name: one.twin for name, one in summaries.items() if one.twin is not None}
    if len({(one.wer, one.cer) for one in known.values()}) == 1:
        return {_TWIN: next(iter(known.values()))}
    return {f"{name}, {_TWIN}": one for name, one in known.items()}


def _draw_twin(axes: Axes, label: str, rate: Interval, colour: str) -> None:
    axes.axhline(rate.value, color=colour, linewidth=1.4, linestyle=_DASHES, label=label, zorder=2)
    if math.isfinite(rate.high):
        axes.axhspan(rate.low, rate.high, color=colour, alpha=0.12, linewidth=0, zorder=1)


def _draw_deep_speech_2(axes: Axes, label: str, twin: Interval) -> None:
    ms, times = DEEP_SPEECH_2
    axes.plot(
        [ms],
        [times * twin.value],
        marker="D",
        markersize=7,
        markerfacecolor="white",
        markeredgecolor=_GREY,
        markeredgewidth=1.6,
        linestyle="none",
        label=f"{_PUBLISHED},\ndrawn on: {label}; not measured here",
        clip_on=False,
        zorder=3,
    )


def _frame(axes: Axes, summaries: Mapping[str, Summary], measure: Measure) -> None:
    every = [head for summary in summaries.values() for head in summary.heads]
    axes.set_xlim(0, 1.12 * max([*map(_latency_ms, every), DEEP_SPEECH_2[0]]))
    axes.set_xlabel("latency in ms, worst case, everything counted but computing", color=_INK)
    what = "Character" if measure == "cer" else "Word"
    axes.yaxis.set_major_formatter("{x:g} %")
    by = "speakers" if next(iter(summaries.values())).by == "speaker" else "recordings"
    heard = {f"{one.utterances:,} recordings, {one.words:,} words; " for one in summaries.values()}
    axes.set_title(
        f"{what} error rate against latency\n",
        fontsize=11.5,
        fontweight="bold",
        color=_INK,
        loc="left",
    )
    axes.text(
        0,
        1.025,
        f"{heard.pop() if len(heard) == 1 else ''}bars and band are 95 % intervals over {by}",
        transform=axes.transAxes,
        fontsize=9.5,
        color=_GREY,
    )
    axes.grid(axis="y", color=_RULE, linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(_GREY)
    axes.tick_params(colors=_INK, labelsize=9.5)


def _limit(axes: Axes) -> None:
    """Begin at 0, unless what is to be seen lies far above it."""
    low, high = axes.get_ylim()
    axes.set_ylim(0 if low < 0.5 * high else low, high)


def _percent(head: HeadFigures, measure: Measure) -> Interval:
    rate = head.cer if measure == "cer" else head.wer
    return Interval(100 * rate.value, 100 * rate.low, 100 * rate.high)


def _latency_ms(head: HeadFigures) -> float:
    assert head.latency is not None
    return head.latency.worst_ms
