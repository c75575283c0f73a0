"""`nearfuture listen`: live captions of a microphone."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from rich.table import Table
from rich.text import Text

from nearfuture.cli.console import Console
from nearfuture.cli.options import Flag
from nearfuture.error import NearfutureError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from nearfuture.client.captions import CaptionScreen, LevelMeter, LiveSource
    from nearfuture.runtime import Stream

_READ_S = 0.1


def listen(
    *,
    model: str = "digits",
    budget_ms: Annotated[float | None, Parameter(name="--budget")] = None,
    device: str | None = None,
    list_devices: Flag = False,
    file: Path | None = None,
    wav_out: Path | None = None,
) -> None:
    """Show live captions of a microphone, until Ctrl-C; dim text may still change.

    Where there is no terminal, only the final text is printed.

    Args:
        model: A bundled model, or a bundle's folder or zip file; it must be a streaming one.
        budget_ms: The longest time in ms from the start of a sound to its final text; by default
            the largest that the model has.
        device: The microphone: its number, or a part of its name; by default the system's.
        list_devices: List the microphones, and do nothing else.
        file: Play this recording in real time instead of listening to a microphone.
        wav_out: Also record to this WAV file.
    """
    console = Console()
    if list_devices:
        _list(console)
        return
    if file is not None and device is not None:
        raise NearfutureError(
            "`file` replaces the microphone: omit `device`",
            code="conflict",
            parameter="file",
        )
    if file is not None and wav_out is not None and file.resolve() == wav_out.resolve():
        raise NearfutureError(
            f"`wav_out` {wav_out} would overwrite the recording that is played",
            code="conflict",
            parameter="wav_out",
        )

    from nearfuture.audio import read
    from nearfuture.client.captions import CaptionScreen, LevelMeter, Microphone, PlayedFile
    from nearfuture.runtime import load

    recognizer = load(model, budget_ms=budget_ms)
    source: LiveSource = Microphone(device) if file is None else PlayedFile(read(file))
    stream = recognizer.stream(rate=source.rate)
    name = getattr(source, "name", str(file))
    with (
        interruptible() as stop,
        _recorder(wav_out, source.rate) as record,
        source,
        CaptionScreen(console) as screen,
    ):
        if console.is_terminal:
            console.print(
                Text.assemble(
                    (f"{name}, {source.rate} Hz", "cyan"),
                    f" · {recognizer.manifest.name}, text is final within "
                    f"{stream.budget.worst_ms:g} ms · Ctrl-C ends",
                )
            )
        _caption(source, stream, screen, LevelMeter(source.rate), stop, record)
    if source.lost_s > 0:
        Console(stderr=True).print(
            Text(
                f"nearfuture: {source.lost_s:.1f} s of audio were lost: this computer was too busy "
                f"to take it"
            )
        )


def _caption(
    source: "LiveSource",
    stream: "Stream",
    screen: "CaptionScreen",
    level: "LevelMeter",
    stop: threading.Event,
    record: Any,
) -> None:
    from nearfuture.client.caption import Caption

    captured_s = 0.0

    def process(samples: "NDArray[np.float32]") -> None:
        nonlocal captured_s
        record(samples)
        level.update(samples)
        captured_s += len(samples) / source.rate
        for event in stream.accept(samples):
            screen.show(
                Caption(utterance="", committed=event.committed, provisional=event.provisional)
            )
        screen.status = _status(captured_s, level, source.lost_s)
        screen.paint()

    try:
        while not stop.is_set() and (samples := source.read(_READ_S)) is not None:
            process(samples)
        process(source.stop())
    finally:
        # A microphone that is unplugged ends the text, and does not lose it.
        final = stream.finish()
        screen.show(Caption(utterance="", committed=final.committed, final=True))


def _status(captured_s: float, level: "LevelMeter", lost_s: float) -> Text:
    minutes, seconds = divmod(captured_s, 60)
    clock = f"{minutes:2.0f}:{seconds:04.1f}"
    status = Text.assemble((clock, "cyan"), "  ", (level.meter, "green"), "  ")
    if lost_s > 0:
        status.append(f"{lost_s:.1f} s lost, this computer is too busy  ", "red")
    return status.append(level.hint, "yellow")


@contextmanager
def interruptible() -> Iterator[threading.Event]:
    """Ctrl-C sets the event, so that nothing is cut off in the middle; a second one interrupts."""
    stop = threading.Event()

    def interrupt(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _recorder(path: Path | None, rate: int) -> Iterator[Any]:
    """A function that writes samples to a file, or nowhere."""
    if path is None:
        yield lambda samples: None
        return
    import soundfile

    if path.suffix.lower() != ".wav":
        raise NearfutureError(f"`wav_out` names a .wav file, not {path}", parameter="wav_out")
    try:
        file = soundfile.SoundFile(path, "w", rate, 1, "PCM_16", format="WAV")
    except (OSError, soundfile.LibsndfileError) as error:
        reason = getattr(error, "error_string", "") or error
        raise NearfutureError(
            f"`wav_out` {path} cannot be written: {reason}", parameter="wav_out"
        ) from error
    with file:
        yield file.write


def _list(console: Console) -> None:
    from nearfuture.client.captions import microphones

    devices = microphones()
    if not devices:
        raise NearfutureError(
            "there is no microphone: plug one in, or play a recording with `file`",
            code="not_found",
        )
    table = Table("device", "name", "channels", "Hz", "")
    for number, name, channels, rate, default in devices:
        table.add_row(
            str(number), Text(name), str(channels), str(rate), "default" if default else ""
        )
    console.print(table)
