"""`nearfuture demo`: recordings played live to every budget, then budgets compared."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING

from rich.live import Live
from rich.progress import track
from rich.table import Table
from rich.text import Text

from nearfuture.cli.console import Console
from nearfuture.cli.playback import in_real_time, styled

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from nearfuture.runtime import Model
    from nearfuture.text import ErrorRate

_LIVE_CLIPS = ("jackson-09256.flac", "theo-48950.flac", "flite-rms-3602.flac")
_QUANTUM_MS = 40
_BIDIRECTIONAL = "bidirectional"
_INTRODUCTION = (
    "Each recording is played in real time to one model under every budget, and to its "
    "bidirectional twin. A budget is the longest time from a sound to its final text; the twin "
    "waits for the end of the recording. Bold text is final, dim text may still change."
)
_LEGEND = (
    "τ (lookahead): frames of 40 ms that the model waits for. Latency, worst case: a window of "
    "25 ms + 30 ms of stacking + τ × 40 ms; audio of other rates than 8 kHz adds up to 5 ms of "
    "resampling. First word: how long after its end (as the twin aligns it) it is final, "
    "computing included, median. Last text: after the last sample, median. Compute: of one "
    "quantum of 40 ms, 99th percentile. So few words compare speed; they decide nothing about "
    "errors."
)
_MORE = (
    "For the whole test set of real recordings, with the extra [train] of README:\n"
    "  export NEARFUTURE_CORPORA=corpora\n"
    "  nearfuture data fetch fsdd\n"
    f"  python -m recipes.digits evaluate --twin digits-{_BIDIRECTIONAL}"
)


@dataclass(frozen=True)
class _Clip:
    """A recording (n,) at a rate, its text and its speaker."""

    samples: "NDArray[np.float32]"
    rate: int
    text: str
    speaker: str

    @property
    def ms(self) -> float:
        return 1000 * len(self.samples) / self.rate

    def quanta(self) -> "Iterator[NDArray[np.float32]]":
        size = self.rate * _QUANTUM_MS // 1000
        for start in range(0, len(self.samples), size):
            yield self.samples[start : start + size]


@dataclass
class _Figures:
    """What one model did with one set of clips; times in ms, one of each per clip."""

    words: "ErrorRate"
    first_word_ms: list[float] = field(default_factory=list)
    final_ms: list[float] = field(default_factory=list)
    quantum_ms: list[float] = field(default_factory=list)

    def add(self, clip: _Clip, text: str, *, first_word_ms: float, final_ms: float) -> None:
        """Add the transcript of a clip, and its delays."""
        from nearfuture.text import word_errors

        self.words += word_errors(clip.text, text)
        self.first_word_ms.append(first_word_ms)
        self.final_ms.append(final_ms)

    def row(self, frames: str, latency: str) -> tuple[str, ...]:
        """The row of the table for a lookahead."""
        import numpy as np

        compute = "–"
        if self.quantum_ms:
            compute = f"{np.percentile(self.quantum_ms, 99):.1f} ms"
        return (
            frames,
            latency,
            f"{np.median(self.first_word_ms):+.0f} ms",
            f"{np.median(self.final_ms):.1f} ms",
            f"{100 * self.words.rate:.1f}",
            compute,
        )


def demo() -> None:
    """Play bundled recordings to every budget at once, then compare the budgets with the twin."""
    from nearfuture.runtime import load

    console = Console()
    with as_file(files("nearfuture") / "assets" / "samples") as folder:
        people = _bundled(folder / "people")
        synthetic = _bundled(folder)
    twin = load(f"digits-{_BIDIRECTIONAL}")

    console.print(_INTRODUCTION)
    for name in _LIVE_CLIPS:
        clip = people.get(name) or synthetic[name]
        console.print()
        console.rule(f"{clip.speaker}: {clip.ms / 1000:.1f} s, “{clip.text}”")
        _play(clip, _models(clip.rate), twin, console)

    console.print()
    _compare("six people, one never heard in training (theo)", list(people.values()), twin, console)
    console.print()
    _compare("four synthetic voices", list(synthetic.values()), twin, console)
    console.print(_LEGEND, _MORE, sep="\n\n")


def _bundled(folder: Path) -> dict[str, _Clip]:
    """Read the clips of a folder, by file name, as its manifest lists them."""
    from nearfuture.data import read_source

    clips = {}
    for cut in read_source(folder / "manifest.tsv").cuts:
        audio = cut.read()
        speaker = cut.speaker or cut.fields["voice"]
        clips[cut.path.name] = _Clip(audio.samples, audio.rate, cut.text, speaker)
    return clips


def _models(rate: int) -> "dict[str, Model]":
    """Load a model for each budget, by its worst latency at this rate."""
    from nearfuture.audio import LiveResampler
    from nearfuture.runtime import load

    resampler_ms = LiveResampler(rate, 8000).right_ms
    models = [
        load("digits", budget_ms=latency.worst_ms + resampler_ms)
        for latency in load("digits").budgets.values()
    ]
    return {f"{_worst_ms(model, rate):g} ms": model for model in models}


def _worst_ms(model: "Model", rate: int) -> float:
    latency = model.latency(rate)
    assert latency is not None
    return latency.worst_ms


def _play(clip: _Clip, models: Mapping[str, "Model"], twin: "Model", console: Console) -> None:
    """Stream a clip to all models in real time, a line each; the final lines stay."""
    streams = {name: model.stream(rate=clip.rate) for name, model in models.items()}
    texts = dict.fromkeys((*streams, _BIDIRECTIONAL), Text())
    with Live(console=console, auto_refresh=False) as screen:
        for quantum in in_real_time(clip.quanta(), clip.rate):
            for name, stream in streams.items():
                for event in stream.accept(quantum):
                    texts[name] = styled(event)
            screen.update(_lanes(texts), refresh=True)
        for name, stream in streams.items():
            texts[name] = Text(stream.finish().committed, "bold")
        texts[_BIDIRECTIONAL] = Text(twin.transcribe(clip.samples, clip.rate).text, "bold")
        screen.update(_lanes(texts), refresh=True)


def _lanes(texts: Mapping[str, Text]) -> Table:
    """Show the text of each model in a line of its own."""
    table = Table.grid(padding=(0, 2))
    table.add_column(justify="right", style="cyan", no_wrap=True)
    for name, text in texts.items():
        table.add_row(name, text)
    return table


def _compare(name: str, clips: Sequence[_Clip], twin: "Model", console: Console) -> None:
    table = Table(title=f"{name}: {len(clips)} recordings")
    table.add_column("τ", justify="right")
    for column in ("latency", "first word", "last text", "WER %", "compute"):
        table.add_column(column, justify="right", no_wrap=True)
    first_word_ends = [_first_word_end_ms(twin, clip) for clip in clips]
    models = _models(max(clip.rate for clip in clips))
    for model in track(models.values(), description="streaming", console=console, transient=True):
        figures = _stream(model, clips, first_word_ends)
        latency = f"{_worst_ms(model, model.rate):g} ms"
        table.add_row(*figures.row(str(model.budget.frames), latency))
    table.add_row(*_offline(twin, clips, first_word_ends).row("∞", "the end"))
    console.print(table)


def _first_word_end_ms(twin: "Model", clip: _Clip) -> float:
    """Find the end of the first word by forced alignment."""
    from nearfuture.decoding import align_words

    words = align_words(
        twin.log_probs(clip.samples, clip.rate),
        clip.text,
        twin.manifest.vocabulary,
        frame_ms=twin.manifest.frame_ms,
        centre_ms=twin.manifest.centre_ms,
    )
    return words[0].end_ms


def _stream(model: "Model", clips: Sequence[_Clip], first_word_ends: Sequence[float]) -> _Figures:
    """Feed quantum by quantum, timing each; audio time counts as if it were played."""
    from nearfuture.text import ErrorRate

    figures = _Figures(ErrorRate())
    for clip, end_ms in zip(clips, first_word_ends, strict=True):
        stream = model.stream(rate=clip.rate)
        committed = []  # each text, and the ms at which it was there
        played = 0
        for quantum in clip.quanta():
            began = time.perf_counter()
            events = stream.accept(quantum)
            took = 1000 * (time.perf_counter() - began)
            figures.quantum_ms.append(took)
            played += len(quantum)
            committed += [(event.committed, 1000 * played / clip.rate + took) for event in events]
        began = time.perf_counter()
        text = stream.finish().committed
        took = 1000 * (time.perf_counter() - began)
        committed.append((text, clip.ms + took))
        first_word = text.partition(" ")[0]
        first_ms = next(ms for prefix, ms in committed if prefix.startswith(first_word))
        figures.add(clip, text, first_word_ms=first_ms - end_ms, final_ms=took)
    return figures


def _offline(twin: "Model", clips: Sequence[_Clip], first_word_ends: Sequence[float]) -> _Figures:
    from nearfuture.text import ErrorRate

    figures = _Figures(ErrorRate())
    for clip, end_ms in zip(clips, first_word_ends, strict=True):
        began = time.perf_counter()
        text = twin.transcribe(clip.samples, clip.rate).text
        took = 1000 * (time.perf_counter() - began)
        figures.add(clip, text, first_word_ms=clip.ms + took - end_ms, final_ms=took)
    return figures
