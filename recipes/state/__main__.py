"""`python -m recipes.state`: measure, print tables, and draw."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import torch
from cyclopts import App
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from nearfuture import NearfutureError
from recipes.report import fill_page, markdown
from recipes.state.figures import FIGURES
from recipes.state.results import Results, Store, StudyOptions, units
from recipes.state.tables import TABLES, summary

PAGE = Path(__file__).parents[2] / "docs" / "state.md"

app = App(name="python -m recipes.state", help="Measure what a recurrent state is.")


@app.default
def study(*, seeds: int = 3, out: Path = Path("runs/state"), write: bool = False) -> None:
    """Measure how long a state shows an input, what its width is not, and how gradients fade.

    It takes minutes. After Ctrl-C, the same command goes on where it was.

    Args:
        seeds: How often each training and each drawing of weights is repeated; 2 or more.
        out: Folder for the measurements and the figures.
        write: Put figures and tables into docs/state.md as well.
    """
    if seeds < 2:
        raise NearfutureError(
            f"an interval needs 2 `seeds` or more, not {seeds}",
            code="out_of_range",
            parameter="seeds",
        )
    torch.set_num_threads(1)
    options = StudyOptions(seeds=seeds)
    store = Store(out / "measured.json", options)
    measure(store, options)
    results = store.results()
    console = Console(width=None if sys.stdout.isatty() else 120)
    for table in TABLES.values():
        console.print(table(results))
    draw(results, out)
    print(json.dumps({**store.about, "results": summary(results)}, ensure_ascii=False))
    if write:
        draw(results, PAGE.with_suffix(""))
        parts = {name: markdown(table(results)) for name, table in TABLES.items()}
        parts["provenance"] = (
            f"`{store.about['command']}`, commit {store.about['commit']}, "
            f"{store.about['processor']}, one thread, {store.seconds / 60:.0f} minutes "
            f"of its time, {seeds} seeds."
        )
        fill_page(PAGE, parts)


def measure(store: Store, options: StudyOptions) -> None:
    """Measure what the store does not have yet."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True)) as progress:
        todo = units(options)
        task = progress.add_task("", total=len(todo))
        for name, unit in todo.items():
            progress.update(task, description=name)
            if name not in store:
                began = time.process_time()
                value = unit()
                store.add(name, value, time.process_time() - began)
            progress.advance(task)


def draw(results: Results, folder: Path) -> None:
    """Draw every figure into a folder, as SVG."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, figure in FIGURES.items():
        figure(results, folder / f"{name}.svg")


if __name__ == "__main__":
    try:
        app()
    except NearfutureError as error:
        raise SystemExit(f"state: {error}") from error
    except KeyboardInterrupt:
        print("stopped; the same command goes on from here", file=sys.stderr)
        raise SystemExit(130) from None
