"""The snippets of docs/protocols.md do what the page says."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nearfuture.runtime import Dispatcher, load
from tests.patience import PATIENCE_S
from tests.serving.live import CLIPS, Live, live, spoken, wav

PAGE = Path(__file__).parents[2] / "docs" / "protocols.md"
SNIPPETS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
PLACES = {"localhost:8000": "address", "localhost:2700": "vosk"}


@pytest.fixture(scope="module")
def server(engine: Dispatcher) -> Iterator[Live]:
    with live(engine) as server:
        yield server


def test_every_protocol_has_a_snippet() -> None:
    assert len(SNIPPETS) == 3
    assert "websockets.connect" in SNIPPETS[0]
    assert "transcriptions.create" in SNIPPETS[1]
    assert "realtime.connect" in SNIPPETS[2]


@pytest.mark.parametrize("number", range(3), ids=["vosk", "rest", "realtime"])
def test_a_snippet_prints_the_text(server: Live, tmp_path: Path, number: int) -> None:
    pcm = spoken(CLIPS[0], pause_s=0.1, rate=24000)
    (tmp_path / "digits.wav").write_bytes(wav(pcm, 24000))
    snippet = SNIPPETS[number]
    for place, name in PLACES.items():
        snippet = snippet.replace(place, getattr(server, name))
    ran = subprocess.run(
        [sys.executable, "-c", snippet],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": ""},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    text = load("digits").transcribe(pcm, 24000).text
    assert text
    assert text in ran.stdout
