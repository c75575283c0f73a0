"""Curves, samples and a table of all models: for people, for programs, and as a figure."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from nearfuture.error import MissingDependency
from recipes.language_models.experiment import Anchors, Findings, Outcome
from recipes.language_models.judge import Quality
from recipes.language_models.model import TITLES, Kind
from recipes.language_models.text import Language, Text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LANGUAGES: dict[Language, str] = {"en": "English", "ko": "Korean"}
COLOURS: dict[Kind, str] = {
    "one_way": "#0072b2",
    "both_ways": "#d55e00",
    "masked": "#009e73",
    "attention": "#cc79a7",
}
"""Colours that people who see no red or green can distinguish (Okabe and Ito)."""

_INK, _GREY, _RULE = "#1f2328", "#5c6570", "#e4e7eb"


def learning_table(found: Findings) -> Table:
    """How each model predicts, and what it can look at; then what counting and nothing achieve."""
    table = _table(
        f"{LANGUAGES[found.text.language]}: what they learn, in nats a symbol",
        ("model", "leaks", "training", "held out", "bits", "right", "at the end"),
    )
    for outcome in found.outcomes:
        trained, dev = outcome.trained, outcome.dev
        table.add_row(
            _title(outcome),
            _leak(outcome),
            _number(trained.curve[-1].train),
            f"{dev.loss:.3f} ± {1.96 * dev.deviation:.3f}",
            _number(dev.loss / math.log(2)),
            f"{100 * dev.accuracy:.1f} %",
            "" if dev.last_loss is None else _number(dev.last_loss),
        )
    beside = found.anchors
    for name, loss in (
        ("counts of 5 symbols", beside.ngram),
        (f"ln V, V = {beside.symbols}", beside.uniform),
    ):
        table.add_row(name, "", "", _number(loss), _number(loss / math.log(2)), "", "")
    return table


def writing_table(found: Findings) -> Table:
    """How good what each model writes is; then real text, and its symbols in random order."""
    table = _table(
        f"{LANGUAGES[found.text.language]}: what they write",
        ("written by", "weights", "judged", "judging", "real words"),
    )
    for outcome in found.outcomes:
        weights = f"{outcome.trained.model.parameter_count:,}"
        table.add_row(_title(outcome), weights, *_quality(outcome.quality))
    table.add_row("real text", "", *_quality(found.anchors.real))
    table.add_row("its symbols shuffled", "", *_quality(found.anchors.shuffled))
    return table


def _table(title: str, columns: Sequence[str]) -> Table:
    table = Table(title=title)
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left", no_wrap=number == 0)
    return table


def _title(outcome: Outcome) -> str:
    trained = outcome.trained
    stopped = "" if trained.finished else f", {trained.curve[-1].step} steps"
    return TITLES[outcome.kind] + stopped


def _leak(outcome: Outcome) -> str:
    """Where in its input a model sees its target, if it does."""
    offset = outcome.verdict.offset
    return "no" if offset is None else f"at t + {offset}" if offset else "at t"


def _quality(found: Quality) -> tuple[str, str, str]:
    return _number(found.judged), _number(found.judging), f"{100 * found.real_words:.0f} %"


def as_data(found: Findings) -> dict[str, Any]:
    """All figures as plain data, for JSON."""
    return {
        "anchors": asdict(found.anchors),
        "models": {
            outcome.kind: {
                "parameters": outcome.trained.model.parameter_count,
                "finished": outcome.trained.finished,
                "cpu_seconds": round(outcome.trained.cpu_seconds, 1),
                "verdict": {**asdict(outcome.verdict), "lookahead": str(outcome.verdict.lookahead)},
                "dev": asdict(outcome.dev),
                "quality": asdict(outcome.quality),
            }
            for outcome in found.outcomes
        },
    }


def samples(text: Text, outcome: Outcome, *, count: int = 2) -> list[str]:
    """The first texts that a model wrote, Korean in syllables, paragraphs joined by ` / `."""
    written = (text.decode(text.encode(each)) for each in outcome.written[:count])
    return [" / ".join(each.split("\n")).strip(" /") for each in written]


def write(folder: Path, found: Findings, **about: Any) -> None:
    """Write `curves.csv`, `samples.md` and `results.json` of a language into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "curves.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("model", "step", "train", "dev", "accuracy", "last_symbol"))
        for outcome in found.outcomes:
            for p in outcome.trained.curve:
                values = (p.train, p.dev, p.accuracy, p.last_loss)
                shown = ("" if value is None else f"{value:.5f}" for value in values)
                writer.writerow((outcome.kind, p.step, *shown))
    (folder / "samples.md").write_text(samples_markdown(found), encoding="utf-8")
    results = json.dumps({**about, **as_data(found)}, ensure_ascii=False, indent=1)
    (folder / "results.json").write_text(results + "\n", encoding="utf-8")


