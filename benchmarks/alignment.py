"""How true aligned times are, and what segmentation keeps of a long recording with a spoilt text.

One recording of half an hour: test strings of connected digits by all six speakers of the Free
Spoken Digit Dataset, 0.7 to 2 s apart, noise 30 dB below. The truth is where each word's sound is
within 30 dB of its loudest. Then some texts are replaced, lack words or have words too many.

    python benchmarks/alignment.py [--strings 430] [--bundle BUNDLE]
"""

import argparse
import time
from dataclasses import dataclass

import numpy as np
from _report import emit
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from nearfuture.audio import Audio
from nearfuture.data import add_noise, at_level
from nearfuture.data.segmentation import Emissions, SegmentationOptions, Segments, segment
from nearfuture.runtime import Model, load
from recipes.digits import HELD_OUT, WORDS, DigitRecordings

SEED = 2024
FREE = SegmentationOptions(max_cost=np.inf, min_confidence=0.0, max_cer=np.inf, max_s=1e6)
SPOILT = {"replaced": 15, "one wrong word": 15, "missing": 10, "three words too many": 10}


@dataclass(frozen=True)
class Spoken:
    text: str
    start_ms: float
    end_ms: float


@dataclass(frozen=True)
class String:
    speaker: str
    words: list[Spoken]

    @property
    def spoken_words(self) -> list[str]:
        return [word.text for word in self.words]


def recorded(rng: np.random.Generator, strings: int) -> tuple[NDArray[np.float32], list[String]]:
    recordings = DigitRecordings.load()
    per_ms = recordings.rate // 1000
    speakers = sorted({speaker for speaker, _ in recordings.takes})
    pieces, made = [np.zeros(recordings.rate, np.float32)], []
    at = recordings.rate
    for number in range(strings):
        speaker, words = speakers[number % len(speakers)], []
        for digit in rng.integers(0, 10, rng.integers(3, 8)):
            takes = recordings.takes[speaker, "test"][digit]
            take = at_level(takes[rng.integers(len(takes))], -20.0)
            power = np.convolve(take**2, np.ones(10 * per_ms), "same")
            loud = np.flatnonzero(power > 1e-3 * power.max())
            words.append(Spoken(WORDS[digit], (at + loud[0]) / per_ms, (at + loud[-1]) / per_ms))
            gap = np.zeros(int(rng.uniform(0.05, 0.2) * recordings.rate), np.float32)
            pieces += [take, gap]
            at += len(take) + len(gap)
        made.append(String(speaker, words))
        pieces.append(np.zeros(int(rng.uniform(0.7, 2.0) * recordings.rate), np.float32))
        at += len(pieces[-1])
    return add_noise(np.concatenate(pieces), 30.0, 1.0, rng), made


def spoil(rng: np.random.Generator, made: list[String]) -> tuple[list[list[str]], dict[int, str]]:
    """The texts, some of which are wrong, and which of them are wrong in what way."""
    texts = [one.spoken_words for one in made]
    chosen = rng.permutation(len(made))[: sum(SPOILT.values())]
    kinds = [kind for kind, count in SPOILT.items() for _ in range(count)]
    for number, kind in zip(chosen, kinds, strict=True):
        text = texts[number]
        if kind == "replaced":
            while texts[number] == text:
                texts[number] = list(rng.choice(WORDS, 4))
        elif kind == "one wrong word":
            place = rng.integers(len(text))
            text[place] = rng.choice([word for word in WORDS if word != text[place]])
        elif kind == "missing":
            text.clear()
        else:
            text += list(rng.choice(WORDS, 3))
    return texts, dict(zip(map(int, chosen), kinds, strict=True))


def cut(
    model: Model,
    samples: NDArray[np.float32],
    log_probs: NDArray[np.floating],
    texts: list[list[str]],
    options: SegmentationOptions | None = None,
) -> Segments:
    about = model.manifest
    emissions = Emissions(
        log_probs=log_probs,
        vocabulary=about.vocabulary,
        frame_ms=about.frame_ms,
        centre_ms=about.centre_ms,
    )
    text = " ".join(" ".join(text) for text in texts if text)
    return segment(emissions, text, Audio(samples, model.rate), options)


