"""Small corpora that tests write themselves: tones in the place of voices."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import soundfile

from recipes.digits import WORDS

SPEAKERS = ("anna", "bert", "theo")
TAKES = 8  # five for testing, one for watching, two for training


def tone(hertz: float, seconds: float, rate: int = 8000, *, level: float = 0.3) -> np.ndarray:
    time = np.arange(round(seconds * rate)) / rate
    return (level * np.sin(2 * np.pi * hertz * time)).astype(np.float32)


def write_manifest(folder: Path, rows: Iterable[Mapping[str, str]]) -> Path:
    rows = list(rows)
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["\t".join(rows[0])] + ["\t".join(row.values()) for row in rows]
    path = folder / "manifest.tsv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def hertz_of(speaker: str, digit: int, take: int) -> float:
    """A frequency of its own for every recording, far enough apart to be told by an FFT."""
    number = (SPEAKERS.index(speaker) * len(WORDS) + digit) * TAKES + take
    return 200.0 + 15.0 * number


def write_digits(folder: Path) -> Path:
    """A folder in the form of the Free Spoken Digit Dataset; every recording is one tone."""
    rows = []
    for speaker in SPEAKERS:
        for digit, word in enumerate(WORDS):
            for take in range(TAKES):
                name = f"recordings/{digit}_{speaker}_{take}.wav"
                (folder / "recordings").mkdir(parents=True, exist_ok=True)
                samples = tone(hertz_of(speaker, digit, take), 0.3)
                soundfile.write(folder / name, samples, 8000)
                split = "test" if take < 5 else "train"
                rows.append({"path": name, "transcript": word, "speaker": speaker, "split": split})
    write_manifest(folder, rows)
    return folder
