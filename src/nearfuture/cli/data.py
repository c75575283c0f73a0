"""`nearfuture data`: import recordings, check them, and fetch public ones."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter
from rich.progress import Progress, TaskID
from rich.table import Table
from rich.text import Text

from nearfuture.cli.console import Console
from nearfuture.cli.options import Flag
from nearfuture.error import NearfutureError

if TYPE_CHECKING:
    from nearfuture.data import CorpusReport


data = App(name="data", help="Import recordings, check them, and fetch public ones.")

_EXAMPLES = 3
_STYLES = {
    "wrong": "bold red",
    "worth knowing": "bold yellow",
    "  …": "dim",
    "nothing": "bold green",
}


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SplitOptions:
    """Options for splitting recordings that have no splits.

    Attributes:
        split_by: Hold recordings out from training, if the source has no splits: those of whole
            speakers, or at random, so that speakers are in several splits.
        dev: Share of the audio for validation while training.
        test: Share of the audio for the final evaluation.
        seed: Seed of everything random.
    """

    split_by: Literal["speaker", "random"] | None = None
    dev: float = 0.1
    test: float = 0.1
    seed: int = 0


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ModelLimits:
    """The limits of the model to be trained on recordings.

    Attributes:
        vocabulary: Characters that the model can write, "abc…", or a model: its name, its folder or
            zip file, whose characters are used.
        longest: Report recordings longer than so many seconds; 40 by default.
        frame_ms: From one frame of the model to the next, in ms.
    """

    vocabulary: str | None = None
    longest: float | None = None
    frame_ms: float = 40.0


@data.command(name="import")
def import_(
    source: Path,
    /,
    *,
    out: Annotated[Path, Parameter(name="--out")],
    split: SplitOptions | None = None,
    copy: Flag = False,
    speaker_folders: Flag = False,
) -> None:
    """Write recordings of any form as one corpus: DIR/cuts.jsonl.gz, a Lhotse manifest.

    A recording that cannot be read or has no words is reported and skipped. One that is too long,
    or too short for its text, is reported and kept: training skips it by its own limits. The exit
    code is 0 if any recording is kept.

    Args:
        source: A folder of audio with a text file beside each; a CSV or TSV file with the columns
            path and transcript; NeMo's JSON lines; a Kaldi directory; a Lhotse manifest.
        out: Folder of the corpus.
        split: How to split.
        copy: Put copies of the audio into DIR/audio, instead of naming it where it is.
        speaker_folders: Each folder in a source without a list names its speaker: anna/1.wav, or
            train/anna/1.wav.
    """
    from nearfuture.data import assign_splits, check, read_source
    from nearfuture.data.corpora import write_corpus
    from nearfuture.data.sources import import_lhotse
    from nearfuture.data.split import shared_speakers
    from nearfuture.text import plural

    import_lhotse()
    split = split or SplitOptions()
    console = Console()
    with _progress() as bar:
        rows = read_source(source, speaker_folders=speaker_folders)
        report = check(rows, progress=bar("checking"))
        if split.split_by and report.cuts:
            by, dev, test, seed = split.split_by, split.dev, split.test, split.seed
            assigned = assign_splits(report.cuts, by=by, dev=dev, test=test, seed=seed)
            by_name = {cut.name: cut for cut in assigned}
            cuts = tuple(by_name.get(cut.name, cut) for cut in rows.cuts)
            report = check(replace(rows, cuts=cuts), progress=bar("checking the splits"))
        if report.cuts:
            root = source if source.is_dir() else source.parent
            path = write_corpus(report.cuts, out, root=root, copy=copy, progress=bar("writing"))
    _print(report, console, most=_EXAMPLES)
    if split.split_by == "random" and report.cuts:
        console.print(Text(shared_speakers(report.cuts), style="bold yellow"), soft_wrap=True)
    if not report.cuts:
        console.print(Text(f"nothing is left to write to {out}", style="bold red"))
        sys.exit(1)
    skipped = report.rows - len(report.cuts)
    summary = f"{path}: {plural(len(report.cuts), 'recording')}, {skipped} skipped"
    named = {name for issue in report.issues if issue.wrong for name, _ in issue.examples}
    if wrong := sum(cut.name in named for cut in report.cuts):
        summary += f"; {wrong} of them wrong, see above"
    style = "bold yellow" if skipped or wrong else "bold green"
    console.print(Text(summary, style=style), soft_wrap=True)


@data.command(name="check")
def check_(
    source: Path,
    /,
    *,
    model: ModelLimits | None = None,
    speaker_folders: Flag = False,
    every: Annotated[bool, Parameter(name="--all", negative="", show_default=False)] = False,
    as_json: Annotated[bool, Parameter(name="--json", negative="", show_default=False)] = False,
) -> None:
    """Report the recordings of a source, and every problem that would harm training.

    The exit code is 0 if nothing is wrong, 1 if something is.

    Args:
        source: The recordings, in any form that nearfuture data import reads.
        model: What the model requires.
        speaker_folders: Each folder in a source without a list names its speaker: anna/1.wav.
        every: Name every file, not only the first few of each kind.
        as_json: Print everything as JSON instead.
    """
    from nearfuture.budget import FeatureConfig, RecognizerConfig
    from nearfuture.data import CutFilter, check, read_source
    from nearfuture.data.filter import LONGEST_S

    model = model or ModelLimits()
    # The features that all presets share: a window 15 ms longer than a frame.
    features = FeatureConfig(window_ms=model.frame_ms + 15.0, hop_ms=model.frame_ms)
    config = RecognizerConfig(features=features, stack=1)
    longest_s = LONGEST_S if model.longest is None else model.longest
    symbols = None if model.vocabulary is None else _symbols(model.vocabulary)
    with _progress() as bar:
        report = check(
            read_source(source, speaker_folders=speaker_folders),
            symbols=symbols,
            cut_filter=CutFilter(longest_s=longest_s, model=config),
            progress=bar("checking"),
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
        to: Folder of all corpora; by default the one that NEARFUTURE_CORPORA names.
    """
    from nearfuture.data.corpora import CORPORA, corpora_folder, corpus_folder

    console = Console()
    try:
        here = f" Here: in {corpora_folder(to)}."
    except NearfutureError:
        here = ""
    table = Table()
    table.add_column("name", no_wrap=True)  # it is what has to be typed
    for column in ("hours", "MB", "Hz", "licence", "here"):
        table.add_column(column)
    for corpus in CORPORA.values():
        table.add_row(
            corpus.name,
            f"{corpus.hours:g}",
            f"{corpus.megabytes}",
            f"{corpus.rate}",
            corpus.licence,
            "yes" if corpus_folder(corpus.name, to) else "–",
        )
    console.print(table)
    console.print(
        Text(f"Hours and MB are about.{here} To fetch one: nearfuture data fetch NAME. They are:"),
        soft_wrap=True,
    )
    for corpus in CORPORA.values():
        console.print(Text(f"{corpus.name}: {corpus.about}"), soft_wrap=True)
        for archive in corpus.archives:
            line = f"  from {archive.url}"
            if not archive.url.endswith(f"/{archive.name}"):
                line += f" (on a mirror: {archive.name})"
            kind = archive.checksum.partition(":")[0]
            line += f", {kind} checked" if kind else ", whose publisher states no checksum"
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

    A fetch that was stopped resumes with the same command.

    Args:
        name: One of those that `nearfuture data list` shows.
        to: Folder of all corpora, in which NAME is made; what NEARFUTURE_CORPORA names unless
            given.
        mirror: Address of a folder that holds the same archives.
    """
    from nearfuture.data.corpora import corpora_folder, fetch, public_corpus

    corpus = public_corpus(name)
    root = corpora_folder(to)
    with _progress() as bar:
        report = fetch(corpus, root, mirror=mirror, progress=lambda task, *far: bar(task)(*far))
    console = Console()
    _print(report, console, most=_EXAMPLES)
    console.print(Text(f"{root / name} is ready ({corpus.licence})", style="bold green"))


def _symbols(vocabulary: str) -> str:
    """The characters of a model, or those that are listed."""
    from nearfuture.runtime import Bundle, bundled

    if vocabulary in bundled() or Path(vocabulary).exists():
        return "".join(Bundle.open(vocabulary).manifest.vocabulary.symbols)
    if not vocabulary:
        raise NearfutureError(
            "a vocabulary has at least one character; name a model, or write it",
            parameter="vocabulary",
        )
    if any(mark in vocabulary for mark in "/\\") or vocabulary.endswith(".zip"):
        raise NearfutureError(
            f"there is no model {vocabulary}, and it is no list of characters",
            code="not_found",
            parameter="vocabulary",
        )
    return vocabulary


@contextmanager
def _progress() -> Iterator[Callable[[str], Callable[[int, int | None], None]]]:
    """Progress bars on stderr, one for each task, which disappear at the end."""
    console = Console(stderr=True)
    # A file would only get an empty line.
    disable = not console.is_terminal
    with Progress(console=console, transient=True, disable=disable) as bars:
        tasks: dict[str, TaskID] = {}

        def bar(name: str) -> Callable[[int, int | None], None]:
            if name not in tasks:
                tasks[name] = bars.add_task(name, total=None)
            return lambda done, total: bars.update(tasks[name], completed=done, total=total)

        yield bar


def _print(report: "CorpusReport", console: Console, *, most: int | None) -> None:
    for line in report.lines(most=most):
        style = next((style for start, style in _STYLES.items() if line.startswith(start)), "")
        console.print(Text(line, style=style), soft_wrap=True)
