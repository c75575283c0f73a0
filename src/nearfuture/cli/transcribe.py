"""`nearfuture transcribe`: recordings to text, at once or as if they were live."""

import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter
from rich.live import Live
from rich.text import Text

from nearfuture.cli.console import Console, complain
from nearfuture.cli.flags import explain
from nearfuture.cli.grammar import GrammarOptions
from nearfuture.cli.listen import interruptible
from nearfuture.cli.options import Flag, ModelOptions
from nearfuture.cli.playback import in_real_time, styled
from nearfuture.cli.progress import ReadingProgress, clock
from nearfuture.cli.recordings import NamedRecording, named_recordings
from nearfuture.cli.results import ResultFiles, choose_format
from nearfuture.cli.transcript_format import FORMATS, FormattedTranscript
from nearfuture.error import NearfutureError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from nearfuture.audio import AudioReader
    from nearfuture.cli.grammar import GrammarTranscriber
    from nearfuture.runtime import Model, TranscribedUtterance

_CHUNK_MS = 20

Format = Literal["txt", "srt", "vtt", "json", "ctm", "textgrid"]


def transcribe(
    files: Annotated[list[str], Parameter(negative="", allow_leading_hyphen=True)],
    /,
    *,
    options: ModelOptions = ModelOptions(),
    grammar: GrammarOptions = GrammarOptions(),
    form: Annotated[Format | None, Parameter(name="--format")] = None,
    out: Path | None = None,
    quiet: Flag = False,
    live: Flag = False,
) -> None:
    """Transcribe recordings of any format, rate and length within a latency budget.

    With --grammar only its sentences are written, and json has their intents and slots: see
    `nearfuture phrases`.

    Each utterance is printed as a line when it ends, after the name of the file if there are
    several. A file that cannot be read, was cut off or is damaged is reported on stderr, what can
    be read of it is transcribed, and the other files follow; the exit code is then 1. Ctrl-C ends
    the command and keeps the text so far.

    Args:
        files: The recordings: files, folders, patterns in quotes, or - for standard input.
        options: The model that transcribes, and its latency budget.
        grammar: Sentences that may be said.
        form: "txt", "srt" or "vtt" (subtitles), "json" (one line per recording), "ctm" or
            "textgrid" (Praat); by default the format of the file named by --out, or "txt".
        out: A file, if it ends in .txt, .srt, .vtt, .json, .ctm or .TextGrid; otherwise a folder
            with a file for each recording. Standard output by default.
        quiet: Show no progress, and print nothing but errors.
        live: Play each recording in real time; text that may still change is dim.
    """
    from nearfuture.runtime import load

    if live and (form or out or quiet):
        raise NearfutureError(
            "`live` shows text on the terminal: omit `form`, `out` and `quiet`",
            code="conflict",
            parameter="live",
        )
    if live and grammar.grammar:
        raise NearfutureError(
            "`live` shows text that may still change, without a `grammar`: omit one of them",
            code="conflict",
            parameter="live",
        )
    chosen = choose_format(form, out, FORMATS)
    recordings, failures = named_recordings(files)
    model = load(options.model, budget_ms=options.budget_ms)
    commands = grammar.commands(model)
    progress = ReadingProgress(len(recordings), shown=not (live or quiet))
    with (
        interruptible() as stop,
        closing(progress),
        ResultFiles(chosen, out, recordings=len(recordings)) as results,
    ):
        run = _Run(model, commands, chosen, results, progress, stop, quiet)
        for failure in failures:
            run.fail(failure)
        for recording in recordings:
            if stop.is_set():
                break
            try:
                with recording.reader() as reader:
                    (run.play if live else run.write)(recording, reader)
            except NearfutureError as error:
                run.fail(_with_name(recording, error))
    if stop.is_set():
        sys.exit(130)
    if run.failures:
        sys.exit(1)


