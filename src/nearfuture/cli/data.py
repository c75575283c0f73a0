"""`nearfuture data`: recordings in, checked and fetched."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from nearfuture.cli.console import Console
from nearfuture.error import NearfutureError

if TYPE_CHECKING:
    from nearfuture.data.report import Report

Flag = Annotated[bool, Parameter(negative="", show_default=False)]

data = App(name="data", help="Import recordings, check them, and fetch public ones.")

_EXAMPLES = 3


@data.command(name="import")
def import_(
    source: Path,
    /,
    *,
    out: Annotated[Path, Parameter(name="--out")],
    split_by: Literal["speaker", "random"] | None = None,
    dev: float = 0.1,
    test: float = 0.1,
    seed: int = 0,
    copy: Flag = False,
    speaker_folders: Flag = False,
) -> None:
    """Write recordings of any form as one corpus: DIR/cuts.jsonl.gz, a manifest of Lhotse.

    What cannot be read or says nothing is named and left out. What else is wrong (too long, too
    short for its text) is named and kept: trainings leave it out by limits of their own. The exit
    code is 0 if anything is left.

    Args:
        source: A folder of audio with a text file beside each; a CSV or TSV file with the columns
            path and transcript; NeMo's JSON lines; a Kaldi directory; a manifest of Lhotse.
        out: Folder of the corpus.
        split_by: Keep some away from training, where the source has no splits: whole speakers, or
            recordings at random, so that the same voices are on both sides.
        dev: Share of the audio to watch while training.
        test: Share of the audio to judge by at the end.
        seed: Everything random follows from it.
        copy: Put copies of the audio into DIR/audio, instead of naming it where it is.
        speaker_folders: Each folder in a source without a list names who speaks: anna/1.wav, or
            train/anna/1.wav.
    """
    from nearfuture.data.check import check
    from nearfuture.data.formats.lhotse_manifest import the_library
    from nearfuture.data.importing import write_corpus
    from nearfuture.data.source import read_source
    from nearfuture.data.split import assign_splits, voices_on_both_sides
    from nearfuture.text import counted

    the_library()
    console = Console()
    with _progress() as show:
        read = read_source(source, speaker_folders=speaker_folders)
        report = check(read, progress=show("looking"))
        if split_by and report.items:
            split = assign_splits(report.items, by=split_by, dev=dev, test=test, seed=seed)
            by_name = {item.name: item for item in split}
            items = tuple(by_name.get(item.name, item) for item in read.items)
            report = check(replace(read, items=items), progress=show("looking again"))
        if report.items:
            root = source if source.is_dir() else source.parent
            path = write_corpus(report.items, out, root=root, copy=copy, progress=show("writing"))
    _print(report, console, most=_EXAMPLES)
    if split_by == "random" and report.items:
        console.print(Text(voices_on_both_sides(report.items), style="bold yellow"), soft_wrap=True)
    if not report.items:
        console.print(Text(f"nothing is left to write to {out}", style="bold red"))
        sys.exit(1)
    left_out = report.rows - len(report.items)
    said = f"{path}: {counted(len(report.items), 'recording')}, {left_out} left out"
    named = {name for finding in report.findings if finding.wrong for name, _ in finding.examples}
    if wrong := sum(item.name in named for item in report.items):
        said += f"; {wrong} of them wrong, see above"
    style = "bold yellow" if left_out or wrong else "bold green"
    console.print(Text(said, style=style), soft_wrap=True)


@data.command(name="check")
def check_(
    source: Path,
    /,
    *,
    vocabulary: str | None = None,
    longest: float | None = None,
    frame_ms: float = 40.0,
    speaker_folders: Flag = False,
    every: Annotated[bool, Parameter(name="--all", negative="", show_default=False)] = False,
    as_json: Annotated[bool, Parameter(name="--json", negative="", show_default=False)] = False,
) -> None:
    """Say what recordings there are, and name everything that would spoil a training.

    The exit code is 0 if nothing is wrong, 1 if something is.

    Args:
        source: As for import.
        vocabulary: Characters that the model can write, "abc…", or a model: its name, its folder or
            zip file, whose characters are taken.
        longest: Name recordings longer than so many seconds; 40 unless given.
        frame_ms: From one frame of the model to the next, in ms.
        speaker_folders: As for import.
        every: Name every file, not only the first few of each kind.
        as_json: Print everything as JSON instead.
    """
    from nearfuture.budget import FeatureConfig, RecognizerConfig
    from nearfuture.data.check import check
    from nearfuture.data.limits import LONGEST_S, Limits
    from nearfuture.data.source import read_source

    # The features that all presets share: a window 15 ms longer than a frame.
    features = FeatureConfig(window_ms=frame_ms + 15.0, hop_ms=frame_ms)
    model = RecognizerConfig(features=features, stack=1)
    limits = Limits(longest_s=LONGEST_S if longest is None else longest, model=model)
    symbols = None if vocabulary is None else _symbols(vocabulary)
    with _progress() as show:
        report = check(
            read_source(source, speaker_folders=speaker_folders),
            symbols=symbols,
            limits=limits,
            progress=show("looking"),
        )
    if as_json:
        print(report.to_json())
    else:
        _print(report, Console(), most=None if every else _EXAMPLES)
    sys.exit(0 if report.ok else 1)


@data.command(name="list")
def list_(*, to: Annotated[Path | None, Parameter(name="--to")] = None) -> None:
    """Show the public corpora that can be fetched, and which are here.

    Args:
        to: Folder of all corpora; what NEARFUTURE_CORPORA names unless given.
    """
    from nearfuture.data.fetch import corpora_folder, fetched
    from nearfuture.data.public import CORPORA

    console = Console()
    try:
        root = corpora_folder(to)
    except NearfutureError:
        root = None
    table = Table()
    table.add_column("name", no_wrap=True)  # it is what has to be typed
    for column in ("hours", "MB", "Hz", "licence", "here"):
        table.add_column(column)
    for corpus in CORPORA.values():
        there = None if root is None else fetched(corpus, root)
        table.add_row(
            corpus.name,
            f"{corpus.hours:g}",
            f"{corpus.megabytes}",
            f"{corpus.rate}",
            corpus.licence,
            "yes" if there else "–",
        )
    console.print(table)
    where = "" if root is None else f" Here: in {root}."
    console.print(
        Text(f"Hours and MB are about.{where} To fetch one: nearfuture data fetch NAME. They are:"),
        soft_wrap=True,
    )
    for corpus in CORPORA.values():
        console.print(Text(f"{corpus.name}: {corpus.about}"), soft_wrap=True)
        for archive in corpus.archives:
            line = f"  from {archive.url}"
            if not archive.url.endswith(f"/{archive.name}"):
                line += f" (on a mirror: {archive.name})"
            kind = archive.checksum.partition(":")[0]
            line += f", {kind} checked" if kind else ", whose publisher tells no checksum"
            console.print(Text(line), soft_wrap=True)


@data.command(name="fetch")
def fetch_(
    name: str,
    /,
    *,
    to: Annotated[Path | None, Parameter(name="--to")] = None,
    mirror: str | None = None,
) -> None:
    """Fetch a public corpus, compare its checksum, and make it ready for training.

    Whatever stops on the way goes on from there with the same command.

    Args:
        name: One of those that `nearfuture data list` shows.
        to: Folder of all corpora, in which NAME is made; what NEARFUTURE_CORPORA names unless
            given.
        mirror: Address of a folder that holds the same archives.
    """
    from nearfuture.data.fetch import corpora_folder, fetch
    from nearfuture.data.public import public_corpus

    corpus = public_corpus(name)
    root = corpora_folder(to)
    with _progress() as show:
        report = fetch(corpus, root, mirror=mirror, progress=lambda doing, *far: show(doing)(*far))
    console = Console()
    _print(report, console, most=_EXAMPLES)
    console.print(Text(f"{root / name} is ready ({corpus.licence})", style="bold green"))


def _symbols(vocabulary: str) -> str:
    """The characters of a model, or those given."""
    from nearfuture.runtime.bundle import Bundle, bundled

    if vocabulary in bundled() or Path(vocabulary).exists():
        return "".join(Bundle.open(vocabulary).manifest.vocabulary.symbols)
    if not vocabulary:
        raise NearfutureError("a vocabulary has at least one character; name a model, or write it")
    if any(mark in vocabulary for mark in "/\\") or vocabulary.endswith(".zip"):
        raise NearfutureError(f"there is no model {vocabulary}, and it is no list of characters")
    return vocabulary


@contextmanager
def _progress() -> Iterator[Callable[[str], Callable[[int, int | None], None]]]:
    """Bars on stderr, which go when all is done; each is known by what is being done."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    # To a file it would say nothing but an empty line.
    off = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=off) as bars:
        tasks: dict[str, TaskID] = {}

        def show(doing: str) -> Callable[[int, int | None], None]:
            if doing not in tasks:
                tasks[doing] = bars.add_task(doing, total=None)
            task = tasks[doing]
            return lambda done, total: bars.update(task, completed=done, total=total)

        yield show


def _print(report: "Report", console: Console, *, most: int | None) -> None:
    table = Table(title=str(report.path), show_header=False, title_justify="left")
    table.add_column(style="bold")
    table.add_column()
    for name, value in report.figures():
        table.add_row(name, Text(value))
    console.print(table)
    for finding in report.findings:
        style = "bold red" if finding.wrong else "bold yellow"
        mark = "wrong" if finding.wrong else "worth knowing"
        console.print(Text(f"{mark}: {finding.kind}: {len(finding.examples)}", style=style))
        shown = finding.examples if most is None else finding.examples[:most]
        for name, reason in shown:
            console.print(Text(report.short(f"  {name}: {reason}")), soft_wrap=True)
        if more := len(finding.examples) - len(shown):
            console.print(Text(f"  … and {more} more: data check --all names them", style="dim"))
    if report.ok:
        console.print(Text("nothing is wrong", style="bold green"))
