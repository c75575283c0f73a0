"""`python -m recipes.evidence construction`, `… voicing`, `… letters`, `… text`, `… export DIR`."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import torch
from cyclopts import App, Parameter
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from safetensors.torch import load_file, save_file
from torch import nn

from nearfuture import NearfutureError, load
from nearfuture.model import Recognizer
from recipes.digits import DigitRecordings, test_strings
from recipes.evidence import figures, graphs
from recipes.evidence.construction import FRAME_MS, SCHEDULES, decisions
from recipes.evidence.letters import LetterErrors, errors_by, judged
from recipes.evidence.sentences import FILES, AmbiguousWord, ambiguous_word
from recipes.evidence.tagger import KINDS, Tagger, TaggerOptions, build
from recipes.evidence.tagger import train as train_tagger
from recipes.evidence.taggings import Tagging, study
from recipes.evidence.voicing import (
    LOOKAHEADS,
    Identification,
    VoicingOptions,
    config,
    ideal_accuracy,
    identify,
)
from recipes.evidence.voicing import train as train_voicing
from recipes.report import about, emit, fill_page, markdown, mean_over_seeds

RUNS = Path("runs/evidence")
DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "evidence.md"

app = App(
    name="python -m recipes.evidence",
    help="Measure what evidence that arrives late is worth, and draw it.",
)


@app.command
def construction(*, out: Path = RUNS, write: bool = False) -> None:
    """Show the decisions of the lookahead layer on late, scattered and early evidence.

    Args:
        out: Folder for the figure.
        write: Put the figure and the table into docs/evidence.md.
    """
    table = Table("τ", "waits", *(f"{each.name}: P(/t/)" for each in SCHEDULES))
    rows = list(zip(*(decisions(each) for each in SCHEDULES), strict=True))
    for row in rows:
        cells = [f"{each.t:.3f} {'right' if each.right else 'wrong'}" for each in row]
        tau = row[0].lookahead_frames
        table.add_row(str(tau), f"{row[0].waited_ms} ms", *cells)
    figures.draw_construction(out / "construction.svg")
    table.caption = f"a /d/ is spoken; frames of {FRAME_MS} ms"
    results = {each.name: [d.t for d in decisions(each)] for each in SCHEDULES}
    emit(table, results)
    if write:
        _write("construction", table, figures.draw_construction)


@app.command
def voicing(
    *,
    options: Annotated[VoicingOptions, Parameter(name="*")] = VoicingOptions(),  # noqa: B008
    out: Path = RUNS,
    write: bool = False,
) -> None:
    """Train models of each lookahead to tell /t/ from /d/, and let them hear the continuum.

    What a seed has found is kept: after Ctrl-C the same command goes on with the next seed.

    Args:
        options: How much is trained and tested.
        out: Folder for what is found, and for the figure.
        write: Put the figure and the table into docs/evidence.md.
    """
    parts = []
    with _progress(options.seeds * (len(LOOKAHEADS) + 2)) as report:
        for seed in range(options.seeds):

            def heard(seed: int = seed) -> dict[str, Any]:
                return identify(options, seed=seed, report=report).to_json()

            one = dataclasses.replace(options, seeds=1)
            values = _kept(out / f"voicing-{seed}.json", one, heard)
            parts.append(Identification.from_json(values))
    found = Identification.join(parts)
    table = Table(
        "τ", "heard behind the burst", "right answers, %", "the most that can be known, %"
    )
    results = []
    for number, tau in enumerate(found.lookaheads):
        mean, half = mean_over_seeds((100 * found.accuracy()[:, number]).tolist())
        ideal = 100 * ideal_accuracy(tau)
        table.add_row(str(tau), f"{10 * (tau + 1)} ms", f"{mean:.1f} ± {half:.1f}", f"{ideal:.1f}")
        results.append({"frames": tau, "accuracy": mean, "half": half, "ideal": ideal})
    table.caption = (
        f"{len(parts)} trainings of each lookahead, mean with its 95 % interval; "
        f"onsets of voicing as often as in speech"
    )
    figures.draw_voicing(found, out / "voicing.svg")
    emit(table, results)
    if write:
        _write("voicing", table, lambda path: figures.draw_voicing(found, path))


@app.command
def letters(*, out: Path = RUNS, write: bool = False) -> None:
    """Measure which letters the bundled recogniser of digits misses, by lookahead.

    It needs the corpus fsdd under NEARFUTURE_CORPORA.

    Args:
        out: Folder for the figure.
        write: Put the figure and the table into docs/evidence.md.
    """
    strings = test_strings(DigitRecordings.load())
    with _progress(len(strings)) as report:
        found = judged(
            load("digits"),
            load("digits-bidirectional"),
            strings,
            lambda number: report(f"recording {number} of {len(strings)}"),
        )
    by_letter = errors_by(found, lambda each: each.letter)
    by_place = errors_by(found, lambda each: each.in_word)
    taus = sorted(by_letter[0].delays)
    heads = [f"τ = {tau}, %" for tau in taus]
    table = Table("letter", "spoken", *heads, "both ways, %", "gain", "late at τ = 0, ms")
    gained = sorted(by_place, key=lambda each: -each.gain[0])[:8]
    for each in (*sorted(by_letter, key=lambda each: -each.gain[0])[:5], *gained):
        table.add_row(*_cells(each, taus, load("digits").manifest.frame_ms))
    table.caption = (
        f"{len(strings)} strings of digits, {len(found)} letters; missed, and the gain of the "
        f"largest lookahead over the smallest with its 95 % interval over strings"
    )
    figures.draw_letters(by_letter, out / "letters.svg")
    results = {
        each.name: {
            "count": each.count,
            "missed": {str(tau): rate for tau, rate in each.rates.items()},
            "gain": each.gain,
            "delay_frames": each.delays,
        }
        for each in (*by_letter, *by_place)
    }
    _save(out / "letters.json", results)
    emit(table, results)
    if write:
        _write("letters", table, lambda path: figures.draw_letters(by_letter, path))


def _cells(each: LetterErrors, taus: list[int], frame_ms: float) -> list[str]:
    value, low, high = (100 * rate for rate in each.gain)
    return [
        each.name,
        str(each.count),
        *(f"{100 * each.rates[tau][0]:.1f}" for tau in (*taus, None)),
        f"{value:.1f} ({low:.1f} to {high:.1f})",
        f"{frame_ms * each.delays[taus[0]][0]:.0f}",
    ]


@app.command
def text(
    *,
    options: Annotated[TaggerOptions, Parameter(name="*")] = TaggerOptions(),  # noqa: B008
    out: Path = RUNS,
    write: bool = False,
) -> None:
    """Train taggers of "bank" and 감사 one way, with a lookahead and both ways, and ask them.

    Args:
        options: How much is trained and tested.
        out: Folder for what is found, for the taggers of the first seed, and for the figure.
        write: Put the figure and the table into docs/evidence.md.
    """
    found = {}
    with _progress(len(FILES) * len(KINDS) * options.seeds) as report:
        for name in FILES:
            word = ambiguous_word(name)

            def keep(kind: str, tagger: Tagger, file: str = word.file) -> None:
                _keep(tagger.layer, _tagger_path(out, file, kind))

            def studied(word: AmbiguousWord = word) -> dict[str, Any]:
                return study(word, options, report, keep).to_json()

            values = _kept(out / f"text-{word.file}.json", options, studied)
            found[name] = Tagging.from_json(values)
    table = Table("word", "reads", "evidence before", *(f"{low} words behind" for low in _BANDS))
    for name, tagging in found.items():
        for kind, seeds in tagging.accuracy.items():
            table.add_row(name, kind, *_accuracies(seeds))
    table.caption = "right answers on new sentences, %; mean over seeds and the lowest seed"
    figures.draw_text(found, out / "text.svg")
    emit(table, {name: tagging.accuracy for name, tagging in found.items()})
    if write:
        _write("text", table, lambda path: figures.draw_text(found, path))


_BANDS = {"1–2": (1, 2), "3–4": (3, 4), "5 and more": (5, 99)}


def _accuracies(seeds: object) -> Iterator[str]:
    assert isinstance(seeds, list)
    for low, high in ((0, 0), *_BANDS.values()):
        values = [
            100 * sum(chosen) / len(chosen)
            for seed in seeds
            if (chosen := [v for distance, v in seed.items() if low <= distance <= high])
        ]
        yield f"{sum(values) / len(values):.0f} ({min(values):.0f})" if values else "–"


@app.command
def export(folder: Path, /, *, out: Path = RUNS) -> None:
    """Export the layer, the recogniser of /t/ and /d/, the taggers and the sounds for a page.

    What was trained by `text` is taken; the rest is trained first.

    Args:
        folder: Where the graphs go.
        out: Folder of what was trained.
    """
    with _progress(3 + len(FILES) * len(KINDS)) as report:
        report("the lookahead layer")
        graphs.export_construction(folder)
        for name in FILES:
            word = ambiguous_word(name)
            taggers = {}
            for kind in KINDS:
                report(f"{name}: {kind}")
                taggers[kind] = _tagger(out, name, kind)
            graphs.export_taggers(word, taggers, folder)
        report("training the recogniser of /t/ and /d/")
        model = _voicing(out)
        report("exporting the recogniser of /t/ and /d/")
        training = {
            "data": ["synthesised plosives and vowels (Apache-2.0)"],
            "command": "python -m recipes.evidence export",
            "commit": about()["commit"],
            "seed": 0,
        }
        graphs.export_voicing(model, folder, training=training)


def _tagger(out: Path, name: str, kind: str) -> Tagger:
    word = ambiguous_word(name)
    path = _tagger_path(out, word.file, kind)
    if not path.exists():
        tagger = train_tagger(word, kind, steps=TaggerOptions().steps, seed=0)
        _keep(tagger.layer, path)
    layer = build(kind, len(word.vocabulary))
    layer.load_state_dict(load_file(path))
    return Tagger(layer.eval(), word.vocabulary)


def _voicing(out: Path) -> Recognizer:
    path = out / "voicing.safetensors"
    if not path.exists():
        _keep(train_voicing(LOOKAHEADS, VoicingOptions(), seed=0), path)
    model = Recognizer(config(LOOKAHEADS))
    model.load_state_dict(load_file(path))
    return model.eval()


def _tagger_path(out: Path, file: str, kind: str) -> Path:
    return out / f"text-{file}-{kind.replace(' ', '-')}.safetensors"


@contextmanager
def _progress(total: int) -> Iterator[Callable[[str], None]]:
    """A bar on the terminal; each report says what is done next."""
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("", total=total, completed=-1)
        yield lambda activity: progress.update(task, advance=1, description=activity)


def _write(part: str, table: Table, draw: Callable[[Path], None]) -> None:
    draw(DOCS / "evidence" / f"{part}.svg")
    note = about()
    machine = f"`{note['command']}`, commit {note['commit']}, {note['processor']}"
    fill_page(PAGE, {f"{part} table": f"{markdown(table)}\n\n{table.caption}. {machine}."})


def _keep(module: nn.Module, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file(module.state_dict(), path)


def _kept(path: Path, options: object, find: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What was found before with the same options, or is found now and kept."""
    made_with = dataclasses.asdict(options)  # type: ignore[call-overload]
    if not path.exists():
        _save(path, {"options": made_with, "found": find()})
    values: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if values["options"] != made_with:
        raise NearfutureError(
            f"{path} was made with {values['options']}, not {made_with}: choose another `out`",
            code="conflict",
            parameter="out",
        )
    found: dict[str, Any] = values["found"]
    return found


def _save(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps(value, ensure_ascii=False) + "\n", encoding="utf-8")
    draft.replace(path)  # never half a file


if __name__ == "__main__":
    torch.set_num_threads(1)
    try:
        app()
    except NearfutureError as error:
        raise SystemExit(f"evidence: {error}") from error
    except KeyboardInterrupt:
        raise SystemExit("evidence: stopped; the same command goes on from here") from None