def samples_markdown(found: Findings) -> str:
    """What each model wrote, and how the masked one filled blanks, as Markdown."""
    parts = []
    for outcome in found.outcomes:
        parts.append(f"**{TITLES[outcome.kind]}**")
        parts += [f"> `{written}`" for written in map(_quoted, samples(found.text, outcome))]
        for each in outcome.filled:
            right = f"{100 * each.accuracy:.0f} % of the blanks right"
            blanks, guess = _quoted(each.blanks), _quoted(each.guess)
            parts.append(f"* blanks: `{blanks}`\n* filled, {right}: `{guess}`")
    return "\n\n".join(parts) + "\n"


def _quoted(written: str) -> str:
    """On one line, and without what would end the quotation."""
    return written.replace("`", "'").replace("\n", " / ")


def plot(found: Sequence[Findings], path: Path) -> None:
    """Draw each model's loss on held-out text against steps, a panel for each language.

    Raises:
        MissingDependency: without matplotlib.
    """
    try:
        from matplotlib import rc_context
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise MissingDependency("a figure", error.name, "pip install matplotlib") from error

    with rc_context({"svg.fonttype": "path", "svg.hashsalt": "nearfuture"}):
        figure = Figure(figsize=(4.9 * len(found), 4.4), dpi=160, layout="constrained")
        figure.set_facecolor("white")
        FigureCanvasAgg(figure)
        panels = figure.subplots(1, len(found), sharey=True, squeeze=False)[0]
        for number, (axes, each) in enumerate(zip(panels, found, strict=True)):
            _panel(axes, each.outcomes, each.anchors)
            axes.set_title(LANGUAGES[each.text.language], color=_INK, fontsize=11, loc="left")
            if number == 0:
                axes.set_ylabel("loss on held-out text, nats a symbol", color=_INK)
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def _panel(axes: Axes, outcomes: Sequence[Outcome], beside: Anchors) -> None:
    for outcome in outcomes:
        curve, colour = outcome.trained.curve, COLOURS[outcome.kind]
        steps = [point.step for point in curve]
        leaks = " (leaks)" if outcome.verdict.offset is not None else ""
        losses = [point.dev for point in curve]
        axes.plot(steps, losses, color=colour, lw=2, label=TITLES[outcome.kind] + leaks)
        if outcome.kind == "both_ways":
            last = [math.nan if p.last_loss is None else p.last_loss for p in curve]
            label = "the same, where no future follows"
            axes.plot(steps, last, color=colour, lw=1.2, ls=(0, (2, 2)), label=label)
    axes.axhline(beside.uniform, color=_GREY, lw=1, ls=(0, (5, 3)))
    axes.annotate(
        f"ln {beside.symbols} = {beside.uniform:.2f}: knows nothing",
        (1.0, beside.uniform),
        xycoords=("axes fraction", "data"),
        xytext=(-4, 4),
        textcoords="offset points",
        ha="right",
        color=_GREY,
        fontsize=8.5,
    )
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:.0f}")
    axes.set_ylim(0, beside.uniform * 1.12)
    axes.set_xlabel("training steps", color=_INK)
    axes.grid(color=_RULE, lw=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=_GREY)
    axes.legend(frameon=False, fontsize=8.5, loc="lower left")


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.3f}"
