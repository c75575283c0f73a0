"""Evidence arrives late: by construction, in the sound of a /t/ or /d/, and in a sentence.

>>> import numpy as np
>>> from nearfuture import load
>>> from nearfuture.lab.plosive import FOLDER, decide, plosive, probabilities, schedules
>>> made_up = schedules()["schedules"]  # a /d/ is spoken; 40 ms a frame
>>> print([round(float(p), 2) for p in decide(made_up["late"]).t])  # of /t/, for τ = 0 … 6
[0.88, 0.95, 0.95, 0.0, 0.0, 0.0, 0.0]
>>> print([round(float(p), 2) for p in decide(made_up["scattered"]).t])
[0.27, 0.88, 0.05, 0.05, 0.05, 0.05, 0.05]
>>> voice_after_20_ms = probabilities(plosive(20))  # trained, 10 ms a frame
>>> print([p > 0.5 for p in voice_after_20_ms])
[True, True, False, False, False, False, False]
"""

from __future__ import annotations

import io
from dataclasses import asdict
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from nearfuture.lab import plosive, word_sense
from nearfuture.lab.endpoint import Between, Text
from nearfuture.lab.page import Media, Page

Onset = Annotated[int, Between(0, 100, 10)]
Lookahead = Annotated[int, Between(0, 6)]

_SHOWN_MS = (40, 180)
_BARS = 140


def adding(
    schedule: Literal["late", "scattered", "early"] = "late", tau: Lookahead = 0
) -> dict[str, Any]:
    """Add up made-up evidence, frame by frame, with the real layer."""
    about = plosive.schedules()
    evidence = about["schedules"][schedule]
    found = plosive.decide(evidence)
    return {
        "evidence": evidence,
        "reads": found.reads[tau],
        "waited_ms": about["frame_ms"] * int(found.reads[tau].nonzero()[0].max()),
        "t": found.t,
    }


def voicing(onset: Onset = 20, tau: Lookahead = 1) -> dict[str, Any]:
    """Let the trained recogniser hear a consonant, up to τ frames of 10 ms behind its burst."""
    sound = plosive.plosive(onset)
    manifest = plosive.recognizer().manifest
    return {
        "t": plosive.probabilities(sound),
        "heard_ms": manifest.frame_ms * (tau + 1),
        "burst_ms": sound.burst_ms,
        "onset_ms": sound.burst_ms + onset,
        "shown_ms": _SHOWN_MS,
        "wave": _extremes(sound),
    }


def sound(onset: Onset = 20) -> Media:
    """The consonant and its vowel as a WAV file, twice with a pause between."""
    import soundfile

    heard = plosive.plosive(onset)
    pause = np.zeros(heard.rate // 4, np.float32)
    samples = np.concatenate([heard.samples, pause, heard.samples])
    file = io.BytesIO()
    soundfile.write(file, samples, heard.rate, format="WAV", subtype="PCM_16")
    return Media(file.getvalue(), "audio/wav")


def sentence(
    word: Literal["bank", "gamsa"] = "bank", text: Annotated[str, Text(200)] = ""
) -> dict[str, Any]:
    """Let the taggers read a sentence word by word; the first example by default."""
    about = word_sense.word_of(word)
    found = word_sense.arrive(word, text or about.examples[0].text)
    return {
        **asdict(found),
        "word": about.name,
        "senses": about.senses,
        "examples": [asdict(example) for example in about.examples],
    }


def _extremes(sound: plosive.Plosive) -> NDArray[np.float64]:
    """The lowest and the highest sample of each part of what is shown, (parts, 2)."""
    begin, end = (round(sound.rate * ms / 1000) for ms in _SHOWN_MS)
    samples = sound.samples.astype(np.float64) / np.abs(sound.samples).max()
    parts = np.array_split(samples[begin:end], _BARS)
    return np.array([[part.min(), part.max()] for part in parts]).round(3)


PAGE = Page(
    name="evidence",
    endpoints={"adding": adding, "voicing": voicing, "sound": sound, "sentence": sentence},
    module=__name__,
    behind=(
        "layers/lookahead.py",
        "lab/plosive.py",
        "lab/word_sense.py",
        "runtime/stream.py",
    ),
)
