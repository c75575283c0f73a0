"""`nearfuture demo`: hear digits live, then see what each budget costs and buys."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING

from rich.progress import track
from rich.table import Table

from nearfuture.cli.console import Console
from nearfuture.cli.transcribe import play

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from nearfuture.runtime import Model
    from nearfuture.text import ErrorRate

__all__ = ["demo"]

_LIVE_BUDGET_MS = 400
_LIVE_CLIPS = ("flite-rms-3602.flac", "espeak-ng-en-gb-m3-2759306.flac")
_LEGEND = (
    "Latency: window + stacking + lookahead, worst case; audio at other rates than 8 kHz adds up "
    "to 5 ms of resampler. First word: when it is complete, audio heard and computing, median. "
    "Final text: after the last sample, median. Compute: of one quantum of 40 ms, 99th percentile. "
    "So few words compare speed; they decide nothing about errors."
)
_STRINGS = 60
_SEED = 7


@dataclass(frozen=True)
class _Clip:
    """A recording (n,) at a rate, and what is said in it."""

    samples: "NDArray[np.float32]"
    rate: int
    text: str


@dataclass
class _Figures:
    """What one model did with one set of clips; times in ms, one of each a clip."""

    words: "ErrorRate"
    first_word_ms: list[float] = field(default_factory=list)
    final_ms: list[float] = field(default_factory=list)
    quantum_ms: list[float] = field(default_factory=list)


def demo() -> None:
    """Transcribe bundled recordings live, then compare every budget with the bidirectional twin."""
    from nearfuture.audio import read
    from nearfuture.runtime import load

    console = Console()
    console.rule("live, within 400 ms: bold text is final, dim text may still change")
    samples = files("nearfuture") / "samples"
    with as_file(samples) as folder:
        clips = _bundled(folder)
        model = load("digits", budget_ms=_LIVE_BUDGET_MS)
        for name in _LIVE_CLIPS:
            play(model, read(folder / name), console, title=name)

    sets = {"bundled synthetic voices": clips, **_corpus(console)}
    for name, chosen in sets.items():
        _compare(name, chosen, console)
    console.print(_LEGEND)


def _bundled(folder: Path) -> list[_Clip]:
    from nearfuture.audio import read
    from nearfuture.data import read_manifest

    entries = read_manifest(folder / "manifest.tsv")
    audios = [read(entry.path) for entry in entries]
    return [
        _Clip(audio.samples, audio.rate, entry.transcript)
        for entry, audio in zip(entries, audios, strict=True)
    ]


def _corpus(console: Console) -> dict[str, list[_Clip]]:
    """Strings of real test recordings, where the corpus is at hand."""
    from nearfuture.data import DigitRecordings, corpus_folder
    from nearfuture.data.digits import HELD_OUT

    if corpus_folder("fsdd") is None:
        console.print(
            "No real recordings at hand: put the Free Spoken Digit Dataset under the folder that "
            "NEARFUTURE_CORPORA names, and the table below comes for them too."
        )
        return {}
    recordings = DigitRecordings.load()
    sets = {
        "real recordings, speakers known from training": recordings.seen,
        f"real recordings of a speaker never heard ({HELD_OUT})": (HELD_OUT,),
    }
    return {
        name: [
            _Clip(one.samples, recordings.rate, one.text)
            for one in recordings.strings(speakers, "test", _STRINGS // len(speakers), seed=_SEED)
        ]
        for name, speakers in sets.items()
    }


def _compare(name: str, clips: Sequence[_Clip], console: Console) -> None:
    import numpy as np

    from nearfuture.runtime import load

    table = Table(title=f"{name}: {len(clips)} recordings")
    table.add_column("model", no_wrap=True)
    table.add_column("algorithmic latency", no_wrap=True, justify="right")
    for column in ("first word", "final text", "WER %", "compute"):
        table.add_column(column, justify="right")
    budgets = load("digits").budgets
    for frames in track(budgets, description="streaming", console=console, transient=True):
        model = load("digits", budget_ms=budgets[frames].worst_ms + _resampler_ms(clips))
        figures = _stream(model, clips)
        latency = model.latency(model.rate)
        assert latency is not None
        items = " + ".join(f"{item.ms:g}" for item in latency.items)
        table.add_row(
            f"τ = {frames}",
            f"{items} = {latency.worst_ms:g} ms",
            f"{np.median(figures.first_word_ms):.0f} ms",
            f"{np.median(figures.final_ms):.1f} ms",
            f"{100 * figures.words.rate:.1f}",
            f"{np.percentile(figures.quantum_ms, 99):.2f} ms",
        )
    figures = _offline(load("digits-bidirectional"), clips)
    table.add_row(
        "bidirectional",
        "the whole recording",
        f"{np.median(figures.first_word_ms):.0f} ms",
        f"{np.median(figures.final_ms):.1f} ms",
        f"{100 * figures.words.rate:.1f}",
        "–",
    )
    console.print(table)


def _resampler_ms(clips: Sequence[_Clip]) -> float:
    """The most that a resampler of these clips waits, so that each head is the one it names."""
    from nearfuture.audio import LiveResampler

    return max(LiveResampler(clip.rate, 8000).right_ms for clip in clips)


def _stream(model: "Model", clips: Sequence[_Clip]) -> _Figures:
    """Feed quantum by quantum, timing each; audio time counts as if it were played."""
    from nearfuture.text import ErrorRate, word_errors

    figures = _Figures(ErrorRate())
    for clip in clips:
        stream = model.stream(rate=clip.rate)
        quantum = clip.rate * 40 // 1000
        first = None
        for start in range(0, len(clip.samples), quantum):
            began = time.perf_counter()
            events = stream.accept(clip.samples[start : start + quantum])
            took = 1000 * (time.perf_counter() - began)
            figures.quantum_ms.append(took)
            if first is None and any(" " in event.committed for event in events):
                first = 1000 * (start + quantum) / clip.rate + took
        began = time.perf_counter()
        final = stream.finish()
        took = 1000 * (time.perf_counter() - began)
        figures.final_ms.append(took)
        figures.first_word_ms.append(first or 1000 * len(clip.samples) / clip.rate + took)
        figures.words += word_errors(clip.text, final.committed)
    return figures


def _offline(model: "Model", clips: Sequence[_Clip]) -> _Figures:
    from nearfuture.text import ErrorRate, word_errors

    figures = _Figures(ErrorRate())
    for clip in clips:
        began = time.perf_counter()
        event = model.transcribe(clip.samples, clip.rate)
        took = 1000 * (time.perf_counter() - began)
        figures.final_ms.append(took)
        figures.first_word_ms.append(1000 * len(clip.samples) / clip.rate + took)
        figures.words += word_errors(clip.text, event.committed)
    return figures
