"""Make the clips in src/nearfuture/assets/samples: synthetic voices, strings of real recordings.

    python tools/make_samples.py synthetic  (needs flite 2.2 and espeak-ng 1.51 on the path)
    python tools/make_samples.py people     (needs the corpus fsdd under NEARFUTURE_CORPORA)

The same versions give the same bytes. The voices are reserved: no model may be trained on them.
"""

from __future__ import annotations

import csv
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

import numpy as np
import soundfile

sys.path.insert(0, str(Path(__file__).parents[1]))

from nearfuture.audio import read, resample
from recipes.digits import HELD_OUT, DigitRecordings

FOLDER = Path(__file__).parents[1] / "src" / "nearfuture" / "assets" / "samples"
DIGITS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]

# synthesizer, voice, digits, rate in Hz
CLIPS = [
    ("flite", "slt", "720", 8000),
    ("flite", "slt", "41985", 16000),
    ("flite", "rms", "3602", 8000),
    ("flite", "rms", "991", 8000),
    ("espeak-ng", "en-us+f2", "842617", 8000),
    ("espeak-ng", "en-us+f2", "503", 8000),
    ("espeak-ng", "en-gb+m3", "1648", 8000),
    ("espeak-ng", "en-gb+m3", "2759306", 8000),
]

PEOPLE_DIGITS = 5
PEOPLE_SEED = 2015

SILENCE_SECONDS = 0.3
SPEECH_DBFS = -23.0
ROOM_DBFS = -66.0  # faint noise under everything: a room, not digital silence


def command(synthesizer: str, voice: str, transcript: str, file: str) -> list[str]:
    """The command that synthesizes a transcript to a file."""
    if synthesizer == "flite":
        return ["flite", "-voice", voice, "-t", transcript, "-o", file]
    return ["espeak-ng", "-v", voice, "-s", "140", "-w", file, transcript]


def synthesized(synthesizer: str, voice: str, transcript: str, rate: int, seed: int) -> np.ndarray:
    """Speech at a moderate level between two silences."""
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "spoken.wav")
        subprocess.run(command(synthesizer, voice, transcript, file), check=True)
        audio = read(file)
    loud = np.flatnonzero(abs(audio.samples) > 0.01 * abs(audio.samples).max())
    speech = resample(audio.samples[loud[0] : loud[-1] + 1], audio.rate, rate)
    speech *= 10 ** (SPEECH_DBFS / 20) / np.sqrt(np.mean(speech**2))
    return in_a_room(speech, rate, seed)


def in_a_room(speech: np.ndarray, rate: int, seed: int) -> np.ndarray:
    """Speech between two silences, over faint noise."""
    silence = np.zeros(round(SILENCE_SECONDS * rate))
    clip = np.concatenate((silence, speech, silence))
    return clip + 10 ** (ROOM_DBFS / 20) * np.random.default_rng(seed).standard_normal(len(clip))


def synthetic() -> None:
    """Write the clips of synthetic voices and their manifest."""
    rows = []
    for synthesizer, voice, digits, rate in CLIPS:
        name = f"{synthesizer}-{voice.replace('+', '-')}-{digits}.flac"
        transcript = " ".join(DIGITS[int(digit)] for digit in digits)
        clip = synthesized(synthesizer, voice, transcript, rate, seed=zlib.crc32(name.encode()))
        soundfile.write(FOLDER / name, clip, rate, subtype="PCM_16")
        rows.append((name, transcript, f"{synthesizer} {voice}", f"{len(clip) / rate:.3f}"))
    write_manifest(FOLDER, "voice", rows)


def people() -> None:
    """Write one string of each speaker's test recordings, drawn by the seed, at their own level.

    The speaker who is held out of training comes last.
    """
    recordings = DigitRecordings.load()
    folder = FOLDER / "people"
    folder.mkdir(exist_ok=True)
    rows = []
    for number, speaker in enumerate((*recordings.seen, HELD_OUT)):
        rng = np.random.default_rng([PEOPLE_SEED, number])
        utterance = recordings.clean_string(speaker, "test", PEOPLE_DIGITS, rng)
        digits = "".join(str(DIGITS.index(word)) for word in utterance.text.split())
        name = f"{speaker}-{digits}.flac"
        clip = in_a_room(utterance.samples, recordings.rate, seed=zlib.crc32(name.encode()))
        soundfile.write(folder / name, clip, recordings.rate, subtype="PCM_16")
        rows.append((name, utterance.text, speaker, f"{len(clip) / recordings.rate:.3f}"))
    write_manifest(folder, "speaker", rows)


def write_manifest(folder: Path, voice: str, rows: list[tuple[str, str, str, str]]) -> None:
    """Write the transcript, the voice or speaker, and the duration of each clip."""
    with (folder / "manifest.tsv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
        writer.writerow(("path", "transcript", voice, "seconds"))
        writer.writerows(rows)
    print(f"{len(rows)} clips in {folder}", file=sys.stderr)


if __name__ == "__main__":
    {"synthetic": synthetic, "people": people}[sys.argv[1]]()
