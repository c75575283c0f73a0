"""What the experiments share: train what is not trained yet, evaluate it once, write the page.

Everything lies under `runs/experiments/NAME`: a training that was interrupted goes on, a model that
is there is not trained again, an evaluation that is there is read. Hardware, commit and duration
are those of the training, kept beside it.
"""

import json
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parents[1]))
from _report import about

from nearfuture.data import Cut, Utterance
from nearfuture.evaluation import Evaluation, HeadMetrics, evaluate_bundles
from nearfuture.training import Group, Note, Progress, Request, train
from recipes.digits import symbols, training_data

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "experiments"
HEADS = (0, 4, 8, 19)
DISTILL = 3.0
SHIFTS = {0: 2}
REGULARISE = False
"""How the streaming model learns from its twin; `recipe.py` compares it with other ways."""

TWIN = "bidirectional twin"

_console = Console()


def trained(request: Request) -> Path:
    """The folder of the models that a request asks for, trained if they are not there yet.

    Without sources of recordings they are trained on connected digits.
    """
    missing = [name for name in request.models if not bundle(request.folder, name).exists()]
    if not missing:
        return request.folder
    note = request.folder / "trained.json"
    request.folder.mkdir(parents=True, exist_ok=True)
    began = time.time()
    before = json.loads(note.read_text("utf-8")) if note.exists() else {**about(), "seconds": 0.0}
    note.write_text(json.dumps(before) + "\n", "utf-8")
    last = [0.0]

    def tell(name: str, message: Note | Progress) -> None:
        if isinstance(message, Progress):
            if message.watched or time.time() - last[0] > 60:
                last[0] = time.time()
                watched = {key: round(value, 4) for key, value in message.watched.items()}
                _console.print(
                    f"{request.folder.name} {name} {message.step}/{message.steps} "
                    f"epoch {message.epoch} loss {message.loss:.3f} {watched or ''}"
                )
            for line in message.skipped:
                _console.print(f"left out: {line}", markup=False)
        else:
            _console.print(f"{request.folder.name} {name} {message.doing}", markup=False)

    try:
        material = None
        if not request.data:
            config = request.configs(symbols())[request.models[0]]
            material = training_data(config, seed=request.seed)
        train(request, Group(), material=material, tell=tell)
    finally:
        seconds = before["seconds"] + time.time() - began
        note.write_text(json.dumps({**before, "seconds": seconds}) + "\n", "utf-8")
    return request.folder


def bundle(folder: Path, name: str) -> Path:
    """Where a training leaves a model."""
    return folder / name / "bundle"


def evaluated(
    folder: Path,
    items: Iterable[Cut | Utterance],
    name: str = "test",
    *,
    streaming: Path | None = None,
) -> Evaluation:
    """The evaluation of both models of a folder, made once; or of its twin beside another model."""
    path = folder / f"{name}.json"
    if not path.exists():
        evaluation = evaluate_bundles(
            streaming or bundle(folder, "streaming"), bundle(folder, "bidirectional"), items
        )
        for problem in evaluation.problems:
            _console.print(problem, markup=False)
        evaluation.save(path)
    return Evaluation.load(path)


def name_of(head: HeadMetrics) -> str:
    """A head as the tables call it."""
    return TWIN if head.frames is None else f"τ = {head.frames}"


def wait_of(head: HeadMetrics) -> str:
    """How long it waits, in words."""
    return "the whole utterance" if head.latency is None else f"{head.latency.worst_ms:g} ms"


def mean_over_seeds(values: Sequence[float]) -> tuple[float, float]:
    """The mean, and the half width of its 95 % interval by Student's t; 0 wide for one seed."""
    if len(values) < 2:
        return float(np.mean(values)), 0.0
    from scipy.stats import t

    half = t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values))
    return float(np.mean(values)), float(half)


def markdown(table: Table) -> str:
    """A rich table as one of Markdown."""
    columns = [list(column.cells) for column in table.columns]
    lines = ["| " + " | ".join(str(column.header) for column in table.columns) + " |"]
    lines.append("|" + "---|" * len(columns))
    lines += ["| " + " | ".join(map(str, row)) + " |" for row in zip(*columns, strict=True)]
    return "\n".join(lines)


def provenance(folders: Mapping[str, Path]) -> str:
    """When, where and for how long the models were trained, as a Markdown list."""
    lines = []
    for name, folder in folders.items():
        note: dict[str, Any] = json.loads((folder / "trained.json").read_text("utf-8"))
        lines.append(
            f"* {name}: commit {note['commit']}, {note['processor']}, one thread, "
            f"{note['seconds'] / 60:.0f} minutes"
        )
    return "\n".join(lines)


def write_page(name: str, parts: Mapping[str, str]) -> None:
    """Put the measured parts into the page, between its markers; the words around them stay."""
    path = PAGES / f"{name}.md"
    text = path.read_text(encoding="utf-8")
    for part, content in parts.items():
        begin, end = f"<!-- {part} -->", f"<!-- end of {part} -->"
        if begin not in text or end not in text:
            raise SystemExit(f"{path} has no place for {part!r}: it needs {begin} and {end}")
        head, _, rest = text.partition(begin)
        _, _, tail = rest.partition(end)
        text = f"{head}{begin}\n{content}\n{end}{tail}"
    path.write_text(text, encoding="utf-8")
