"""Decoding beside the engine: 64 streams on one core, frame by frame, as they come live.

Each stream has the log-probabilities that the bundled `digits` model computes of the samples that
come with the package; only decoding is timed. The rival is the textbook's prefix beam search in
plain Python (Hannun et al. 2014, algorithm 1), over whole recordings, without pruning. Where they
are installed, two packages with compiled code decode whole recordings, too: they cannot stream.

    OMP_NUM_THREADS=1 python benchmarks/decoding.py
"""

import math
from collections import defaultdict
from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np
from _report import emit
from numpy.typing import NDArray
from rich.table import Table

from nearfuture.audio import read
from nearfuture.decoding import BeamSearch, GreedyDecoder
from nearfuture.phrases import Phrases
from nearfuture.runtime import grammar_search, load
from nearfuture.runtime.bundle import MODELS

STREAMS = 64
WIDTH = 8
DIAL = "{d:a} [{d:b} [{d:c} [{d:e} [{d:f} [{d:g} [{d:h} [{d:i}]]]]]]]"
CONTENT = {
    "language": "en",
    "intents": {"Dial": {"data": [{"sentences": [DIAL]}]}},
    "lists": {"d": {"range": {"from": 0, "to": 9}}},
}


def textbook(log_probs: NDArray[np.float32], width: int) -> tuple[int, ...]:
    """Prefix beam search as it stands in the paper, in plain Python."""
    probabilities = np.exp(log_probs.astype(np.float64)).tolist()
    blank_of: dict[tuple[int, ...], float] = {(): 1.0}
    symbol_of: dict[tuple[int, ...], float] = {(): 0.0}
    beam: list[tuple[int, ...]] = [()]
    for row in probabilities:
        blank: dict[tuple[int, ...], float] = defaultdict(float)
        symbol: dict[tuple[int, ...], float] = defaultdict(float)
        for prefix in beam:
            ends, total = symbol_of[prefix], blank_of[prefix] + symbol_of[prefix]
            blank[prefix] += row[0] * total
            if prefix:
                symbol[prefix] += row[prefix[-1]] * ends
            for c in range(1, len(row)):
                longer = (*prefix, c)
                repeats = bool(prefix) and c == prefix[-1]
                symbol[longer] += row[c] * (blank_of[prefix] if repeats else total)
        beam = sorted({*blank, *symbol}, key=lambda p: blank[p] + symbol[p], reverse=True)[:width]
        scale = blank[beam[0]] + symbol[beam[0]]
        blank_of = {prefix: blank[prefix] / scale for prefix in beam}
        symbol_of = {prefix: symbol[prefix] / scale for prefix in beam}
    return beam[0]


def frame_by_frame(decoder: Any, shown: bool = False) -> Callable[[NDArray[np.float32]], None]:
    """Decode a recording as it comes live; show its provisional text with every frame."""

    def decode(log_probs: NDArray[np.float32]) -> None:
        state = decoder.start()
        for row in log_probs:
            _, state = decoder.step(row[None], state)
            if shown:
                decoder.provisional(state)

    return decode


def compiled(alphabet: str) -> dict[str, Callable[[NDArray[np.float32]], object]]:
    """Packages that decode whole recordings, if they are here."""
    found: dict[str, Callable[[NDArray[np.float32]], object]] = {}
    try:
        import fast_ctc_decode
    except ImportError:
        pass
    else:
        found["fast-ctc-decode, whole recordings"] = lambda log_probs: fast_ctc_decode.beam_search(
            np.exp(log_probs), "-" + alphabet, WIDTH, 0.0
        )
    try:
        from ctc_beam_decoder import build_ctcdecoder
    except ImportError:
        pass
    else:
        decoder = build_ctcdecoder(["", *alphabet])
        found["ctc-beam-decoder, whole recordings"] = lambda log_probs: decoder.decode(
            log_probs, beam_width=WIDTH
        )
    return found


def main() -> None:
    model = load("digits", budget_ms=400)
    recordings = []
    for path in sorted((MODELS.parent / "samples").glob("*.flac")):
        audio = read(path)
        recordings.append(model.log_probs(audio.samples, audio.rate))
    frames = sum(map(len, recordings))
    phrases = Phrases.of_dict(CONTENT)
    grammar = grammar_search(model, phrases.automaton)
    beam = BeamSearch(width=WIDTH)
    ways: dict[str, Callable[[NDArray[np.float32]], object]] = {
        "greedy": frame_by_frame(GreedyDecoder()),
        f"prefix beam search, {WIDTH}": frame_by_frame(beam),
        f"grammar of {phrases.automaton.count:,} sentences": frame_by_frame(grammar),
        "the same, with its provisional text": frame_by_frame(grammar, shown=True),
        f"textbook's prefix beam search, {WIDTH}": lambda rows: textbook(rows, WIDTH),
        **compiled("".join(model.manifest.vocabulary.symbols)),
    }
    results = []
    for name, decode in ways.items():
        seconds = math.inf
        for _ in range(5):
            began = process_time()
            for log_probs in recordings:
                decode(log_probs)
            seconds = min(seconds, process_time() - began)
        per_frame = seconds / frames
        real_time = STREAMS * per_frame * 1000 / model.manifest.frame_ms
        results.append({"decoder": name, "us_a_frame": 1e6 * per_frame, "real_time": real_time})
    table = Table(
        "decoder",
        "µs a frame",
        f"of one core, {STREAMS} streams",
        title=f"{frames} frames of {model.manifest.frame_ms:g} ms, the best of five runs",
    )
    for row in results:
        table.add_row(row["decoder"], f"{row['us_a_frame']:.0f}", f"{100 * row['real_time']:.0f} %")
    emit(table, results)


if __name__ == "__main__":
    main()
