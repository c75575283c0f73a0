"""`nearfuture transcribe`: recordings to text, at once or as if they were being spoken."""

import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter
from rich.live import Live
from rich.text import Text

from nearfuture.cli.console import Console, complain
from nearfuture.cli.listen import interruptible
from nearfuture.cli.output import Output, chosen_format
from nearfuture.cli.progress import ReadingProgress, clock
from nearfuture.cli.recordings import NamedRecording, named_recordings
from nearfuture.cli.transcript import FORMATS, Transcript
from nearfuture.error import NearfutureError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from nearfuture.audio import AudioReader
    from nearfuture.runtime import Model, TranscribedUtterance

    Block = NDArray[np.float32]

_CHUNK_MS = 20

Flag = Annotated[bool, Parameter(negative="", show_default=False)]
Format = Literal["txt", "srt", "vtt", "json", "ctm", "textgrid"]


def transcribe(
    files: Annotated[list[str], Parameter(negative="", allow_leading_hyphen=True)],
    /,
    *,
    model: str = "digits",
    budget_ms: Annotated[float | None, Parameter(name="--budget")] = None,
    form: Annotated[Format | None, Parameter(name="--format")] = None,
    out: Path | None = None,
    quiet: Flag = False,
    live: Flag = False,
) -> None:
    """Transcribe recordings within a latency budget: of any format, rate, width and length.

    Each utterance is a line as soon as it has ended, with the name of the file in front where there
    are several. A file that cannot be read, was cut off or is damaged is named on stderr, what can
    be read of it is transcribed, and the others go on; the exit code is then 1. Ctrl-C ends it, and
    what has been heard by then is written.

    Args:
        files: The recordings: files, folders, patterns in quotes, or - for standard input.
        model: A bundled model, or a bundle's folder or zip file.
        budget_ms: The promise in ms, from the start of a sound to its final text; the largest the
            model has unless given.
        form: "txt", "srt" or "vtt" (subtitles), "json" (one line a recording), "ctm" or "textgrid"
            (Praat); unless given that of the file named by --out, or "txt".
        out: A file, if it ends in .txt, .srt, .vtt, .json, .ctm or .TextGrid; otherwise a folder
            with a file for each recording. Standard output unless given.
        quiet: Show no progress, and say nothing but errors.
        live: Play each recording in real time; text that may still change is dim.
    """
    from nearfuture.runtime import load

    if live and (form or out or quiet):
        raise NearfutureError("--live is for eyes: leave --format, --out and --quiet away")
    chosen = chosen_format(form, out, FORMATS)
    recordings, failures = named_recordings(files)
    recognizer = load(model, budget_ms=budget_ms)
    with (
        interruptible() as stop,
        ReadingProgress(len(recordings), shown=not (live or quiet)) as progress,
        Output(chosen, out, recordings=len(recordings)) as output,
    ):
        run = _Run(recognizer, chosen, output, progress, stop, quiet=quiet)
        for failure in failures:
            run.failed(failure)
        for recording in recordings:
            if stop.is_set():
                break
            try:
                if live:
                    run.play(recording)
                else:
                    run.write(recording, named=len(recordings) > 1)
            except NearfutureError as error:
                run.failed(_naming(recording, error))
    if stop.is_set():
        sys.exit(130)
    if run.failures:
        sys.exit(1)


