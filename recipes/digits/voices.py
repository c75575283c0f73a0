"""Digit strings in synthetic voices: those of a corpus, and those of installed synthesisers.

Voices of espeak-ng and flite cost nothing and differ widely; they make a model trained on six
people less foreign to a seventh. The voices of the bundled samples are left out, so that those
stay unseen.
"""

from __future__ import annotations

import dataclasses
import io
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from nearfuture import NearfutureError
from nearfuture.audio import read, resample
from nearfuture.data import Utterance, corpus_folder, read_source
from recipes.digits.strings import WORDS

FLITE = ("kal", "kal16", "awb")
ESPEAK = tuple(
    f"{accent}+{variant}"
    for accent, variants in {
        "en-us": ("m1", "m2", "m4", "m7", "f1", "f4", "klatt2", "Annie", "Gene", "Michael"),
        "en-gb": ("m1", "m5", "f3", "f5", "Andrea", "Lee", "steph", "grandpa"),
        "en-gb-scotland": ("m2", "f1"),
        "en-gb-x-rp": ("m4", "f4"),
        "en-029": ("m1", "f3"),
    }.items()
    for variant in variants
)


def corpus_strings(corpus: str, *, rate: int) -> list[Utterance]:
    """The digit strings of a corpus's training part; none where the corpus is not there."""
    folder = corpus_folder(corpus)
    if folder is None:
        return []
    return [
        dataclasses.replace(cut.load(rate), name=str(cut.path.relative_to(folder)))
        for cut in read_source(folder / "manifest.tsv").cuts
        if cut.split == "train" and set(cut.text.split()) <= set(WORDS)
    ]


def synthesised_strings(*, rate: int, per_voice: int = 20, seed: int = 0) -> list[Utterance]:
    """Digit strings in every training voice of the synthesisers that are installed.

    Raises:
        NearfutureError: where a synthesiser is installed, but does not speak.

    >>> bool({"slt", "rms"} & set(FLITE)) or any(v in ESPEAK for v in ("en-us+f2", "en-gb+m3"))
    False
    """
    return list(_synthesised(rate, per_voice, seed))


def _synthesised(rate: int, per_voice: int, seed: int) -> Iterator[Utterance]:
    programs = (("flite", FLITE), ("espeak-ng", ESPEAK))
    voices = [(program, voice) for program, names in programs for voice in names]
    with tempfile.TemporaryDirectory() as folder:
        for number, (program, voice) in enumerate(voices):
            if shutil.which(program) is None:
                continue
            rng = np.random.default_rng([seed, number])
            for _ in range(per_voice):
                short = rng.random() < 0.15
                digits = rng.integers(0, 10, rng.integers(1, 3) if short else rng.integers(3, 8))
                words = " ".join(WORDS[digit] for digit in digits)
                speed = float(rng.uniform(0.8, 1.3))
                path = Path(folder) / "voice.wav"
                if program == "flite":
                    stretch = f"duration_stretch={1 / speed:.2f}"
                    command = ["flite", "-voice", voice, "--setf", stretch, "-t", words]
                    command += ["-o", str(path)]
                else:
                    pitch = str(int(rng.integers(30, 70)))
                    pace = str(int(160 * speed))
                    command = ["espeak-ng", "-v", voice, "-s", pace, "-p", pitch]
                    command += ["-w", str(path), words]
                try:
                    subprocess.run(command, check=True, capture_output=True)
                except (OSError, subprocess.CalledProcessError) as error:
                    stderr = getattr(error, "stderr", b"") or b""
                    reason = " ".join(stderr.decode(errors="replace").split()) or str(error)
                    raise NearfutureError(
                        f"{program} does not speak with the voice {voice} ({reason}): mend its "
                        f"installation, or remove it to do without"
                    ) from error
                audio = read(io.BytesIO(path.read_bytes()))
                yield Utterance(
                    name=f"{program} {voice}: {words}",
                    samples=resample(audio.samples, audio.rate, rate),
                    text=words,
                    speaker=f"{program} {voice}",
                )
