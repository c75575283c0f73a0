"""`nearfuture measure`: how late a server's text is and what it loses, as its clients see it."""

import asyncio
import json
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

from cyclopts import Parameter
from rich.progress import track
from rich.status import Status
from rich.text import Text

from nearfuture.cli.console import Console
from nearfuture.cli.stream import ApiKey, ProtocolOption
from nearfuture.error import NearfutureError

if TYPE_CHECKING:
    from nearfuture.audio import Audio
    from nearfuture.client import Played, Recording
    from nearfuture.data import Item

_Wanted: TypeAlias = "tuple[str, Callable[[], tuple[Audio, str | None]]]"
"""A recording by its name, not read yet; its text is None where that is not known."""

_MOST_NAMED = 10
_LIMIT = 100


def measure(
    url: str,
    files: Annotated[list[Path] | None, Parameter(negative="")] = None,
    /,
    *,
    protocol: ProtocolOption,
    data: Path | None = None,
    limit: int = _LIMIT,
    words: Path | None = None,
    connections: int = 1,
    seconds: float | None = None,
    chunk_ms: float = 20.0,
    patience_s: float = 30.0,
    budget_ms: Annotated[float | None, Parameter(name="--budget")] = None,
    model: str | None = None,
    api_key: ApiKey = None,
    json_file: Annotated[Path | None, Parameter(name="--json")] = None,
) -> None:
    """Play recordings to a server in real time and measure its delays and errors.

    Works with any server of one of the protocols. docs/measure.md defines every figure. The exit
    code is 1 if a recording failed or the client itself could not keep pace.

    Args:
        url: The server, such as ws://localhost:2700 or wss://host/v1/realtime.
        files: The recordings; what is said in a.wav is in a.txt beside it, if that is there.
        protocol: What the server speaks: nearfuture, vosk (vosk-server) or openai (Realtime).
        data: Recordings with their texts instead: a folder, a list of them (CSV, TSV, JSON lines),
            a Kaldi directory or a manifest of Lhotse.
        limit: At most so many of them, spread evenly over the data.
        words: Where each word is spoken, as nearfuture align --out words.jsonl writes it.
        connections: So many at once.
        seconds: Begin no recording after so long; each connection plays each recording once unless
            given.
        chunk_ms: How much audio is sent at once.
        patience_s: How long the server may take to finish after the end of a recording.
        budget_ms: The latency to ask for in ms; only in the nearfuture protocol.
        model: The model to ask for; not in the vosk protocol.
        api_key: Sent as a bearer token.
        json_file: Write everything here, each recording's figures and texts included.
    """
    from nearfuture.client import address, choose, websocket
    from nearfuture.client import measure as play
    from nearfuture.client.report import as_json, notes, table

    make = choose(protocol, budget_ms=budget_ms, model=model)
    _check_file(json_file)
    console = Console()
    recordings, problems = _recordings(files or [], data, limit, words, protocol)
    _name(problems)
    target = address(protocol, url)
    count = 0

    with Status("connecting", console=Console(stderr=True)) as status:

        def tell(one: "Played") -> None:
            nonlocal count
            count += 1
            status.update(f"{count} recordings played, the last: {one.failure or 'complete'}")

        found = asyncio.run(
            play(
                recordings,
                lambda: websocket(target, api_key=api_key),
                make,
                connections=connections,
                seconds=seconds,
                chunk_ms=chunk_ms,
                patience_s=patience_s,
                on_played=tell,
            )
        )
    if found.complete:
        many = "connection" if connections == 1 else "connections"
        console.print(table(found, title=f"{url}, {protocol} protocol, {connections} {many}"))
    for line in notes(found):
        console.print(Text(line))
    if json_file is not None:
        about = {
            "url": url,
            "protocol": protocol,
            "connections": connections,
            "seconds": seconds,
            "budget_ms": budget_ms,
            "model": model,
        }
        told = json.dumps(as_json(found, about), ensure_ascii=False, indent=1)
        json_file.write_text(told + "\n", encoding="utf-8")
        console.print(Text(f"written: {json_file}"))
    if found.failures or not found.kept_pace:
        sys.exit(1)


def _check_file(path: Path | None) -> None:
    """Refuse before the measurement what could not be written after it."""
    if path is None:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.open("a", encoding="utf-8").close()
    except OSError as error:
        raise NearfutureError(f"--json {path} cannot be written: {error.strerror}") from error


def _recordings(
    files: Sequence[Path],
    data: Path | None,
    limit: int,
    words: Path | None,
    protocol: ProtocolOption,
) -> "tuple[list[Recording], list[str]]":
    """What to play, all of it read before the clock runs, and a line for what cannot be."""
    from nearfuture.client import Recording, rate_sent
    from nearfuture.client.speech import read_words

    if (data is None) == (not files):
        raise NearfutureError("name recordings to play, or --data SOURCE with them: one of both")
    if limit < 1:
        raise NearfutureError(f"--limit is a number of recordings from 1, not {limit}")
    times = {} if words is None else read_words(words)
    wanted, problems = _of_files(files) if data is None else _of_data(data, limit)
    recordings, timed = [], 0
    for name, audio_and_text in track(
        wanted, "reading", console=Console(stderr=True), transient=True, disable=len(wanted) < 10
    ):
        try:
            audio, text = audio_and_text()
            spoken = times.get(name, times.get(Path(name).name, ()))
            timed += bool(spoken)
            recordings.append(
                Recording.of(
                    name,
                    audio.samples,
                    audio.rate,
                    to=rate_sent(protocol, audio.rate),
                    text=text,
                    words=spoken,
                )
            )
        except NearfutureError as error:
            message = str(error)
            problems.append(message if name in message else f"{name}: {message}")
    if words is not None and recordings and not timed:
        raise NearfutureError(
            f"--words {words} has the times of {', '.join([*times][:3]) or 'nothing'}, none of "
            f"which is played: align these recordings, or leave --words away"
        )
    return recordings, problems


def _of_files(files: Sequence[Path]) -> tuple[list[_Wanted], list[str]]:
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


def _of_data(data: Path, limit: int) -> tuple[list[_Wanted], list[str]]:
    from nearfuture.data import read_source

    def load(item: "Item") -> "tuple[Audio, str | None]":
        from nearfuture.audio.probe import read_part

        audio = read_part(
            item.path, start_s=item.start_s, duration_s=item.duration_s, channel=item.channel
        )
        return audio, item.text

    source = read_source(data)
    count = min(limit, len(source.items))
    # At even distances: lists are often sorted by speaker.
    items = [source.items[number * len(source.items) // count] for number in range(count)]
    return [(item.name, partial(load, item)) for item in items], list(source.problems)


def _name(problems: Sequence[str]) -> None:
    for line in problems[:_MOST_NAMED]:
        print(f"nearfuture: left out: {line}", file=sys.stderr)
    if len(problems) > _MOST_NAMED:
        print(f"nearfuture: left out: {len(problems) - _MOST_NAMED} more", file=sys.stderr)
