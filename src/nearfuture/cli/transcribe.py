"""`nearfuture transcribe`: recordings to text, at once or as if they were being spoken."""

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from rich.live import Live
from rich.text import Text

from nearfuture.cli.console import Console
from nearfuture.error import NearfutureError

if TYPE_CHECKING:
    from nearfuture.audio import Audio
    from nearfuture.runtime import Model, Transcription

__all__ = ["play", "transcribe"]

_CHUNK_MS = 20

Flag = Annotated[bool, Parameter(negative="", show_default=False)]


def transcribe(
    files: Annotated[list[Path], Parameter(negative="")],
    /,
    *,
    model: str = "digits",
    budget_ms: Annotated[float | None, Parameter(name="--budget")] = None,
    live: Flag = False,
    as_json: Annotated[bool, Parameter(name="--json", negative="", show_default=False)] = False,
) -> None:
    """Transcribe recordings within a latency budget: WAV, FLAC, OGG or MP3 of any rate and width.

    A file that cannot be read is named on stderr and the others go on; the exit code is then 2. One
    that is cut off is named, and read as far as it goes.

    Args:
        files: The recordings.
        model: A bundled model, or a bundle's folder or zip file.
        budget_ms: The promise in ms, from the start of a sound to its final text; the largest the
            model has unless given.
        live: Play each recording in real time; text that may still change is dim.
        as_json: One line of JSON a file: text, words with times, and the latency itemised.
    """
    from nearfuture.audio import open_audio
    from nearfuture.audio.decode import read_rest
    from nearfuture.runtime import load

    if live and as_json:
        raise NearfutureError("--live is for eyes and --json for programs: choose one")
    recognizer = load(model, budget_ms=budget_ms)
    failed = False
    for file in files:
        try:
            with open_audio(file) as reader:
                audio = read_rest(reader)
                if reader.damage is not None:
                    told = reader.damage.sentence(reader.name)
                    print(f"nearfuture: {told}", file=sys.stderr, flush=True)
            if live:
                play(recognizer, audio, Console(), title=str(file))
                continue
            event = recognizer.transcribe(audio.samples, audio.rate)
        except NearfutureError as error:
            failed = True
            message = str(error)
            named = message if str(file) in message else f"{file}: {message}"
            print(f"nearfuture: {named}", file=sys.stderr, flush=True)
            continue
        if as_json:
            print(json.dumps(_described(file, event, recognizer, audio), ensure_ascii=False))
        else:
            print(f"{file}: {event.text}", flush=True)
    if failed:
        sys.exit(2)


def _described(
    file: Path, event: "Transcription", model: "Model", audio: "Audio"
) -> dict[str, Any]:
    latency = model.latency(audio.rate)
    return {
        "file": str(file),
        "text": event.text,
        "words": [
            {
                "text": word.text,
                "start_ms": round(word.start_ms, 1),
                "end_ms": round(word.end_ms, 1),
                "confidence": round(word.confidence, 4),
            }
            for word in event.words
        ],
        "audio_ms": round(event.audio_ms, 1),
        "latency_ms": None
        if latency is None
        else {
            "worst": latency.worst_ms,
            "mean": latency.mean_ms,
            "items": {item.name: item.ms for item in latency.items},
        },
    }


def play(model: "Model", audio: "Audio", console: Console, *, title: str) -> None:
    """Stream a recording in real time, showing committed text bold and provisional text dim.

    Where there is no terminal to repaint, only the final text is printed.
    """
    stream = model.stream(rate=audio.rate)
    chunk = audio.rate * _CHUNK_MS // 1000
    samples = audio.samples
    shown = Text()

    console.print(Text(title, style="cyan"))
    with Live(console=console, auto_refresh=False, transient=True) as screen:
        began = time.perf_counter()
        for start in range(0, len(samples), chunk):
            played = min(start + chunk, len(samples))
            time.sleep(max(0.0, began + played / audio.rate - time.perf_counter()))
            for event in stream.accept(samples[start:played]):
                shown = Text.assemble((event.committed, "bold"), (event.provisional, "dim italic"))
            clock = Text(f"{played / audio.rate:5.2f} s  ", style="cyan")
            screen.update(clock + shown, refresh=True)
    final = stream.finish()
    clock = Text(f"{len(samples) / audio.rate:5.2f} s  ", style="cyan")
    console.print(clock + Text(final.committed, style="bold"))