def times(found: Segments, made: list[String]) -> tuple[Table, list[dict[str, str | int | float]]]:
    table = Table("", "words", "median", "median absolute", "90 % below", "within 80 ms")
    results: list[dict[str, str | int | float]] = []
    aligned = [word for one in found.kept for word in one.words]
    spoken = [(one.speaker, word) for one in made for word in one.words]
    assert [word.text for word in aligned] == [word.text for _, word in spoken]
    starts = np.array([a.start_ms - b.start_ms for a, (_, b) in zip(aligned, spoken, strict=True)])
    ends = np.array([a.end_ms - b.end_ms for a, (_, b) in zip(aligned, spoken, strict=True)])
    new = np.array([speaker == HELD_OUT for speaker, _ in spoken])
    for what, errors in (("starts", starts), ("ends", ends), ("middles", (starts + ends) / 2)):
        for who, here in (("speakers in training", ~new), ("a new speaker", new)):
            one, absolute = errors[here], np.abs(errors[here])
            within = float(np.mean(absolute <= 80))
            table.add_row(
                f"{what}, {who}",
                f"{len(one)}",
                f"{np.median(one):+.0f} ms",
                f"{np.median(absolute):.0f} ms",
                f"{np.quantile(absolute, 0.9):.0f} ms",
                f"{100 * within:.0f} %",
            )
            results.append(
                {
                    "what": what,
                    "who": who,
                    "words": len(one),
                    "median_ms": float(np.median(one)),
                    "median_absolute_ms": float(np.median(absolute)),
                    "p90_absolute_ms": float(np.quantile(absolute, 0.9)),
                    "within_80_ms": within,
                }
            )
    return table, results


def recovered(
    found: Segments, made: list[String], wrong: dict[int, str]
) -> tuple[Table, dict[str, object]]:
    kept = dict.fromkeys(["right", *SPOILT], 0)
    spoken = dict.fromkeys(kept, 0)
    for number, one in enumerate(made):
        spoken[wrong.get(number, "right")] += len(one.words)
    segments = {"exact": 0, "one_word_more": 0, "wrong": 0}
    for kept_one in found.kept:
        inside = [
            (number, word)
            for number, one in enumerate(made)
            for word in one.words
            if word.end_ms > kept_one.start_ms and word.start_ms < kept_one.end_ms
        ]
        spoken_words = [word.text for _, word in inside]
        text = kept_one.text.split()
        if text == spoken_words:
            segments["exact"] += 1
        elif text in (spoken_words[1:], spoken_words[:-1]):
            segments["one_word_more"] += 1
        else:
            segments["wrong"] += 1
        for number, _ in inside:
            kept[wrong.get(number, "right")] += 1
    table = Table("words of strings whose text is", "spoken", "in kept segments", "")
    for kind, total in spoken.items():
        table.add_row(kind, f"{total}", f"{kept[kind]}", f"{100 * kept[kind] / total:.0f} %")
    cost = max(one.cost for one in found.kept)
    table.caption = (
        f"{len(found.kept)} segments kept, {len(found.dropped)} stretches dropped; of the kept "
        f"{segments['exact']} say exactly what is spoken, {segments['one_word_more']} have besides "
        f"a piece of one word that was dropped, {segments['wrong']} are wrong; highest cost kept: "
        f"{cost:.2f} nats a character"
    )
    return table, {
        "spoken": spoken,
        "kept": kept,
        "segments": segments,
        "dropped": len(found.dropped),
        "highest_cost_kept": cost,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--strings", type=int, default=430)
    parser.add_argument("--bundle", default="digits-bidirectional")
    options = parser.parse_args()
    if options.strings < sum(SPOILT.values()):
        parser.error(f"--strings: {sum(SPOILT.values())} at least, for so many are spoilt")
    rng = np.random.default_rng(SEED)
    model = load(options.bundle)
    samples, made = recorded(rng, options.strings)
    began = time.process_time()
    log_probs = model.log_probs(samples)
    decoded = time.process_time()
    right = cut(model, samples, log_probs, [one.spoken_words for one in made], FREE)
    aligned = time.process_time()
    table, results = times(right, made)
    table.title = (
        f"{options.strings} strings, {len(samples) / model.rate / 60:.1f} minutes, "
        f"{len(log_probs)} frames"
    )
    table.caption = (
        f"processor time: log-probabilities {decoded - began:.1f} s, alignment and cutting "
        f"{aligned - decoded:.1f} s"
    )
    Console(width=120).print(table)

    texts, wrong = spoil(rng, made)
    found = cut(model, samples, log_probs, texts)
    table, figures = recovered(found, made, wrong)
    seconds = {"log_probs_s": decoded - began, "alignment_s": aligned - decoded}
    emit(table, {"times": results, **seconds, **figures})


if __name__ == "__main__":
    main()