class _Run:
    """One run of the command over its recordings."""

    def __init__(
        self,
        model: "Model",
        form: str,
        output: Output,
        progress: ReadingProgress,
        stop: threading.Event,
        *,
        quiet: bool,
    ) -> None:
        self.failures = 0
        self._model, self._form, self._output = model, form, output
        self._progress, self._stop, self._quiet = progress, stop, quiet

    def failed(self, line: str) -> None:
        """Name what is wrong."""
        self.failures += 1
        self._say(line)

    def write(self, recording: NamedRecording, *, named: bool) -> None:
        """Transcribe one, and write its text as it comes."""
        with recording.reader() as reader, self._output.of(recording.name, recording.stem) as write:
            heard = _Heard(reader, self._progress.watch(reader, recording.name), self._stop)
            transcript = Transcript(
                recording.name,
                recording.stem,
                self._model,
                reader,
                heard.counted(self._model.utterances(heard.blocks(), reader.rate)),
            )
            for piece in transcript.pieces(self._form, named=named and not self._output.apart):
                with self._progress.aside():
                    write(piece)
            self._tell(recording, heard)

    def play(self, recording: NamedRecording) -> None:
        """Stream one in real time."""
        with recording.reader() as reader:
            heard = _Heard(reader, reader.blocks(reader.rate * _CHUNK_MS // 1000), self._stop)
            _play(self._model, heard, Console(), title=recording.called)
            self._tell(recording, heard)

    def _tell(self, recording: NamedRecording, heard: "_Heard") -> None:
        """What its text does not say."""
        if self._stop.is_set():
            self._say(f"stopped at {clock(heard.seconds)} of {recording.called}")
        elif heard.error is not None:
            self.failed(_naming(recording, heard.error))
        elif heard.reader.damage is not None:
            self.failed(heard.reader.damage.sentence(recording.called))
        elif heard.utterances == 0 and not self._quiet:
            self._say(f"{recording.called}: no words were heard")

    def _say(self, line: str) -> None:
        with self._progress.aside(stderr=True):
            complain(line)


class _Heard:
    """A recording that is heard until its end, an error or Ctrl-C; what came before has its text.

    Attributes:
        reader: of it.
        utterances: how many were said so far.
        error: what ended it early.
    """

    def __init__(
        self, reader: "AudioReader", blocks: Iterator["Block"], stop: threading.Event
    ) -> None:
        self.reader, self.utterances = reader, 0
        self.error: NearfutureError | None = None
        self._blocks, self._stop = blocks, stop

    @property
    def seconds(self) -> float:
        """How much of it has been read."""
        return self.reader.at / self.reader.rate

    def blocks(self) -> Iterator["Block"]:
        """The samples, as far as they go."""
        try:
            for block in self._blocks:
                if self._stop.is_set():
                    return
                yield block
        except NearfutureError as error:
            if self.reader.at == 0:
                raise
            self.error = error

    def counted(self, said: Iterator["TranscribedUtterance"]) -> Iterator["TranscribedUtterance"]:
        """The same utterances."""
        for utterance in said:
            self.utterances += 1
            yield utterance


def _naming(recording: NamedRecording, error: NearfutureError) -> str:
    message = str(error).replace("<stdin>", recording.called)
    return message if recording.called in message else f"{recording.called}: {message}"


def _play(model: "Model", heard: _Heard, console: Console, *, title: str) -> None:
    """Stream a recording in real time, showing committed text bold and provisional text dim.

    An utterance that has ended stays on the screen. Where there is no terminal to repaint, nothing
    else is printed.
    """
    from nearfuture.decoding import Endpoint

    stream = model.stream(rate=heard.reader.rate, endpoint=Endpoint())

    def ended(text: str) -> None:
        if text:
            heard.utterances += 1
            line = Text.assemble((f"{heard.seconds:7.2f} s  ", "cyan"), (text.strip(), "bold"))
            console.print(line, soft_wrap=not console.is_terminal)

    console.print(Text(title, style="cyan"))
    with Live(console=console, auto_refresh=False, transient=True) as screen:
        began = time.perf_counter()
        shown = Text()
        for block in heard.blocks():
            time.sleep(max(0.0, began + heard.seconds - time.perf_counter()))
            for event in stream.accept(block):
                shown = Text.assemble((event.committed, "bold"), (event.provisional, "dim italic"))
                if event.ends:
                    ended(event.committed)
                    shown = Text()
            screen.update(Text(f"{heard.seconds:7.2f} s  ", style="cyan") + shown, refresh=True)
    ended(stream.finish().committed)
