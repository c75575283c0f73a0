"""The wording of every command, pinned: its help and its typical errors, a file for each command.

Other tests assert codes, parameters and values of errors. After a change of wording, renew the
files, read the difference, and commit it:

    NEARFUTURE_RENEW_SNAPSHOTS=1 python -m pytest tests/cli/test_wording.py
    git diff tests/cli/snapshots
"""

import os
import shutil
from pathlib import Path

import pytest

from nearfuture.cli import app, main
from nearfuture.runtime.bundle import MODELS

SNAPSHOTS = Path(__file__).parent / "snapshots"
CLIP = MODELS.parent / "samples" / "flite-rms-3602.flac"

# What is typed after `nearfuture`; "a.flac" is a recording, "notes.wav" is none.
TYPED = {
    "nearfuture": ["--help"],
    "transcribe": [
        "transcribe --help",
        "transcribe --bugdet 400 a.flac",
        "transcribe a.flac --live --quiet",
        "transcribe a.flac --out a.doc",
        "transcribe a.flac --out a.srt --format vtt",
        "transcribe a.flac b.flac --format srt",
        "transcribe a.flac --budget 40",
        "transcribe a.flac --threshold 0.5",
        "transcribe a.flac --live --grammar home.yaml",
        "transcribe a.flac --grammar home.yaml",
        "transcribe a.flac --model none",
        "transcribe missing.wav notes.wav *.mp3",
    ],
    "listen": [
        "listen --help",
        "listen --file a.flac --device 1",
        "listen --file a.wav --wav-out a.wav",
        "listen --file a.flac --wav-out a.mp3",
        "listen --file missing.wav",
        "listen --model digits-bidirectional --file a.flac",
    ],
    "stream": [
        "stream --help",
        "stream missing.wav --url ws://127.0.0.1:9",
        "stream a.flac --url ws://127.0.0.1:9",
        "stream a.flac --url ftp://127.0.0.1",
    ],
    "measure": [
        "measure --help",
        "measure ws://127.0.0.1:9",
        "measure ws://127.0.0.1:9 a.flac --connections 0",
        "measure ws://127.0.0.1:9 a.flac --limit 3",
        "measure ws://127.0.0.1:9 missing.wav",
    ],
    "align": [
        "align --help",
        "align",
        "align a.flac --data .",
        "align a.flac b.flac --text one",
        "align a.flac --max-s 3",
        "align a.flac --segment cut --out a.json",
        "align a.flac --segment cut --max-s 0",
        "align a.flac --late --text one",
        "align a.flac --model digits --text one",
        "align a.flac",
        "align a.flac --text quinze",
    ],
    "train": [
        "train --help",
        "train",
        "train --data . --steps 0",
        "train --data . --steps 10 --epochs 1",
        "train --data . --preset tiny --from digits",
    ],
    "export": ["export --help", "export missing"],
    "audit": [
        "audit --help",
        "audit none",
        "audit missing.py:net",
        "audit nearfuture:nothing",
        "audit digits --frame-ms 10",
        "audit digits --at-most 19",
        "audit digits --at-most x",
        "audit nearfuture:load",
        "audit nearfuture:load --shape 1,x",
        "audit nearfuture:load --shape 1,8 --tokens 0",
        "audit nearfuture:load --shape 1,8 --keyword mask",
        "audit nearfuture:load --example a.flac",
    ],
    "demo": ["demo --help"],
    "budget": [
        "budget --help",
        "budget --causal-conv",
        "budget --conv 1,2",
        "budget --budget 10",
        "budget --hidden 0",
        "budget --rate 100",
    ],
    "evaluate": [
        "evaluate --help",
        "evaluate --data missing",
        "evaluate --data . --limit 0",
        "evaluate --data . --budgets x",
        "evaluate --data . --budgets 10",
        "evaluate --data . --plot a.pdf",
    ],
    "data": [
        "data --help",
        "data import --help",
        "data check --help",
        "data list --help",
        "data fetch --help",
        "data import missing --out new",
        "data check missing",
        "data fetch none --to corpora",
    ],
    "quantize": [
        "quantize --help",
        "quantize none",
        "quantize digits",
        "quantize digits --precision int2",
        "quantize digits --limit 3",
    ],
    "serve": [
        "serve --help",
        "serve --max-streams 0",
        "serve --tls-cert a.pem",
        "serve --listen none=1",
        "serve --allow-origin example",
        "serve --model none",
    ],
    "phrases": [
        "phrases --help",
        "phrases",
        "phrases none.yaml",
        "phrases home.yaml",
        "phrases home.yaml --intents Fly",
        "phrases home.yaml --sample 2",
        "phrases home.yaml --model digits",
    ],
    "lm": [
        "lm --help",
        "lm build --help",
        "lm build none.txt --out words.arpa",
        "lm build notes.wav --out words.arpa --order 10",
        "lm build notes.wav --out words.arpa",
    ],
    "lab": ["lab --help", "lab --port 99999", "lab --language fr"],
}

HOME = """
language: en
intents:
  Switch: {data: [{sentences: ["(turn|switch) {state} [the] {room} light[s]"]}]}
  Say: {data: [{sentences: ["say {anything}", "switch on the hall light"]}]}
lists:
  state: {values: ["on", "off"]}
  room: {values: [hall, kitchen]}
  anything: {wildcard: true}
"""


@pytest.mark.parametrize("command", TYPED)
def test_the_wording_is_that_of_the_snapshot(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    for name in ("FORCE_COLOR", "NEARFUTURE_CORPORA", "NEARFUTURE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("a.flac", "b.flac"):
        shutil.copy(CLIP, name)
    Path("home.yaml").write_text(HOME)
    Path("notes.wav").write_text("These are words, but nobody speaks them.")
    sections = []
    for typed in TYPED[command]:
        code: object = 0
        try:
            main(typed.split())
        except SystemExit as stopped:
            code = stopped.code or 0
        out, err = capsys.readouterr()
        lines = [line.rstrip() for line in (out + err).strip().splitlines()]
        sections.append("\n".join([f"$ nearfuture {typed}", *lines, f"[exit code {code}]\n"]))
    wording = "\n".join(sections)
    snapshot = SNAPSHOTS / f"{command}.txt"
    if os.environ.get("NEARFUTURE_RENEW_SNAPSHOTS"):
        snapshot.write_text(wording, encoding="utf-8")
    assert wording == snapshot.read_text(encoding="utf-8")


def test_every_command_has_a_snapshot_and_nothing_else() -> None:
    commands = {name for name in app if not name.startswith("-")}
    assert set(TYPED) - {"nearfuture"} == commands
    assert {path.stem for path in SNAPSHOTS.iterdir()} == set(TYPED)
