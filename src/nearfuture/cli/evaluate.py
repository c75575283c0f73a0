"""`nearfuture evaluate`: errors and delays of every budget, beside the bidirectional twin."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter
from rich.progress import track
from rich.text import Text

from nearfuture.cli.console import Console
from nearfuture.cli.dataset import evenly_spaced, warn_skipped
from nearfuture.cli.options import Flag
from nearfuture.cli.results import check_writable
from nearfuture.error import MissingDependency, NearfutureError

if TYPE_CHECKING:
    from nearfuture.data import Cut
    from nearfuture.runtime import Bundle


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class EvaluationData:
    """The recordings to evaluate on.

    Args:
        data: Recordings with their texts: a folder, a list of them (CSV, TSV, JSON lines), a Kaldi
            directory or a Lhotse manifest.
        split: Only recordings of this split; by default those of "test", or of "dev" where there is
            no such split.
        limit: At most so many recordings, spread evenly over the data.
    """

    data: Path
    split: str | None = None
    limit: int | None = None

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 1:
            raise NearfutureError(
                f"`limit` is a number of recordings from 1, not {self.limit}",
                code="out_of_range",
                parameter="limit",
            )


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class EvaluationOutput:
    """The files that an evaluation writes besides its tables.

    Args:
        speakers: Also print the errors of each speaker.
        json_file: Write all results to this file, the hypotheses of each recording included.
        plot: Write a plot of character errors against latency to this file, .png or .svg.
    """

    speakers: Flag = False
    json_file: Annotated[Path | None, Parameter(name="--json")] = None
    plot: Path | None = None

    def check(self) -> None:
        """Refuse before an hour of decoding a file that could not be written after it."""
        for parameter, path in (("json_file", self.json_file), ("plot", self.plot)):
            if path is not None:
                check_writable(path, parameter)
        if self.plot is not None and self.plot.suffix.lower() not in (".png", ".svg"):
            raise NearfutureError(
                f"`plot` is a .png or .svg file, not {self.plot}",
                code="unsupported",
                parameter="plot",
            )
        if self.plot is not None and find_spec("matplotlib") is None:
            raise MissingDependency("`plot`", "matplotlib", "pip install matplotlib")


def evaluate(
    *,
    recordings: EvaluationData,
    model: str = "digits",
    twin: str | None = None,
    budgets: str = "all",
    by: Literal["utterance", "speaker"] = "utterance",
    output: EvaluationOutput = EvaluationOutput(),
) -> None:
    """Measure errors and delays of every budget of a streaming model, beside its twin.

    Recordings are streamed through the runtime in chunks of 40 ms at their own rate, once for all
    budgets. Those that cannot be read are named on stderr and skipped.

    Args:
        recordings: The recordings to evaluate on.
        model: A streaming bundle: a bundled model, a folder or a zip file.
        twin: The bidirectional bundle to compare with; it also aligns the references, to find
            the time of each word. Without it there are error rates only.
        budgets: "all", or worst-case latencies in ms between commas, such as 215,375: for each the
            largest lookahead within it at the model's own rate.
        by: What the bootstrap resamples for 95 % intervals. Recordings of one speaker resemble each
            other: for a statement about other speakers, resample speakers.
        output: What to write besides the tables.
    """
    from nearfuture.evaluation import evaluate_bundles, plot_error_against_latency
    from nearfuture.evaluation.table import notes, tables
    from nearfuture.runtime import Bundle

    output.check()
    bundle = Bundle.open(model)
    heads = None if budgets == "all" else _heads(bundle, budgets)
    items, problems, split = _read(recordings)
    if by == "speaker" and len({item.speaker for item in items} - {""}) < 2:
        raise NearfutureError(
            "`by=speaker` needs recordings of at least 2 speakers whom the data names; leave it "
            "out",
            parameter="by",
        )

    console = Console()
    progress = track(items, "decoding", console=console, transient=True)
    evaluation = evaluate_bundles(bundle, twin, progress, heads=heads)
    warn_skipped([*problems, *evaluation.problems])
    summary = evaluation.summary(by)
    console.print(Text(f"{recordings.data}: {split}"), soft_wrap=True)
    if foreign := _foreign_characters(bundle, items):
        console.print(Text(foreign, style="bold"), soft_wrap=True)
    for table in tables(evaluation, summary, speakers=output.speakers):
        console.print(table)
    for line in notes(evaluation, summary):
        console.print(Text(line))
    if output.json_file is not None:
        evaluation.save(output.json_file, by)
        console.print(Text(f"written: {output.json_file}"))
    if output.plot is not None:
        plot_error_against_latency({bundle.manifest.name: evaluation}, output.plot, by=by)
        console.print(Text(f"written: {output.plot}"))


def _heads(bundle: "Bundle", budgets: str) -> list[int]:
    """Find the head of each budget; the planner refuses budgets that no head keeps."""
    from nearfuture.budget import largest_lookahead

    if not bundle.manifest.heads:
        raise NearfutureError(
            f"{bundle.manifest.name} is bidirectional and keeps no budget",
            code="unsupported",
            parameter="model",
        )
    try:
        budgets_ms = [float(part) for part in budgets.split(",")]
    except ValueError:
        raise NearfutureError(
            f"`budgets` takes milliseconds between commas, such as 215,375, or all, not "
            f"{budgets!r}",
            parameter="budgets",
        ) from None
    return [largest_lookahead(ms, bundle.manifest.heads) for ms in budgets_ms]


def _read(recordings: EvaluationData) -> "tuple[Sequence[Cut], list[str], str]":
    """Return the recordings of the split, a line for each that is skipped, and the split."""
    from nearfuture.data import read_source

    source = read_source(recordings.data)
    splits = sorted({cut.split for cut in source.cuts} - {""})
    split = recordings.split
    if split is not None and split not in splits:
        raise NearfutureError(
            f"{recordings.data} has no split {split!r}: it has "
            f"{', '.join(splits) or 'no splits at all'}",
            code="not_found",
            parameter="split",
        )
    if split is None and splits:  # never the recordings of the training by default
        split = next((name for name in ("test", "dev") if name in splits), None)
        if split is None:
            raise NearfutureError(
                f"{recordings.data} has the splits {', '.join(splits)}, and neither test nor dev: "
                f"say which with `split`",
                parameter="split",
            )
    items = [cut for cut in source.cuts if split is None or cut.split == split]
    if not items:
        warn_skipped(source.problems)
        raise NearfutureError(
            f"{recordings.data} has no usable recording", code="not_found", parameter="data"
        )
    name = "all recordings, since the data has no splits" if split is None else f"split {split}"
    return evenly_spaced(items, recordings.limit), list(source.problems), name


def _foreign_characters(bundle: "Bundle", items: "Sequence[Cut]") -> str:
    """Say which texts have characters that the model cannot write; nothing where none has."""
    symbols = {" ", *bundle.manifest.vocabulary.symbols}
    foreign = [set(item.text) - symbols for item in items]
    count = sum(map(bool, foreign))
    if not count:
        return ""
    shown = ", ".join(repr(character) for character in sorted(set().union(*foreign))[:10])
    return (
        f"{count} of {len(items)} texts have characters that {bundle.manifest.name} does not write "
        f"({shown}): they count as errors"
    )
