"""A grammar of digit strings over the bundled `digits` model: errors, and what it takes for digits.

Strings of FSDD's test recordings, of the speakers that the model was trained on and of one that it
has never heard; noise, telephone prompts and sentences of other speakers without a digit in them.
Everything is streamed at 375 ms. The grammar has the strings of one to eight digits; a text is
understood from a confidence on, for which both kinds of error are shown.

    python benchmarks/phrases_digits.py [--part dev] [--price 1] [--of strings]
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from _report import CORPORA, emit
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from rich.table import Table

from nearfuture.audio import read
from nearfuture.data import read_source
from nearfuture.decoding import GrammarResult, GrammarSearch, greedy_text
from nearfuture.phrases import Phrases
from nearfuture.runtime import grammar_search, load
from nearfuture.text import ErrorRate, normalise, word_errors
from recipes.digits import HELD_OUT, WORDS, DigitRecordings

STRINGS_PER_SPEAKER = {"seen": 30, "held out": 60}
OTHERS = {"noise": 60, "prompts": 100, "speechocean762": 100}
SEED = 7
BUDGET_MS = 400
RATE = 16000
THRESHOLDS = (0.0, 0.6, 0.7, 0.8, 0.85, 0.9)
DIAL = "{d:a} [{d:b} [{d:c} [{d:e} [{d:f} [{d:g} [{d:h} [{d:i}]]]]]]]"
CONTENT = {
    "language": "en",
    "intents": {"Dial": {"data": [{"sentences": [DIAL]}]}},
    "lists": {"d": {"range": {"from": 0, "to": 9}}},
}
Recording = tuple[NDArray[np.float32], int, str]


def strings(part: str) -> dict[str, list[Recording]]:
    """Digit strings of seen speakers and of the one held out."""
    recordings = DigitRecordings.load()
    speakers = {"seen": recordings.seen, "held out": (HELD_OUT,)}
    return {
        name: [
            (string.samples, recordings.rate, string.text)
            for string in recordings.strings(speakers[name], part, count, seed=SEED)
        ]
        for name, count in STRINGS_PER_SPEAKER.items()
    }


def others(name: str, count: int) -> Iterator[Recording]:
    """Recordings in which nobody says a digit, evenly spaced over a corpus."""
    folder = Path(CORPORA) / name
    if name == "noise":  # its manifest has no texts
        lines = (folder / "manifest.tsv").read_text(encoding="utf-8").splitlines()[1:]
        paths = [folder / line.split("\t")[0] for line in lines]
        for path in paths[:: max(1, len(paths) // count)][:count]:
            audio = read(path)
            yield audio.samples, audio.rate, ""
        return
    cuts = [cut for cut in read_source(folder / "manifest.tsv").cuts if not has_digit(cut.text)]
    for cut in cuts[:: max(1, len(cuts) // count)][:count]:
        yield cut.load(RATE).samples, RATE, cut.text


def has_digit(text: str) -> bool:
    """Whether somebody says a digit."""
    return any(c.isdigit() for c in text) or bool({*WORDS, "oh"} & set(normalise(text).split()))


def searched(search: GrammarSearch, log_probs: NDArray[np.float32]) -> list[GrammarResult]:
    """The utterances of a recording."""
    results, state = search.step(log_probs, search.start())
    return results + search.finish(state)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", default="test", choices=["dev", "test"])
    parser.add_argument("--price", type=float, default=None)
    parser.add_argument("--of", default="both", choices=["strings", "others", "both"])
    options = parser.parse_args()
    part, price = options.part, options.price

    model = load("digits", budget_ms=BUDGET_MS)
    automaton = Phrases.of_dict(CONTENT).automaton
    search = grammar_search(model, automaton, price=price, threshold=0.0)
    results = []

    errors = Table(
        "strings", "greedy WER %", "grammar WER %", "greedy strings right %",
        *(f"grammar, confidence ≥ {threshold:g}" for threshold in THRESHOLDS),
        title=f"digit strings, {part}: strings right % and, in brackets, wrong and yet understood",
    )  # fmt: skip
    spoken_strings = {} if options.of == "others" else strings(part)
    for name, recordings in spoken_strings.items():
        greedy = grammar = ErrorRate()
        right = 0
        found: list[tuple[bool, float]] = []
        for samples, rate, text in track(recordings, transient=True):
            log_probs = model.log_probs(samples, rate)
            heard = greedy_text(
                log_probs, model.manifest.vocabulary, frame_ms=model.manifest.frame_ms
            )
            spoken = searched(search, log_probs)
            written = " ".join(result.text for result in spoken)
            greedy += word_errors(text, heard)
            grammar += word_errors(text, written)
            right += heard == text
            confidence = min((result.confidence for result in spoken), default=0.0)
            found.append((written == text, confidence))
        count = len(recordings)
        row = {
            "strings": name,
            "count": count,
            "greedy_wer": 100 * greedy.rate,
            "grammar_wer": 100 * grammar.rate,
            "greedy_right": 100 * right / count,
            "right": [100 * sum(ok and c >= t for ok, c in found) / count for t in THRESHOLDS],
            "wrong": [100 * sum(c >= t for ok, c in found if not ok) / count for t in THRESHOLDS],
        }
        results.append(row)
        errors.add_row(
            f"{name}, {count}",
            *(f"{row[key]:.2f}" for key in ("greedy_wer", "grammar_wer")),
            f"{row['greedy_right']:.1f}",
            *(f"{a:.1f} ({b:.1f})" for a, b in zip(row["right"], row["wrong"], strict=True)),
        )
    if spoken_strings:
        Console(width=140).print(errors)

    table = Table(
        "recordings", "minutes", "greedy words an hour",
        *(f"confidence ≥ {threshold:g}" for threshold in THRESHOLDS[1:]),
        title="what is taken for digits, utterances an hour",
    )  # fmt: skip
    for name, count in () if options.of == "strings" else OTHERS.items():
        seconds, words = 0.0, 0
        confidences: list[float] = []
        for samples, rate, _ in track(list(others(name, count)), transient=True):
            log_probs = model.log_probs(samples, rate)
            seconds += len(samples) / rate
            heard = greedy_text(
                log_probs, model.manifest.vocabulary, frame_ms=model.manifest.frame_ms
            )
            words += len(heard.split())
            confidences += [result.confidence for result in searched(search, log_probs)]
        hours = seconds / 3600
        accepted = [sum(c >= t for c in confidences) / hours for t in THRESHOLDS[1:]]
        results.append(
            {
                "recordings": name,
                "hours": hours,
                "greedy_words": words / hours,
                "accepted": accepted,
            }
        )
        table.add_row(
            name, f"{60 * hours:.1f}", f"{words / hours:.0f}", *(f"{a:.0f}" for a in accepted)
        )
    table.caption = f"price {search.price:g}; thresholds {', '.join(map(str, THRESHOLDS[1:]))}"
    emit(table, results)


if __name__ == "__main__":
    main()
