"""What a training on connected digits learns from, what it is validated on, and what tests it."""

from __future__ import annotations

from nearfuture.budget import RecognizerConfig
from nearfuture.data import AcousticEnvironment, CutFilter, Utterance, corpus_contents
from nearfuture.training import TrainingData
from recipes.digits.strings import HELD_OUT, ConnectedDigits, DigitRecordings, symbols
from recipes.digits.voices import corpus_strings, synthesised_strings

_DEV_PER_SPEAKER, _DEV_SEED = 20, 1
_TEST_PER_SPEAKER, _TEST_SEED = 100, 2024


def training_data(config: RecognizerConfig, *, seed: int) -> TrainingData:
    """Strings of digits from the Free Spoken Digit Dataset and from synthetic voices.

    Args:
        config: the model, whose sampling rate and frames the strings have to suit.
        seed: decides every batch.
    """
    rate = config.features.rate
    recordings = DigitRecordings.load(rate=rate)
    corpus = corpus_strings("kokoro", rate=rate)
    voices = synthesised_strings(rate=rate, seed=seed)
    return TrainingData(
        batches=ConnectedDigits(
            recordings=recordings,
            others=[*corpus, *voices],
            environment=AcousticEnvironment.load(rate),
            cut_filter=CutFilter(model=config),
            seed=seed,
        ),
        validation=recordings.strings(recordings.seen, "dev", _DEV_PER_SPEAKER, seed=_DEV_SEED),
        validation_name="strings of recordings kept apart (number 5 of each)",
        symbols=symbols(),
        about={
            "task": "digits",
            "data": [
                "Free Spoken Digit Dataset, recordings 6-49 of 5 speakers (CC BY-SA 4.0)",
                *([f"kokoro, {len(corpus)} synthetic strings (Apache-2.0)"] if corpus else []),
                *([f"espeak-ng and flite, {len(voices)} synthetic strings"] if voices else []),
            ],
            "noise": corpus_contents("noise"),
            "rir": corpus_contents("rir"),
        },
    )


def test_strings(recordings: DigitRecordings) -> list[Utterance]:
    """The 600 strings that figures are about: 100 of each speaker, the held-out one last."""
    return [
        string
        for speakers in (recordings.seen, (HELD_OUT,))
        for string in recordings.strings(speakers, "test", _TEST_PER_SPEAKER, seed=_TEST_SEED)
    ]


test_strings.__test__ = False  # type: ignore[attr-defined]  # no test of pytest's
