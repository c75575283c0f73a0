"""`nearfuture stream` against servers that do, and do not, what they should."""

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
PROTOCOLS = ["nearfuture", "vosk", "openai"]


@pytest.fixture
def clip(tmp_path: Path) -> Path:
    path = tmp_path / "clip.wav"
    soundfile.write(path, np.full(1600, 0.2, np.float32), 8000)
    return path


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    code = 0
    try:
        main(["stream", *map(str, arguments)])
    except SystemExit as stopped:
        code = int(stopped.code or 0)
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.parametrize("pace", ["--real-time", "--fast"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_final_text_is_printed(
    protocol: str, pace: str, clip: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(getattr(Standin(words=WORDS), protocol)) as url:
        done = run(capsys, clip, "--url", url, "--protocol", protocol, pace)
    assert done == (0, "one two three\n", "")


def test_each_utterance_is_a_line(clip: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(Standin(words=WORDS, ends={0}).nearfuture) as url:
        done = run(capsys, clip, "--url", url, "--fast")
    assert done == (0, "one\ntwo three\n", "")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_json_has_text_and_times(
    protocol: str, clip: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(getattr(Standin(words=WORDS, final_ms=30), protocol)) as url:
        code, out, err = run(capsys, clip, "--url", url, "--protocol", protocol, "--json")
    assert (code, err) == (0, "")
    told = json.loads(out)
    assert (told["text"], told["utterances"]) == ("one two three", ["one two three"])
    assert told["audio_ms"] == 200
    assert told["first_text_ms"] >= 60
    assert told["ended_ms"] >= 230


def test_the_budget_is_asked_for(clip: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked: list[Any] = []

    async def note(wire: Any) -> None:
        asked.append(json.loads(await wire.receive()))
        await wire.send('{"type": "error", "code": "budget", "message": "the smallest is 55 ms"}')

    with serving(note) as url:
        code, out, err = run(capsys, clip, "--url", url, "--budget", "40", "--model", "other")
    assert (asked[0]["budget_ms"], asked[0]["model"]) == (40, "other")
    assert (code, out) == (2, "")
    assert err == "nearfuture: the server reports: the smallest is 55 ms\n"


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("wrong", [{"close_ms": 100.0}, {"garbage": "oh"}, {"error": "no\nroom"}])
def test_errors_of_a_server_are_one_line(
    protocol: str, wrong: dict[str, Any], clip: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(getattr(Standin(words=WORDS, **wrong), protocol)) as url:
        code, out, err = run(capsys, clip, "--url", url, "--protocol", protocol, "--json")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1


def test_what_was_committed_before_a_failure_is_shown(
    clip: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(Standin(words=WORDS, close_ms=160.0).nearfuture) as url:
        code, out, err = run(capsys, clip, "--url", url)
    assert (code, out) == (2, "one two\n")
    assert "vanished" in err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--url", "localhost:2700"), "ws://"),
        (("--url", "ws://127.0.0.1:1/"), "is the server running?"),
        (("--url", "ws://here/", "--protocol", "vosk", "--budget", "400"), "--budget"),
        (("--url", "ws://here/", "--protocol", "vosk", "--model", "x"), "--model"),
    ],
)
def test_mistakes_are_one_line(
    arguments: tuple[str, ...], told: str, clip: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, clip, *arguments)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert told in err


def test_a_recording_that_cannot_be_read_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, tmp_path / "missing.wav", "--url", "ws://127.0.0.1:1/")
    assert code == 2
    assert "missing.wav" in err