@dataclass
class _Run:
    """One run of the command over its recordings."""

    model: "Model"
    commands: "GrammarTranscriber | None"
    form: str
    results: ResultFiles
    progress: ReadingProgress
    stop: threading.Event
    quiet: bool
    failures: int = 0

    def fail(self, message: str) -> None:
        """Report an error, and go on."""
        self.failures += 1
        self._report(message)

    def write(self, recording: NamedRecording, reader: "AudioReader") -> None:
        """Transcribe a recording, and write its text as it grows."""
        with self.results.open(recording.name, recording.stem) as write:
            blocks = self.progress.blocks(reader, recording.name)
            audio = _InterruptibleAudio(reader, blocks, self.stop)
            utterances = (self.commands or self.model).utterances(audio.blocks(), reader.rate)
            transcript = FormattedTranscript(
                name=recording.name,
                stem=recording.stem,
                model=self.model,
                reader=reader,
                utterances=audio.counted(utterances),
                commands=self.commands,
            )
            named = self.progress.recordings > 1 and not self.results.separate
            for piece in transcript.pieces(self.form, named=named):
                self.progress.make_room()
                write(piece)
            self._summarise(recording, audio)

    def play(self, recording: NamedRecording, reader: "AudioReader") -> None:
        """Stream a recording in real time."""
        blocks = reader.blocks(reader.rate * _CHUNK_MS // 1000)
        audio = _InterruptibleAudio(reader, blocks, self.stop)
        _play(self.model, audio, Console(), title=recording.label)
        self._summarise(recording, audio)

    def _summarise(self, recording: NamedRecording, audio: "_InterruptibleAudio") -> None:
        """Report what the text does not show."""
        if self.stop.is_set():
            self._report(f"stopped at {clock(audio.seconds)} of {recording.label}")
        elif audio.error is not None:
            self.fail(_with_name(recording, audio.error))
        elif audio.reader.damage is not None:
            self.fail(audio.reader.damage.sentence(recording.label))
        elif audio.utterances == 0 and not self.quiet:
            nothing = "nothing was understood" if self.commands else "no words were recognised"
            self._report(f"{recording.label}: {nothing}")

    def _report(self, message: str) -> None:
        self.progress.make_room(stderr=True)
        complain(message)


class _InterruptibleAudio:
    """A recording up to its end, an error or Ctrl-C, so that the text before is not lost.

    Attributes:
        reader: The open recording.
        utterances: How many utterances have ended.
        error: The error that ended it early.
    """

    def __init__(
        self,
        reader: "AudioReader",
        blocks: Iterator["NDArray[np.float32]"],
        stop: threading.Event,
    ) -> None:
        self.reader, self.utterances = reader, 0
        self.error: NearfutureError | None = None
        self._blocks, self._stop = blocks, stop

    @property
    def seconds(self) -> float:
        """The seconds that have been read."""
        return self.reader.at / self.reader.rate

    def blocks(self) -> Iterator["NDArray[np.float32]"]:
        """Yield the samples, as far as they go."""
        try:
            for block in self._blocks:
                if self._stop.is_set():
                    return
                yield block
        except NearfutureError as error:
            if self.reader.at == 0:
                raise
            self.error = error

    def counted(
        self, utterances: Iterator["TranscribedUtterance"]
    ) -> Iterator["TranscribedUtterance"]:
        """Yield the same utterances, and count them."""
        for utterance in utterances:
            self.utterances += 1
            yield utterance


def _with_name(recording: NamedRecording, error: NearfutureError) -> str:
    message = explain(error).replace("<stdin>", recording.label)
    return message if recording.label in message else f"{recording.label}: {message}"


def _play(model: "Model", audio: _InterruptibleAudio, console: Console, *, title: str) -> None:
    """Stream a recording in real time, and show its text as it grows.

    An utterance that has ended stays on the screen. Where there is no terminal to repaint, nothing
    else is printed.
    """
    from nearfuture.decoding import Endpoint

    stream = model.stream(rate=audio.reader.rate, endpoint=Endpoint())

    def print_utterance(text: str) -> None:
        if text:
            audio.utterances += 1
            line = Text.assemble((f"{audio.seconds:7.2f} s  ", "cyan"), (text.strip(), "bold"))
            console.print(line, soft_wrap=not console.is_terminal)

    console.print(Text(title, style="cyan"))
    with Live(console=console, auto_refresh=False, transient=True) as screen:
        text = Text()
        for block in in_real_time(audio.blocks(), audio.reader.rate):
            for event in stream.accept(block):
                text = styled(event)
                if event.ends:
                    print_utterance(event.committed)
                    text = Text()
            screen.update(Text(f"{audio.seconds:7.2f} s  ", style="cyan") + text, refresh=True)
    print_utterance(stream.finish().committed)
