"""`nearfuture demo`: recordings played live to every budget, then the budgets evaluated."""

from collections.abc import Mapping, Sequence
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
    from nearfuture.data import Cut
    from nearfuture.runtime import Model

_LIVE_CLIPS = ("jackson-09256.flac", "theo-48950.flac", "flite-rms-3602.flac")
_QUANTUM_MS = 40
_MODEL, _TWIN = "digits", "digits-bidirectional"
_INTRODUCTION = (
    "Each recording is played in real time to one model under every budget, and to its "
    "bidirectional twin. A budget is the longest time from a sound to its final text; the twin "
    "waits for the end of the recording. Bold text is final, dim text may still change."
)
_LEGEND = (
    "τ (lookahead): frames of 40 ms that the model waits for. Audio of other rates than 8 kHz adds "
    "up to 5 ms of resampling. So few words compare delays; they decide nothing about errors."
)
_MORE = (
    "For the whole test set of real recordings, with the extra [train] of README:\n"
    "  export NEARFUTURE_CORPORA=corpora\n"
    "  nearfuture data fetch fsdd\n"
    f"  python -m recipes.digits evaluate --twin {_TWIN}"
)


def demo() -> None:
    """Stream bundled recordings within every budget at once, then compare with the twin."""
    from nearfuture.runtime import load

    console = Console()
    twin = load(_TWIN)
    console.print(_INTRODUCTION)
    with as_file(files("nearfuture") / "assets" / "samples") as folder:
        cuts = _cuts(folder / "people") | _cuts(folder)
        for name in _LIVE_CLIPS:
            _play(cuts[name], twin, console)
        console.print(
            "\nSix people, one not in the training data (theo), and four synthetic voices"
        )
        _evaluate(list(cuts.values()), console)
    console.print(Text(f"\n{_LEGEND}\n\n{_MORE}"))


def _cuts(folder: Path) -> "dict[str, Cut]":
    """Read the manifest of a folder: its recordings by file name."""
    from nearfuture.data import read_source

    return {cut.path.name: cut for cut in read_source(folder / "manifest.tsv").cuts}


def _models(rate: int) -> "dict[str, Model]":
    """Load a model for each budget, by its worst latency at this rate."""
    from nearfuture.audio import LiveResampler
    from nearfuture.runtime import load

    resampler_ms = LiveResampler(rate, 8000).right_ms
    budgets = [budget.worst_ms + resampler_ms for budget in load(_MODEL).budgets.values()]
    return {f"{budget_ms:g} ms": load(_MODEL, budget_ms=budget_ms) for budget_ms in budgets}


def _play(cut: "Cut", twin: "Model", console: Console) -> None:
    """Stream a recording to all models in real time, a line each; the final lines stay."""
    audio = cut.read()
    speaker = cut.speaker or cut.fields["voice"]
    console.print()
    console.rule(f"{speaker}: {audio.seconds:.1f} s, “{cut.text}”")
    streams = {name: model.stream(rate=audio.rate) for name, model in _models(audio.rate).items()}
    texts = dict.fromkeys((*streams, "bidirectional"), Text())
    quantum = audio.rate * _QUANTUM_MS // 1000
    blocks = (audio.samples[at : at + quantum] for at in range(0, len(audio.samples), quantum))
    with Live(console=console, auto_refresh=False) as screen:
        for block in in_real_time(blocks, audio.rate):
            for name, stream in streams.items():
                for event in stream.accept(block):
                    texts[name] = styled(event)
            screen.update(_lanes(texts), refresh=True)
        for name, stream in streams.items():
            texts[name] = Text(stream.finish().committed, "bold")
        texts["bidirectional"] = Text(twin.transcribe(audio.samples, audio.rate).text, "bold")
        screen.update(_lanes(texts), refresh=True)


def _lanes(texts: Mapping[str, Text]) -> Table:
    """Show the text of each model in a line of its own."""
    table = Table.grid(padding=(0, 2))
    table.add_column(justify="right", style="cyan", no_wrap=True)
    for name, text in texts.items():
        table.add_row(name, text)
    return table


def _evaluate(cuts: "Sequence[Cut]", console: Console) -> None:
    """Print errors and delays of every budget, as `nearfuture evaluate` does."""
    from nearfuture.evaluation import evaluate_bundles
    from nearfuture.evaluation.table import notes, tables

    progress = track(cuts, "streaming", console=console, transient=True)
    evaluation = evaluate_bundles(_MODEL, _TWIN, progress)
    summary = evaluation.summary("utterance")
    console.print(*tables(evaluation, summary))
    for note in notes(evaluation, summary):
        console.print(Text(note))
