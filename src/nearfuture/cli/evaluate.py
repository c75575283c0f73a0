"""`nearfuture evaluate`: errors and delays of every budget, beside the bidirectional twin."""

import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter
from rich.progress import track
from rich.text import Text

from nearfuture.cli.console import Console
from nearfuture.error import NearfutureError

if TYPE_CHECKING:
    from nearfuture.data import Item, Utterance
    from nearfuture.runtime import Bundle

    Items = Sequence[Item | Utterance]

_MOST_NAMED = 10  # problems, before the rest is only counted

Flag = Annotated[bool, Parameter(negative="", show_default=False)]


def evaluate(
    *,
    model: str = "digits",
    twin: str | None = None,
    data: Path | None = None,
    split: str | None = None,
    budgets: str = "all",
    limit: int | None = None,
    by: Literal["utterance", "speaker"] = "utterance",
    speakers: Flag = False,
    json_file: Annotated[Path | None, Parameter(name="--json")] = None,
    plot: Path | None = None,
) -> None:
    """Measure errors and delays of every budget of a streaming model, beside its twin.

    Recordings are streamed through the runtime in chunks of 40 ms at their own rate, once for all
    budgets. Those that cannot be read are named on stderr and left out.

    Args:
        model: A streaming bundle: a bundled model, a folder or a zip file.
        twin: The bidirectional bundle to compare with, which also says where each word is spoken;
            without it there are error rates only.
        data: Recordings with their texts: a folder, a list of them (CSV, TSV, JSON lines), a Kaldi
            directory or a manifest of Lhotse.
        split: Only recordings of this split; unless given those of "test", or of "dev" where there
            is no such split.
        budgets: Worst-case latencies in ms between commas, such as 215,375: for each the largest
            lookahead that keeps it at the model's own rate. Or "all" there are.
        limit: At most so many recordings, spread evenly over the data.
        by: What 95 % intervals are drawn over. Recordings of one speaker resemble each other: for a
            statement about other speakers, draw speakers.
        speakers: Also print the errors of each speaker.
        json_file: Write everything here, each recording's texts included.
        plot: Write a plot of character errors against latency here, .png or .svg.
    """
    from nearfuture.evaluation import evaluate_bundles, plot_error_against_latency
    from nearfuture.evaluation.table import notes, tables
    from nearfuture.runtime import Bundle

    if data is None:
        raise NearfutureError("say what to evaluate on: --data SOURCE")
    if limit is not None and limit < 1:
        raise NearfutureError(f"--limit is a number of recordings from 1, not {limit}")
    _check_files(json_file, plot)
    bundle = Bundle.open(model)
    heads = None if budgets == "all" else _heads(bundle, budgets)
    items, problems, what = _items(data, split)
    items = _spread(items, limit)
    if by == "speaker" and len({one.speaker for one in items} - {""}) < 2:
        raise NearfutureError(
            "--by speaker needs recordings of at least 2 speakers whom the data names; leave it out"
        )

    console = Console()
    heard = evaluate_bundles(
        bundle,
        twin,
        track(items, "listening", console=console, transient=True),
        heads=heads,
    )
    _name([*problems, *heard.problems])
    summary = heard.summary(by)
    console.print(Text(what), soft_wrap=True)
    if foreign := _foreign(bundle, items):
        console.print(Text(foreign, style="bold"), soft_wrap=True)
    for table in tables(heard, summary, speakers=speakers):
        console.print(table)
    for line in notes(heard, summary):
        console.print(Text(line))
    if json_file is not None:
        heard.save(json_file, by)
        console.print(Text(f"written: {json_file}"))
    if plot is not None:
        plot_error_against_latency({heard.streaming.name: heard}, plot, by=by)
        console.print(Text(f"written: {plot}"))


def _check_files(json_file: Path | None, plot: Path | None) -> None:
    """Refuse before an hour of listening what could not be written after it."""
    for flag, path in (("--json", json_file), ("--plot", plot)):
        if path is None:
            continue
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise NearfutureError(f"{flag} {path} cannot be written: {error.strerror}") from error
        if path.is_dir() or not os.access(path.parent, os.W_OK):
            raise NearfutureError(f"{flag} {path} cannot be written: name a file in your reach")
    if plot is not None and plot.suffix.lower() not in (".png", ".svg"):
        raise NearfutureError(f"--plot names a .png or .svg file, not {plot}")
    if plot is not None and find_spec("matplotlib") is None:
        raise NearfutureError(
            "--plot needs matplotlib, which the base install leaves out; install it with: "
            "pip install matplotlib"
        )


def _heads(bundle: "Bundle", budgets: str) -> list[int]:
    """The head of each budget; that a budget cannot be kept is said by the planner."""
    from nearfuture.budget import largest_lookahead

    if not bundle.manifest.heads:
        raise NearfutureError(f"{bundle.manifest.name} is bidirectional and keeps no budget")
    try:
        wanted = [float(part) for part in budgets.split(",")]
    except ValueError:
        raise NearfutureError(
            f"--budgets takes milliseconds between commas, such as 215,375, or all, not {budgets!r}"
        ) from None
    return [largest_lookahead(ms, bundle.manifest.heads) for ms in wanted]


def _items(data: Path, split: str | None) -> "tuple[Items, list[str], str]":
    """What to listen to, what cannot be used, and which part of the data this is."""
    from nearfuture.data import read_source

    source = read_source(data)
    splits = sorted({item.split for item in source.items} - {""})
    if split is not None and split not in splits:
        raise NearfutureError(
            f"{data} has no split {split!r}: it has {', '.join(splits) or 'no splits at all'}"
        )
    if split is None and splits:  # never what a model was trained on, unless somebody says so
        split = next((name for name in ("test", "dev") if name in splits), None)
        if split is None:
            raise NearfutureError(
                f"{data} has the splits {', '.join(splits)}, and neither test nor dev: say which "
                f"with --split"
            )
    items = [item for item in source.items if split is None or item.split == split]
    if not items:
        _name(source.problems)
        raise NearfutureError(f"{data} has no recording that can be used")
    what = "all recordings: the data tells no splits" if split is None else f"the split {split}"
    return items, list(source.problems), f"{data}: {what}"


def _foreign(bundle: "Bundle", items: "Items") -> str:
    """Which texts the model cannot write, whatever it hears; nothing where it can write all."""
    symbols = {" ", *bundle.manifest.vocabulary.symbols}
    foreign = [set(item.text) - symbols for item in items]
    count = sum(map(bool, foreign))
    if not count:
        return ""
    shown = ", ".join(repr(character) for character in sorted(set().union(*foreign))[:10])
    return (
        f"{count} of {len(items)} texts have characters that {bundle.manifest.name} does not write "
        f"({shown}): they count as errors, whatever it hears"
    )


def _spread(items: "Items", limit: int | None) -> "Items":
    """So many of them, at even distances: lists are often sorted by speaker."""
    if limit is None or limit >= len(items):
        return items
    return [items[number * len(items) // limit] for number in range(limit)]


def _name(problems: Sequence[str]) -> None:
    for line in problems[:_MOST_NAMED]:
        print(f"nearfuture: left out: {line}", file=sys.stderr)
    if len(problems) > _MOST_NAMED:
        print(f"nearfuture: left out: {len(problems) - _MOST_NAMED} more", file=sys.stderr)
