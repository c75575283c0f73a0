"""Synthetic voices: which are left out, and what happens where nothing is installed."""

import csv
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
import soundfile

from nearfuture.error import NearfutureError
from recipes.digits import WORDS, corpus_strings, synthesised_strings
from recipes.digits.voices import ESPEAK, FLITE
from tests.data.fixtures import tone, write_manifest


def test_the_voices_of_the_samples_stay_unseen() -> None:
    manifest = files("nearfuture") / "assets" / "samples" / "manifest.tsv"
    rows = csv.DictReader(manifest.read_text(encoding="utf-8").splitlines(), delimiter="\t")
    sampled = {row["voice"] for row in rows}
    assert len(sampled) >= 4
    trained = {f"flite {voice}" for voice in FLITE} | {f"espeak-ng {voice}" for voice in ESPEAK}
    assert not sampled & trained


def test_every_voice_comes_once() -> None:
    assert len(set(FLITE)) == len(FLITE)
    assert len(set(ESPEAK)) == len(ESPEAK)


def test_nothing_is_said_where_nothing_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert synthesised_strings(rate=8000) == []


def installed(monkeypatch: pytest.MonkeyPatch, *programs: str) -> list[list[str]]:
    """Synthesisers that write a tone; what they were told."""
    told: list[list[str]] = []

    def run(command: list[str], **_: object) -> None:
        told.append(command)
        path = command[command.index("-o" if command[0] == "flite" else "-w") + 1]
        soundfile.write(path, tone(300, 0.4, 16000), 16000)

    monkeypatch.setattr(shutil, "which", lambda name: name if name in programs else None)
    monkeypatch.setattr(subprocess, "run", run)
    return told


@pytest.mark.parametrize(
    ("programs", "voices"),
    [
        (("flite",), len(FLITE)),
        (("espeak-ng",), len(ESPEAK)),
        (("flite", "espeak-ng"), len(FLITE) + len(ESPEAK)),
    ],
)
def test_every_installed_voice_speaks(
    monkeypatch: pytest.MonkeyPatch, programs: tuple[str, ...], voices: int
) -> None:
    told = installed(monkeypatch, *programs)
    strings = synthesised_strings(rate=8000, per_voice=2)
    assert len(strings) == len(told) == 2 * voices
    for one, command in zip(strings, told, strict=True):
        assert one.text in command
        assert 1 <= len(one.text.split()) <= 7
        assert one.speaker == one.name.split(":")[0]
        assert set(one.text.split()) <= set(WORDS)
        assert one.name.startswith(command[0])
        assert (one.samples.size, one.samples.dtype) == (3200, np.float32)


def test_strings_follow_from_the_seed_whatever_else_is_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    installed(monkeypatch, "espeak-ng")
    alone = [one.name for one in synthesised_strings(rate=8000, per_voice=2)]
    assert alone != [one.name for one in synthesised_strings(rate=8000, per_voice=2, seed=1)]
    installed(monkeypatch, "flite", "espeak-ng")
    both = [one.name for one in synthesised_strings(rate=8000, per_voice=2)]
    assert both[2 * len(FLITE) :] == alone


def test_some_strings_are_short(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, "espeak-ng")
    digits = [len(one.text.split()) for one in synthesised_strings(rate=16000, per_voice=20)]
    shares = np.bincount(digits) / len(digits)
    np.testing.assert_allclose(shares, [0, *[0.15 / 2] * 2, *[0.85 / 5] * 5], atol=0.05)


def test_a_synthesiser_that_does_not_speak_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: list[str], **_: object) -> None:
        raise subprocess.CalledProcessError(1, command, stderr=b"no such\nvoice\n")

    monkeypatch.setattr(shutil, "which", lambda name: name)
    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(NearfutureError, match=r"flite does not speak .* kal \(no such voice\)"):
        synthesised_strings(rate=8000)


@pytest.mark.skipif(not shutil.which("flite"), reason="flite is not installed")
def test_a_real_synthesiser_speaks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recipes.digits.voices.ESPEAK", ())
    strings = synthesised_strings(rate=8000, per_voice=1)
    assert [one.name.split(":")[0] for one in strings] == [f"flite {voice}" for voice in FLITE]
    for one in strings:
        assert one.samples.size > 8000 * 0.15 * len(one.text.split())
        assert 0.01 < abs(one.samples).max() <= 1


def test_digit_strings_of_a_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEARFUTURE_CORPORA", str(tmp_path))
    assert corpus_strings("voices", rate=8000) == []
    rows = [
        ("a.wav", "one two", "train", "anna"),
        ("b.wav", "one two", "dev", "bert"),
        ("c.wav", "one moment", "train", "anna"),
        ("d.wav", "", "train", "anna"),
    ]
    folder = tmp_path / "voices"
    write_manifest(
        folder,
        [dict(zip(("path", "transcript", "split", "speaker"), row, strict=True)) for row in rows],
    )
    soundfile.write(folder / "a.wav", tone(300, 0.5, 16000), 16000)
    (one,) = corpus_strings("voices", rate=8000)
    assert (one.name, one.text, one.speaker) == ("a.wav", "one two", "anna")
    assert one.samples.size == 4000
