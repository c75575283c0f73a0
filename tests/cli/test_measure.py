"""`nearfuture measure`: the command around the measurement, which has tests of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from nearfuture.cli import main
from tests.client.served import serving
from tests.client.standin import Standin

WORDS = [("one", 60.0), ("two", 120.0), ("three", 180.0)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two recordings with their texts, and a third without."""
    for name in "abc":
        soundfile.write(tmp_path / f"{name}.wav", np.full(1600, 0.2, np.float32), 8000)
    (tmp_path / "a.txt").write_text("One two THREE.")
    (tmp_path / "b.txt").write_text("one two three four")
    return tmp_path


def aligned(folder: Path, *names: str) -> Path:
    path = folder / "words.jsonl"
    words = [{"text": word, "start_ms": end - 50, "end_ms": end} for word, end in WORDS]
    lines = [json.dumps({"file": str(folder / name), "words": words}) for name in names]
    path.write_text("\n".join(lines))
    return path


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    code = 0
    # A busy computer may be late for a chunk; that is not what these tests are about.
    try:
        main(["measure", *map(str, arguments), "--chunk-ms", "200"])
    except SystemExit as stopped:
        code = int(stopped.code or 0)
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.parametrize("protocol", ["nearfuture", "vosk", "openai"])
def test_a_table_and_json(
    protocol: str, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    options = ("--words", aligned(folder, "a.wav"), "--json", folder / "found" / "all.json")
    with serving(getattr(Standin(words=WORDS, final_ms=40), protocol)) as url:
        code, out, _ = run(capsys, url, folder / "a.wav", "--protocol", protocol, *options)
    assert code == 0
    assert f"{protocol} protocol, 1 connection\n" in "\n".join(map(str.strip, out.split("\n")))
    for figure in ("first token", "partial lag", "finalisation", "word shown"):
        assert figure in out
    assert "3 in the reference, 0 lost, 0 changed, 0 added" in out
    assert "the words' own times (1)" in out
    told = json.loads((folder / "found" / "all.json").read_text())
    assert (told["url"], told["protocol"], told["complete"]) == (url, protocol, 1)
    assert told["ms"]["finalisation"]["p50"] >= 40
    assert told["ms"]["word settled"]["count"] == 3


def test_data_is_a_source_of_recordings(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "list.tsv").write_text("path\ttranscript\na.wav\tone two three\nz.wav\tlost\n")
    with serving(Standin(words=WORDS).vosk) as url:
        options = ("--protocol", "vosk", "--data", folder / "list.tsv", "--connections", "3")
        code, out, err = run(capsys, url, *options)
    assert code == 0
    assert "recordings: 3 complete" in out
    assert "energy (3)" in out
    assert "z.wav" in err


def test_a_lost_word_is_reported_and_no_text_is_no_reference(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(Standin(words=WORDS).vosk) as url:
        _, out, _ = run(capsys, url, folder / "b.wav", "--protocol", "vosk")
        assert "4 in the reference, 1 lost" in out
        code, out, _ = run(capsys, url, folder / "c.wav", "--protocol", "vosk")
    assert code == 0
    assert "no reference text" in out


def test_failures_are_counted_by_reason_and_the_exit_code_is_1(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = (folder / "a.wav", folder / "b.wav")
    code, out, _ = run(capsys, "ws://127.0.0.1:1/", *files, "--protocol", "vosk")
    assert code == 1
    told = out.splitlines()
    assert told[0] == "recordings: 0 complete, 2 failed; 0.0 s of audio, over 1 connection"
    assert told[1].startswith("failed 2 ×")
    assert "reference" not in out
    assert "failed 2 ×: ws://127.0.0.1:1/: nothing listens there" in " ".join(out.split())


def test_a_recording_that_cannot_be_read_is_left_out_and_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "bad.wav").write_text("no sound")
    with serving(Standin(words=WORDS).vosk) as url:
        files = (folder / "bad.wav", folder / "a.wav")
        code, out, err = run(capsys, url, *files, "--protocol", "vosk")
    assert code == 0
    assert "recordings: 1 complete" in out
    assert "bad.wav" in err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "--data"),
        (("a.wav", "--data", "."), "either one, not both"),
        (("a.wav", "--connections", "0"), "--connections"),
        (("a.wav", "--seconds", "0"), "--seconds"),
        (("a.wav", "--seconds", "nan"), "--seconds"),
        (("a.wav", "--finish-timeout-s", "-1"), "--finish-timeout-s is a time above 0, not -1"),
        (("a.wav", "--finish-timeout-s", "nan"), "--finish-timeout-s"),
        (("a.wav", "--budget", "400"), "--budget"),
        (("--data", ".", "--limit", "0"), "--limit"),
        (("missing.wav",), "missing.wav"),
        (("a.wav", "--words", "missing.jsonl"), "missing.jsonl"),
        (("a.wav", "--words", "a.txt"), "line 1"),
        (("b.wav", "--words", "words.jsonl"), "none of which"),
        (("a.wav", "--words", "other.jsonl"), "another text"),
        (("a.wav", "--json", "."), "--json"),
    ],
)
def test_mistakes_are_told(
    arguments: tuple[str, ...],
    told: str,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(folder)
    aligned(folder, "a.wav")
    (folder / "other.jsonl").write_text(
        '{"file": "a.wav", "words": [{"text": "no", "start_ms": 0, "end_ms": 9}]}'
    )
    code, out, err = run(capsys, "ws://127.0.0.1:1/", *arguments, "--protocol", "vosk")
    assert (code, out) == (2, "")
    assert told in " ".join(err.split())


def test_an_address_is_checked_before_anything_is_played(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, "localhost:2700", folder / "a.wav", "--protocol", "vosk")
    assert (code, out) == (2, "")
    assert "ws://" in err
