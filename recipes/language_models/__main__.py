"""`python -m recipes.language_models`: train language models four ways and compare them."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import torch
from cyclopts import App
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from nearfuture import NearfutureError
from nearfuture.training import graceful_interrupt
from recipes.language_models.experiment import Findings, anchors, run
from recipes.language_models.generation import check_temperature
from recipes.language_models.model import TITLES, Kind
from recipes.language_models.page import page_parts
from recipes.language_models.report import LANGUAGES, learning_table, plot, write, writing_table
from recipes.language_models.text import Language, Text
from recipes.language_models.training import Point, TrainingConfig
from recipes.report import about, fill_page

app = App(name="python -m recipes.language_models", help="Language models four ways.")


@app.default
def main(
    *,
    language: Literal["en", "ko", "both"] = "both",
    steps: int = TrainingConfig.steps,
    seed: int = TrainingConfig.seed,
    temperature: float = 1.0,
    out: Path = Path("runs/language_models"),
    page: Path | None = None,
) -> None:
    """Train models that read one way, both ways (which leaks), masked, and by causal attention.

    Ctrl-C ends the training after the current step and reports what is there; the same command goes
    on from it. Everything is written into the folder: a checkpoint of each model, curves.csv,
    samples.md and results.json of each language, and curves.svg.

    Args:
        language: Of the text.
        steps: Batches that each model learns from.
        seed: Decides the weights at the start and every batch.
        temperature: At which models write; 1 draws as they say.
        out: Folder of the results.
        page: A page with places for both languages' tables, samples and figure, to fill.
    """
    console = Console()
    torch.set_num_threads(1)  # models of this size compute no faster in two
    chosen: list[Language] = ["en", "ko"] if language == "both" else [language]
    config = TrainingConfig(steps=steps, seed=seed)
    check_temperature(temperature)  # not after minutes of training
    begun = time.monotonic()
    found: list[Findings] = []
    notice = "[yellow]stopping after this step; the same command goes on[/]"
    with (
        Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed:.0f}/{task.total:.0f}"),
            TextColumn("{task.fields[loss]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
        ) as bars,
        graceful_interrupt(lambda: console.print(notice)) as interrupted,
    ):
        for each in chosen:
            if interrupted():
                break
            text = Text.load(each)
            outcomes = run(
                text,
                config,
                out / each,
                temperature=temperature,
                progress=_Bars(bars, LANGUAGES[each], steps),
                interrupted=interrupted,
            )
            found.append(Findings(text=text, outcomes=tuple(outcomes), anchors=anchors(text)))
            write(out / each, found[-1], **about())
    if not found:
        return
    for findings in found:
        console.print(learning_table(findings), writing_table(findings), sep="\n")
    plot(found, out / "curves.svg")
    console.print(f"{out}: curves, samples and results, after {time.monotonic() - begun:.0f} s")
    if page is not None and not _complete(found, chosen):
        console.print(f"{page} stays as it is until all models are trained")
    elif page is not None:
        fill_page(page, page_parts(found))
        shutil.copyfile(out / "curves.svg", page.with_suffix(".svg"))


def _complete(found: Sequence[Findings], chosen: Sequence[Language]) -> bool:
    """Whether every model of every language has been trained to its end."""
    return len(found) == len(chosen) and all(
        len(each.outcomes) == len(TITLES) and all(o.trained.finished for o in each.outcomes)
        for each in found
    )


class _Bars:
    """A bar for each model, which shows its loss on held-out text."""

    def __init__(self, bars: Progress, language: str, steps: int) -> None:
        self._bars, self._language, self._steps = bars, language, steps
        self._tasks: dict[Kind, TaskID] = {}

    def __call__(self, kind: Kind, point: Point) -> None:
        if kind not in self._tasks:
            name = f"{self._language}, {TITLES[kind]}"
            self._tasks[kind] = self._bars.add_task(name, total=self._steps, loss="")
        loss = f"held out {point.dev:.3f}"
        self._bars.update(self._tasks[kind], completed=point.step, loss=loss)


if __name__ == "__main__":
    try:
        app()
    except NearfutureError as error:
        raise SystemExit(f"language_models: {error}") from error
