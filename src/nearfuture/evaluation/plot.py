"""Error against latency: what each millisecond of lookahead buys, and how far the twin is."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from nearfuture.error import MissingDependency, NearfutureError
from nearfuture.evaluation.bootstrap import ConfidenceInterval
from nearfuture.evaluation.evaluation import Evaluation
from nearfuture.evaluation.summary import By, HeadMetrics, Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Measure = Literal["cer", "wer"]

DEEP_SPEECH_2 = (760.0, 1.05)
"""Lookahead in ms, and CER relative to its bidirectional model: 6.10 against 5.81 (§3.7)."""

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Colours that people who see no red or green can distinguish (Okabe and Ito)."""
_SINGLE_TWIN = "#b35000"
"""The twin where there is one evaluation; among several it has the colour of its model."""
_INK, _GREY, _RULE = "#1f2328", "#5c6570", "#e4e7eb"

_OFFSET_MS = 10.0
"""How far apart the points of several evaluations stand, so that their bars can be read."""
_LABEL = 0.09
"""Width of a label beside a point, of the largest latency; points closer than that go without."""
_USELESS = 90.0
"""In %; a relative difference to a twin that is no better has no meaning."""

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
    not measured here, and its 760 ms are the lookahead alone; not beside a twin with next to
    nothing right. Several evaluations stand a few ms beside each other, so that their bars can be
    distinguished.

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
        raise NearfutureError(
            f"a plot is a .png or .svg file, not {path.name}", code="unsupported", parameter="path"
        )
    if not evaluations:
        raise NearfutureError("there is no evaluation to plot", parameter="evaluations")
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise MissingDependency("a plot", error.name, "pip install matplotlib") from error

    summaries = {name: evaluation.summary(by) for name, evaluation in evaluations.items()}
    figure = Figure(figsize=(7.0, 4.8), dpi=200, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    _draw(figure.add_subplot(), summaries, measure)
    _draw_legend(figure)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path)
    except OSError as error:
        raise NearfutureError(f"cannot write {path}: {error.strerror}", parameter="path") from error


def _draw(axes: Axes, summaries: Mapping[str, Summary], measure: Measure) -> None:
    _draw_frame(axes, summaries, measure)
    first_ms = -_OFFSET_MS * (len(summaries) - 1) / 2
    for number, (name, summary) in enumerate(summaries.items()):
        label = name if _STREAMING in name else f"{name}, {_STREAMING}"
        offset_ms = first_ms + _OFFSET_MS * number
        points = {_latency_ms(head) + offset_ms: _percent(head, measure) for head in summary.heads}
        _draw_curve(axes, label, _COLOURS[number % len(_COLOURS)], points)
        if len(summaries) == 1:
            _label_points(axes, points)
    twins = _twins(summaries, measure)
    for number, (label, rate) in enumerate(twins.items()):
        colour = _COLOURS[number % len(_COLOURS)] if len(twins) > 1 else _SINGLE_TWIN
        _draw_twin(axes, label, rate, colour)
    for label, rate in list(twins.items())[:1]:
        if rate.value < _USELESS:
            _draw_deep_speech_2(axes, label, rate)
    low, high = axes.get_ylim()
    axes.set_ylim(0 if low < 0.5 * high else low, high)  # 0, unless all points lie far above it


def _draw_curve(
    axes: Axes, label: str, colour: str, points: Mapping[float, ConfidenceInterval]
) -> None:
    """Draw error rates by latency; an unknown interval has no bar."""
    rates = points.values()
    below = [rate.value - rate.low if math.isfinite(rate.high) else 0.0 for rate in rates]
    above = [rate.high - rate.value if math.isfinite(rate.high) else 0.0 for rate in rates]
    axes.errorbar(
        list(points),
        [rate.value for rate in rates],
        yerr=[below, above],
        color=colour,
        linewidth=1.4,
        elinewidth=1.4,
        capsize=3.5,
        marker="o",
        markersize=7,
        markeredgecolor="white",
        markeredgewidth=1.2,
        label=label,
        clip_on=False,  # a point at 0 is drawn as a whole
        zorder=4,
    )


def _label_points(axes: Axes, points: Mapping[float, ConfidenceInterval]) -> None:
    from matplotlib.patheffects import withStroke

    width_ms, last_ms = _LABEL * max(points, default=0.0), -math.inf
    for ms, rate in points.items():
        if ms - last_ms < width_ms:
            continue
        last_ms = ms
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


def _twins(summaries: Mapping[str, Summary], measure: Measure) -> dict[str, ConfidenceInterval]:
    """The error rates of the twins by label; a twin that all evaluations share comes once."""
    twins = {name: summary.twin for name, summary in summaries.items() if summary.twin is not None}
    shared = len({(twin.wer, twin.cer) for twin in twins.values()}) == 1
    return {
        _TWIN if shared else f"{name}, {_TWIN}": _percent(twin, measure)
        for name, twin in twins.items()
    }


def _draw_twin(axes: Axes, label: str, rate: ConfidenceInterval, colour: str) -> None:
    axes.axhline(
        rate.value, color=colour, linewidth=1.4, linestyle=(0, (6, 3)), label=label, zorder=2
    )
    if math.isfinite(rate.high):
        axes.axhspan(rate.low, rate.high, color=colour, alpha=0.12, linewidth=0, zorder=1)


def _draw_deep_speech_2(axes: Axes, label: str, twin: ConfidenceInterval) -> None:
    ms, relative = DEEP_SPEECH_2
    axes.plot(
        [ms],
        [relative * twin.value],
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


def _draw_frame(axes: Axes, summaries: Mapping[str, Summary], measure: Measure) -> None:
    heads = [head for summary in summaries.values() for head in summary.heads]
    axes.set_xlim(0, 1.12 * max([*map(_latency_ms, heads), DEEP_SPEECH_2[0]]))
    axes.set_xlabel("latency in ms, worst case, everything counted but computing", color=_INK)
    axes.yaxis.set_major_formatter("{x:g} %")
    by = "speakers" if next(iter(summaries.values())).by == "speaker" else "recordings"
    sizes = {
        f"{size.utterances:,} recordings, {size.words:,} words; " for size in summaries.values()
    }
    axes.set_title(
        f"{'Character' if measure == 'cer' else 'Word'} error rate against latency\n",
        fontsize=11.5,
        fontweight="bold",
        color=_INK,
        loc="left",
    )
    axes.text(
        0,
        1.025,
        f"{sizes.pop() if len(sizes) == 1 else ''}bars and band are 95 % intervals over {by}",
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


def _draw_legend(figure: Figure) -> None:
    """Put the legend below, in two columns where they fit; twins and published points come last."""
    entries = zip(*figure.axes[0].get_legend_handles_labels(), strict=True)
    ordered = sorted(entries, key=lambda entry: (_PUBLISHED in entry[1], _TWIN in entry[1]))
    for columns in (2, 1):
        legend = figure.legend(
            [handle for handle, _ in ordered],
            [label for _, label in ordered],
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


def _percent(head: HeadMetrics, measure: Measure) -> ConfidenceInterval:
    rate = head.cer if measure == "cer" else head.wer
    return ConfidenceInterval(100 * rate.value, 100 * rate.low, 100 * rate.high)


def _latency_ms(head: HeadMetrics) -> float:
    assert head.latency is not None
    return head.latency.worst_ms
