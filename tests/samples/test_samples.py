"""The shipped clips are what their manifest and README say."""

import csv
from importlib.resources import files

import numpy as np
import pytest

from nearfuture.audio import read

FOLDER = files("nearfuture") / "assets" / "samples"
ROWS = list(
    csv.DictReader((FOLDER / "manifest.tsv").read_text("utf-8").splitlines(), delimiter="\t")
)
DIGITS = {"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"}
RESERVED = {"flite slt", "flite rms", "espeak-ng en-us+f2", "espeak-ng en-gb+m3"}

clips = pytest.mark.parametrize("row", ROWS, ids=lambda row: row["path"])


def test_the_manifest_names_every_clip() -> None:
    shipped = {file.name for file in FOLDER.iterdir() if file.name.endswith(".flac")}
    assert shipped == {row["path"] for row in ROWS}
    assert len(ROWS) == 8
    assert len({row["transcript"] for row in ROWS}) == 8


def test_two_clips_of_each_reserved_voice_and_every_digit() -> None:
    voices = [row["voice"] for row in ROWS]
    assert set(voices) == RESERVED
    assert all(voices.count(voice) == 2 for voice in RESERVED)
    assert {word for row in ROWS for word in row["transcript"].split()} == DIGITS


@clips
def test_a_clip_has_its_length_and_size(row: dict[str, str]) -> None:
    data = (FOLDER / row["path"]).read_bytes()
    audio = read(data)
    assert data.startswith(b"fLaC")
    assert len(data) < 60_000
    assert audio.rate == (16000 if row["path"] == "flite-slt-41985.flac" else 8000)
    assert audio.seconds == pytest.approx(float(row["seconds"]), abs=6e-4)
    assert 3 <= len(row["transcript"].split()) <= 7


@clips
def test_a_clip_is_speech_between_two_silences(row: dict[str, str]) -> None:
    audio = read((FOLDER / row["path"]).read_bytes())
    silence = round(0.29 * audio.rate)
    for end in (audio.samples[:silence], audio.samples[-silence:]):
        assert 0 < np.sqrt(np.mean(end**2)) < 1e-3
    inside = audio.samples[silence:-silence]
    assert 0.05 < np.sqrt(np.mean(inside**2)) < 0.1
    assert abs(audio.samples).max() < 0.7
