"""`nearfuture measure`: delays and errors of a server, measured by its clients."""

import asyncio
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

from cyclopts import Parameter
from rich.progress import track
from rich.status import Status
from rich.text import Text

from nearfuture.cli.console import Console
from nearfuture.cli.dataset import evenly_spaced, warn_skipped
from nearfuture.cli.results import check_writable
from nearfuture.cli.stream import ServerOptions
from nearfuture.client.options import MeasureOptions
from nearfuture.error import NearfutureError

if TYPE_CHECKING:
    from nearfuture.audio import Audio
    from nearfuture.client.measure import PlayedRecording, ReferenceRecording
    from nearfuture.data import Cut

_Loader: TypeAlias = "tuple[str, Callable[[], tuple[Audio, str | None]]]"
"""A recording by its name, not read yet; its text is None where that is not known."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SourceOptions:
    """The recordings to play.

    Attributes:
        data: Recordings with their texts instead of files: a folder, a list of them (CSV, TSV, JSON
            lines), a Kaldi directory or a Lhotse manifest.
        limit: At most so many of them, spread evenly over the data.
        words: Where each word is spoken, as nearfuture align --out words.jsonl writes it.
    """

    data: Path | None = None
    limit: int = 100
    words: Path | None = None


def measure(
    url: str,
    files: Annotated[list[Path] | None, Parameter(negative="")] = None,
    /,
    *,
    server: ServerOptions = ServerOptions(),  # noqa: B008 - frozen
    source: SourceOptions = SourceOptions(),
    options: Annotated[MeasureOptions, Parameter(name="*")] = MeasureOptions(),  # noqa: B008
    json_file: Annotated[Path | None, Parameter(name="--json")] = None,
) -> None:
    """Play recordings to a server in real time and measure its delays and errors.

    Works with any server of one of the protocols. docs/measure.md defines every metric. The exit
    code is 1 if a recording failed or the client itself could not keep pace.

    Args:
        url: The server, such as ws://localhost:2700 or wss://host/v1/realtime.
        files: The recordings; the transcript of a.wav is in a.txt beside it, if that is there.
        server: How to talk to the server.
        source: The recordings to play.
        options: How to play them.
        json_file: Write all results to this file, the metrics and texts of each recording included.
    """
    from nearfuture.client.measure import as_json, notes, table
    from nearfuture.client.measure import measure as play

    make = server.protocol_factory()
    if json_file is not None:
        check_writable(json_file, "json_file")
    console = Console()
    recordings, problems = _recordings(files or [], source, server)
    warn_skipped(problems)
    connect = server.connector(url)
    count = 0

    with Status("connecting", console=Console(stderr=True)) as status:

        def report(played: "PlayedRecording") -> None:
            nonlocal count
            count += 1
            status.update(f"{count} recordings played, the last: {played.failure or 'complete'}")

        measurement = asyncio.run(play(recordings, connect, make, options, on_played=report))
    if measurement.complete:
        many = "connection" if options.connections == 1 else "connections"
        title = f"{url}, {server.protocol} protocol, {options.connections} {many}"
        console.print(table(measurement, title=title))
    for line in notes(measurement):
        console.print(Text(line))
    if json_file is not None:
        about = {
            "url": url,
            "protocol": server.protocol,
            "budget_ms": server.budget_ms,
            "model": server.model,
            **asdict(options),
        }
        text = json.dumps(as_json(measurement, about), ensure_ascii=False, indent=1)
        json_file.write_text(text + "\n", encoding="utf-8")
        console.print(Text(f"written: {json_file}"))
    if measurement.failures or not measurement.kept_pace:
        sys.exit(1)


def _recordings(
    files: Sequence[Path], source: SourceOptions, server: ServerOptions
) -> "tuple[list[ReferenceRecording], list[str]]":
    """Read what to play before the clock runs; a line for each recording that cannot be."""
    from nearfuture.client.measure import ReferenceRecording, read_word_times
    from nearfuture.client.protocols import sent_rate

    if (source.data is None) == (not files):
        raise NearfutureError(
            "name recordings to play, or a source in `data`: either one, not both", code="conflict"
        )
    if source.limit < 1:
        raise NearfutureError(
            f"`limit` is a number of recordings from 1, not {source.limit}",
            code="out_of_range",
            parameter="limit",
        )
    times = {} if source.words is None else read_word_times(source.words)
    loaders, problems = (
        _of_files(files) if source.data is None else _of_data(source.data, source.limit)
    )
    recordings, timed = [], 0
    for name, load in track(
        loaders, "reading", console=Console(stderr=True), transient=True, disable=len(loaders) < 10
    ):
        try:
            audio, text = load()
            words = times.get(name, times.get(Path(name).name, ()))
            timed += bool(words)
            rate = sent_rate(server.protocol, audio.rate)
            recordings.append(ReferenceRecording.of(name, audio, to=rate, text=text, words=words))
        except NearfutureError as error:
            message = str(error)
            problems.append(message if name in message else f"{name}: {message}")
    if source.words is not None and recordings and not timed:
        raise NearfutureError(
            f"`words` {source.words} has the times of {', '.join([*times][:3]) or 'nothing'}, none "
            f"of which is played: align these recordings, or leave `words` away",
            parameter="words",
        )
    return recordings, problems


def _of_files(files: Sequence[Path]) -> tuple[list[_Loader], list[str]]:
    def load(path: Path) -> "tuple[Audio, str | None]":
        from nearfuture.audio import read

        try:
            text = path.with_suffix(".txt").read_text(encoding="utf-8-sig")
        except FileNotFoundError:
            text = None
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "not UTF-8"
            raise NearfutureError(f"{path}: its text cannot be read: {reason}") from error
        return read(path), text

    return [(str(path), partial(load, path)) for path in files], []


def _of_data(data: Path, limit: int) -> tuple[list[_Loader], list[str]]:
    from nearfuture.data import read_source

    def load(cut: "Cut") -> "tuple[Audio, str | None]":
        return cut.read(), cut.text

    source = read_source(data)
    cuts = evenly_spaced(source.cuts, limit)
    return [(cut.name, partial(load, cut)) for cut in cuts], list(source.problems)
