"""Error rates of the bundled models on connected digits: every budget, and the bidirectional twin.

Test strings only (recordings 0-4 of the Free Spoken Digit Dataset), streamed through ONNX Runtime
as a user's would be; with 95 % intervals from 2,000 bootstrap resamples of strings.

    python benchmarks/digits.py [--streaming BUNDLE] [--bidirectional BUNDLE]
"""

import argparse
from collections.abc import Sequence

import numpy as np
from _report import emit
from rich.console import Console
from rich.progress import track
from rich.table import Table

from nearfuture.data import Utterance
from nearfuture.evaluation import bootstrap_interval
from nearfuture.runtime import Model, load
from nearfuture.text import ErrorRate, character_errors, word_errors
from recipes.digits import HELD_OUT, WORDS, DigitRecordings

STRINGS_PER_SPEAKER = 100
SEED = 2024
RATE = 8000


def measure(
    model: Model, strings: Sequence[Utterance]
) -> tuple[dict[str, float], dict[str, float]]:
    """Error rates with intervals, and the word error rate of each speaker."""
    hypotheses = [
        model.transcribe(one.samples, RATE).text for one in track(strings, transient=True)
    ]
    pairs = list(zip(strings, hypotheses, strict=True))
    words = [word_errors(one.text, text) for one, text in pairs]
    characters = [character_errors(one.text, text) for one, text in pairs]
    wer = bootstrap_interval(words)
    figures = {
        "wer": 100 * wer.value,
        "wer_low": 100 * wer.low,
        "wer_high": 100 * wer.high,
        "cer": 100 * sum(characters, ErrorRate()).rate,
    }
    of_speaker: dict[str, ErrorRate] = {}
    for one, errors in zip(strings, words, strict=True):
        of_speaker[one.speaker] = of_speaker.get(one.speaker, ErrorRate()) + errors
    return figures, {speaker: 100 * errors.rate for speaker, errors in of_speaker.items()}


def single(recordings: DigitRecordings, speakers: Sequence[str]) -> list[Utterance]:
    """The corpus's own test recordings, one digit each, as they are: quiet, and cut tight."""
    return [
        Utterance(name=f"{speaker}: {word}", samples=samples, text=word, speaker=speaker)
        for speaker in speakers
        for word, takes in zip(WORDS, recordings.takes[speaker, "test"], strict=True)
        for samples in takes
    ]


def level(strings: Sequence[Utterance]) -> float:
    """Median root mean square, in dB below full scale."""
    rms = [np.sqrt(np.mean(np.square(one.samples, dtype=np.float64))) for one in strings]
    return float(20 * np.log10(np.median(rms)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streaming", default="digits")
    parser.add_argument("--bidirectional", default="digits-bidirectional")
    options = parser.parse_args()

    recordings = DigitRecordings.load()
    sets = {
        "seen": recordings.strings(recordings.seen, "test", STRINGS_PER_SPEAKER, seed=SEED),
        "held out": recordings.strings((HELD_OUT,), "test", STRINGS_PER_SPEAKER, seed=SEED),
        "seen, single": single(recordings, recordings.seen),
        "held out, single": single(recordings, (HELD_OUT,)),
    }
    heads: list[tuple[str, str, Model]] = []
    for frames, latency in load(options.streaming).budgets.items():
        model = load(options.streaming, budget_ms=latency.worst_ms)
        heads.append((f"τ = {frames}", f"{latency.worst_ms:g} ms", model))
    heads.append(("bidirectional", "whole utterance", load(options.bidirectional)))

    table = Table(
        "model",
        "latency",
        "seen speakers WER %",
        "CER %",
        f"held-out ({HELD_OUT}) WER %",
        "CER %",
        "single, seen WER %",
        "single, held-out WER %",
        title=f"connected digits: {len(sets['seen'])} strings of {len(recordings.seen)} seen "
        f"speakers, {len(sets['held out'])} of a held-out one; single digits as they are: "
        f"{len(sets['seen, single'])} and {len(sets['held out, single'])}",
    )
    table.caption = "median level in dBFS: " + ", ".join(
        f"{key} {level(strings):.0f}" for key, strings in sets.items()
    )
    streaming, twin = heads[0][2].manifest.parameters, heads[-1][2].manifest.parameters
    table.caption += f"; parameters: {streaming:,} streaming, {twin:,} bidirectional"
    speakers = Table("model", *recordings.seen, HELD_OUT, title="strings by speaker, WER %")
    results = []
    for name, latency_text, model in heads:
        measured = {key: measure(model, strings) for key, strings in sets.items()}
        figures = {key: one for key, (one, _) in measured.items()}
        of_speaker = {**measured["seen"][1], **measured["held out"][1]}
        speakers.add_row(name, *(f"{of_speaker[one]:.2f}" for one in (*recordings.seen, HELD_OUT)))
        cells = []
        for key, one in figures.items():
            cells.append(f"{one['wer']:.2f} ({one['wer_low']:.2f}-{one['wer_high']:.2f})")
            cells += [] if "single" in key else [f"{one['cer']:.2f}"]
        table.add_row(name, latency_text, *cells)
        parameters = model.manifest.parameters
        about = {"model": name, "latency": latency_text, "parameters": parameters}
        results.append({**about, **figures, "speakers": of_speaker})
    Console(width=120).print(speakers)
    emit(table, results)


if __name__ == "__main__":
    main()
