"""The figures of `docs/evidence.md`, drawn from what the studies return.

Text stays text in an SVG, so that Korean needs no font where it is drawn.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from recipes.evidence.construction import FRAME_MS, SCHEDULES, Decision, Schedule, decisions
from recipes.evidence.letters import LetterErrors
from recipes.evidence.plosives import VOTS_MS
from recipes.evidence.taggings import Tagging
from recipes.evidence.voicing import FRAME_MS as FINE_MS
from recipes.evidence.voicing import Identification, ideal_t

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Colours that people who see no red or green can distinguish (Okabe and Ito).
_BLUE, _ORANGE, _GREEN, _SKY = "#0072b2", "#d55e00", "#009e73", "#56b4e9"
_INK, _GREY, _RULE = "#1f2328", "#5c6570", "#e4e7eb"
_SHADES = ("#c9dff0", "#8fbfe0", "#4f9aca", "#1f75ae", "#0b5087", "#083a63", "#052642")
"""From little lookahead to much."""


@contextmanager
def _figure(path: Path, width: float, height: float) -> Iterator[Figure]:
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    style: Any = {
        "svg.fonttype": "none",
        "svg.hashsalt": "evidence",
        "font.family": "sans-serif",
        "font.sans-serif": ["DejaVu Sans"],
        "font.size": 9,
        "axes.edgecolor": _GREY,
        "axes.labelcolor": _INK,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.titlesize": 10,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
        "text.color": _INK,
        "xtick.color": _INK,
        "ytick.color": _INK,
    }
    with matplotlib.rc_context(style), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = Figure(figsize=(width, height), dpi=150, layout="constrained", facecolor="white")
        FigureCanvasAgg(figure)
        yield figure
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def draw_construction(path: Path) -> None:
    """Draw the decisions of every lookahead, and below them the evidence frame by frame."""
    with _figure(path, 9.0, 4.8) as figure:
        axes = figure.subplots(
            2, len(SCHEDULES), sharex=True, sharey="row", height_ratios=(2, 1), squeeze=False
        )
        for (above, below), schedule in zip(axes.T, SCHEDULES, strict=True):
            above.set_title(f"evidence comes {schedule.name}")
            _draw_decisions(above, decisions(schedule))
            _draw_evidence(below, schedule)
        axes[0, 0].set_ylabel("probability of /t/; a /d/ is spoken")
        axes[1, 0].set_ylabel("evidence\n← /d/ · /t/ →")
        axes[1, 1].set_xlabel("lookahead τ in frames, and in ms")
        axes[0, 2].legend(*axes[0, 0].get_legend_handles_labels(), loc="upper right", frameon=False)


def _draw_decisions(axes: Axes, found: Sequence[Decision]) -> None:
    taus = [decision.lookahead_frames for decision in found]
    axes.plot(taus, [decision.t for decision in found], color=_GREY, linewidth=1.2, zorder=2)
    for right, colour, marker, label in (
        (True, _BLUE, "o", "right: /d/"),
        (False, _ORANGE, "X", "wrong: /t/"),
    ):
        chosen = [each for each in found if each.right == right]
        if not chosen:
            continue
        axes.plot(
            [each.lookahead_frames for each in chosen],
            [each.t for each in chosen],
            marker=marker,
            markersize=8,
            color=colour,
            linestyle="none",
            label=label,
            clip_on=False,
            zorder=3,
        )
    axes.axhline(0.5, color=_GREY, linewidth=0.8, linestyle=(0, (4, 3)))
    axes.set_ylim(0, 1)


def _draw_evidence(axes: Axes, schedule: Schedule) -> None:
    frames = range(len(schedule.evidence))
    axes.bar(frames, [pair[0] for pair in schedule.evidence], 0.6, color=_ORANGE)
    axes.bar(frames, [-pair[1] for pair in schedule.evidence], 0.6, color=_BLUE)
    axes.axhline(0, color=_GREY, linewidth=0.8)
    axes.set_ylim(-10, 7)
    axes.set_yticks([-9, -5, 0, 5], ["9", "5", "0", "5"])
    axes.set_xticks(frames, [f"{tau}\n{tau * FRAME_MS}" for tau in frames])


def draw_voicing(found: Identification, path: Path) -> None:
    """Draw what models of each lookahead make of each onset of voicing, and what can be known."""
    with _figure(path, 8.6, 4.4) as figure:
        left, right = figure.subplots(1, 2, sharey=True)
        _draw_continuum(left, found)
        _draw_waiting(right, found)


def _draw_continuum(axes: Axes, found: Identification) -> None:
    shown = [tau for tau in (0, 1, 2, 3, 6) if tau in found.lookaheads]
    for tau, colour in zip(shown, _SHADES[1:], strict=False):
        values = found.t[:, found.lookaheads.index(tau)]
        label = f"τ = {tau}: {FINE_MS * (tau + 1)} ms heard"
        axes.plot(VOTS_MS, values.mean(axis=0), color=colour, linewidth=1.8, label=label)
        axes.fill_between(
            VOTS_MS, values.min(axis=0), values.max(axis=0), color=colour, alpha=0.25, linewidth=0
        )
        axes.plot(VOTS_MS, ideal_t(tau), color=colour, linewidth=0, marker=".", markersize=4)
    axes.plot([], [], color=_GREY, linewidth=0, marker=".", label="the most that can be known")
    axes.axhline(0.5, color=_GREY, linewidth=0.8, linestyle=(0, (4, 3)))
    axes.set_title("the continuum from /d/ to /t/")
    axes.set_xlabel("onset of voicing behind the burst, ms")
    axes.set_ylabel("probability of /t/ at the burst")
    axes.set_ylim(0, 1.02)
    axes.set_xlim(0, 100)
    axes.legend(loc="lower right", frameon=False, fontsize=8.5)


def _draw_waiting(axes: Axes, found: Identification) -> None:
    onsets = {0: _SKY, 15: _BLUE, 20: "#0b5087", 25: _GREEN, 40: "#e69f00", 70: _ORANGE}
    for onset, colour in onsets.items():
        values = found.t[:, :, VOTS_MS.index(onset)]
        axes.errorbar(
            found.lookaheads,
            values.mean(axis=0),
            yerr=[
                values.mean(axis=0) - values.min(axis=0),
                values.max(axis=0) - values.mean(axis=0),
            ],
            color=colour,
            marker="o",
            markersize=4.5,
            linewidth=1.5,
            capsize=2,
            label=f"{onset} ms",
            clip_on=False,
        )
    axes.axhline(0.5, color=_GREY, linewidth=0.8, linestyle=(0, (4, 3)))
    axes.set_title("one onset, more lookahead")
    axes.set_xticks(found.lookaheads, [f"{tau}\n{FINE_MS * (tau + 1)}" for tau in found.lookaheads])
    axes.set_xlabel("lookahead τ in frames of 10 ms, ms heard behind the burst")
    axes.legend(
        title="onset of voicing",
        frameon=False,
        fontsize=8.5,
        loc="upper right",
        bbox_to_anchor=(1.0, 0.94),
    )


def draw_letters(found: Sequence[LetterErrors], path: Path) -> None:
    """Draw how often each letter is missed at each lookahead, those that gain most first."""
    ordered = sorted(found, key=lambda letter: letter.gain[0])
    taus = [tau for tau in ordered[0].rates if tau is not None]
    with _figure(path, 7.4, 0.34 * len(ordered) + 1.2) as figure:
        axes = figure.subplots()
        height = range(len(ordered))
        shades = [_ORANGE, "#8fbfe0", "#4f9aca", "#0b5087"]
        first = [letter.rates[taus[0]][0] for letter in ordered]
        last = [letter.rates[taus[-1]][0] for letter in ordered]
        axes.hlines(
            height, [100 * x for x in last], [100 * x for x in first], color=_RULE, linewidth=5
        )
        for tau, colour in zip(taus, shades, strict=False):
            rates = 100 * np.array([letter.rates[tau] for letter in ordered])
            bars = [rates[:, 0] - rates[:, 1], rates[:, 2] - rates[:, 0]]
            ends = tau in (taus[0], taus[-1])
            axes.errorbar(
                rates[:, 0],
                height,
                xerr=bars if ends else None,
                color=colour,
                marker="o",
                markersize=7 if ends else 5,
                linestyle="none",
                elinewidth=1,
                label=f"τ = {tau}",
                zorder=3,
            )
        twin = [100 * letter.rates[None][0] for letter in ordered]
        axes.plot(twin, height, marker="|", markersize=11, markeredgewidth=2, color=_INK,
                  linestyle="none", label="both ways", zorder=4)  # fmt: skip
        axes.set_yticks(height, [f"{each.name}  ({each.count})" for each in ordered])
        axes.set_ylim(-0.7, len(ordered) - 0.3)
        axes.set_xlim(0, None)
        axes.set_xlabel("% of the letter's occurrences that are missed")
        axes.xaxis.grid(True, color=_RULE, linewidth=0.8)
        axes.set_axisbelow(True)
        axes.legend(loc="lower right", frameon=False)


def draw_text(found: Mapping[str, Tagging], path: Path) -> None:
    """Draw the answers word by word, and how right they are by where the evidence stands."""
    with _figure(path, 10.0, 3.7 * len(found)) as figure:
        axes = figure.subplots(len(found), 2, squeeze=False, width_ratios=(3, 2))
        for tagging, (left, right) in zip(found.values(), axes, strict=True):
            _draw_arrival(left, tagging)
            _draw_distances(right, tagging)


_KINDS = {"one way": _ORANGE, "lookahead 2": "#e69f00", "lookahead 4": _SKY, "both ways": _BLUE}
_MARKERS = {"one way": "o", "lookahead 2": "s", "lookahead 4": "^", "both ways": "D"}


def _draw_arrival(axes: Axes, tagging: Tagging) -> None:
    first, second = tagging.examples
    start = first.target
    for kind, colour in _KINDS.items():
        for example, style, label in ((first, "-", kind), (second, (0, (3, 2)), None)):
            values = example.probabilities[kind]
            axes.plot(
                range(len(values)),
                values,
                color=colour,
                linestyle=style,
                marker=_MARKERS[kind],
                markersize=4.5,
                linewidth=1.5,
                label=label,
            )
    longest = max(len(first.words), len(second.words)) - start
    ticks = []
    for place in range(longest):
        pair = [
            e.words[start + place] if start + place < len(e.words) else "" for e in (first, second)
        ]
        ticks.append(pair[0] if pair[0] == pair[1] else f"{pair[0]}\n{pair[1]}")
    axes.set_xticks(range(longest), ticks, rotation=30, ha="right", rotation_mode="anchor")
    axes.axhline(0.5, color=_GREY, linewidth=0.8, linestyle=(0, (4, 3)))
    axes.set_ylim(0, 1)
    senses = tagging.senses
    axes.set_ylabel(f"probability of “{senses[1]}”")
    axes.set_title(f"{' '.join(first.words[: start + 1])} … word by word")
    axes.legend(frameon=False, loc="upper left", fontsize=8.5)


def _draw_distances(axes: Axes, tagging: Tagging) -> None:
    for kind, colour in _KINDS.items():
        values = 100 * np.array([list(seed.values()) for seed in tagging.accuracy[kind]])
        distances = list(tagging.accuracy[kind][0])
        axes.errorbar(
            distances,
            values.mean(axis=0),
            yerr=[
                values.mean(axis=0) - values.min(axis=0),
                values.max(axis=0) - values.mean(axis=0),
            ],
            color=colour,
            marker=_MARKERS[kind],
            markersize=4.5,
            linewidth=1.5,
            capsize=2,
            label=kind,
            clip_on=False,
        )
    axes.axhline(50, color=_GREY, linewidth=0.8, linestyle=(0, (4, 3)))
    axes.set_ylim(0, 102)
    axes.set_xticks(distances)
    axes.set_xlabel("words from the word to its evidence (0: it came before)")
    axes.set_ylabel("right answers, %")
    axes.set_title("new sentences")
