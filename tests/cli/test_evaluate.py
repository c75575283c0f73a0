"""`nearfuture evaluate` on folders as people have them, and on the bundled models."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import soundfile

from nearfuture.audio import read, resample
from nearfuture.cli import main
from nearfuture.runtime.bundle import MODELS
from tests.patience import PATIENCE_S

SAMPLES = MODELS.parent / "samples"


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    code = 0
    try:
        main(["evaluate", *map(str, arguments)])
    except SystemExit as stopped:
        code = int(stopped.code or 0)
    out, err = capsys.readouterr()
    return code, out, err


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The bundled voices with speakers and splits; one file is no audio, one is not there."""
    said = {
        line.split("\t")[0]: line.split("\t")[1:3]
        for line in (SAMPLES / "manifest.tsv").read_text(encoding="utf-8").splitlines()[1:]
    }
    rows = ["path\ttranscript\tspeaker\tsplit"]
    for number, (name, (text, voice)) in enumerate(said.items()):
        shutil.copy(SAMPLES / name, tmp_path / name)
        rows.append(f"{name}\t{text}\t{voice}\t{'test' if number else 'train'}")
    (tmp_path / "text.wav").write_text("These are words, but nobody speaks them.")
    rows += ["text.wav\tone\tnobody\ttest", "missing.wav\ttwo\tnobody\ttest"]
    (tmp_path / "manifest.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return tmp_path


def test_errors_delays_and_latency_of_every_budget(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("--data", folder, "--twin", "digits-bidirectional", "--speakers")
    code, out, err = run(capsys, *arguments)
    assert code == 0
    for ms in (55, 215, 375, 815):
        assert f"{ms} ms (τ = " in out
    assert "7 recordings" in out  # those of the test split that can be read
    for word in ("twin", "WER", "CER", "committed", "revisions", "lookahead", "real-time factor"):
        assert word in out
    assert "nothing is waited for" in " ".join(out.split())
    assert "espeak-ng" in out  # the speakers' table
    assert err.count("nearfuture: skipped: ") == err.count("\n") == 2
    assert "text.wav" in err
    assert "missing.wav" in err


def test_json_and_plot_are_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = ("--json", folder / "new" / "a.json", "--plot", folder / "new" / "a.svg")
    arguments = ("--data", folder, "--twin", "digits-bidirectional", "--by", "speaker")
    code, _, _ = run(capsys, *arguments, *files)
    assert code == 0
    saved = json.loads((folder / "new" / "a.json").read_text(encoding="utf-8"))
    assert [head["frames"] for head in saved["summary"]["heads"]] == [0, 4, 8, 19]
    assert saved["summary"]["by"] == "speaker"
    assert len(saved["results"]) == 7
    assert len(saved["problems"]) == 1  # found while decoding; the source names the missing file
    assert (folder / "new" / "a.svg").read_text(encoding="utf-8").startswith("<?xml")


def test_budgets_choose_the_heads(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "--data", folder, "--budgets", "60,400", "--limit", "2")
    assert code == 0
    assert "2 recordings" in out
    assert "(τ = 0)" in out
    assert "(τ = 8)" in out
    assert "τ = 4" not in out
    assert "twin" not in out  # nor the metrics that need one
    assert "emitted" not in out


def test_a_split_can_be_chosen(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "--data", folder, "--split", "train", "--budgets", "375")
    assert code == 0
    assert "1 recordings" in out
    code, _, err = run(capsys, "--data", folder, "--split", "dev")
    assert code == 2
    assert "no split 'dev': it has test, train" in err


@pytest.mark.parametrize(
    ("splits", "told"),
    [("test", "split test"), ("dev", "split dev"), ("", "all recordings")],
)
def test_the_training_split_is_not_evaluated_by_default(
    folder: Path, capsys: pytest.CaptureFixture[str], splits: str, told: str
) -> None:
    manifest = folder / "manifest.tsv"
    text = manifest.read_text(encoding="utf-8").replace("\ttest", f"\t{splits}")
    if not splits:
        text = text.replace("\ttrain", "\t")
    manifest.write_text(text, encoding="utf-8")
    code, out, _ = run(capsys, "--data", folder, "--budgets", "375")
    assert (code, f": {told}" in out) == (0, True)
    assert f"{7 if splits else 8} recordings" in out


def test_the_training_split_alone_has_to_be_asked_for(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = folder / "manifest.tsv"
    text = manifest.read_text(encoding="utf-8").replace("\ttest", "\ttrain")
    manifest.write_text(text, encoding="utf-8")
    code, _, err = run(capsys, "--data", folder)
    assert code == 2
    assert "has the splits train, and neither test nor dev: say which with --split" in err


def test_a_limit_is_spread_over_the_data(
    folder: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    arguments = ("--data", folder, "--limit", "3", "--json", tmp_path / "a.json")
    assert run(capsys, *arguments, "--budgets", "55")[0] == 0
    results = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))["results"]
    assert [one["speaker"] for one in results] == [
        "flite slt",
        "flite rms",
        "espeak-ng en-gb+m3",
    ]


def test_milliseconds_are_shown_to_a_tenth(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    audio = read(SAMPLES / "flite-rms-991.flac")
    soundfile.write(tmp_path / "a.wav", resample(audio.samples, audio.rate, 44_100), 44_100)
    (tmp_path / "a.txt").write_text("nine nine one")
    code, out, _ = run(capsys, "--data", tmp_path, "--budgets", "400")
    assert code == 0
    assert "380 ms (τ = 8)" in out  # the resampler waits for 4.98866 of them
    assert "98866" not in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--data", "x", "--limit", "0"], "--limit is a number of recordings from 1"),
        (["--data", "x", "--plot", "a.pdf"], "--plot is a .png or .svg file"),
        (["--data", "x", "--json", "."], "cannot be written"),
        (["--data", "x", "--budgets", "40"], "ask for 55 ms or more"),
        (["--data", "x", "--budgets", "soon"], "milliseconds between commas"),
        (["--data", "no such folder"], "there is no file or folder no such folder"),
        (["--data", "x", "--model", "digits-bidirectional", "--budgets", "9"], "no budget"),
        (["--data", "x", "--model", "nowhere"], "there is no model 'nowhere'"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert message in err


def test_data_is_required(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys)
    assert code == 2
    assert "--data requires an argument" in err


def test_mistakes_about_the_data_are_refused_before_decoding(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = folder / "one"
    one.mkdir()
    shutil.copy(SAMPLES / "flite-rms-3602.flac", one / "a.flac")
    (one / "a.txt").write_text("three six zero two")
    code, out, err = run(capsys, "--data", one, "--by", "speaker")
    assert (code, out) == (2, "")
    assert "at least 2 speakers" in err
    code, out, err = run(capsys, "--data", one, "--twin", "digits")
    assert (code, out) == (2, "")
    assert "--twin is a bidirectional model" in err


def test_nothing_that_can_be_heard_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.wav").write_text("These are words, but nobody speaks them.")
    (tmp_path / "a.txt").write_text("one")
    code, _, err = run(capsys, "--data", tmp_path)
    assert code == 2
    assert "a.wav" in err
    assert "nothing to sum up" in err
    assert "Traceback" not in err


def test_ctrl_c_is_no_traceback(folder: Path) -> None:
    code = (
        "import signal, sys, nearfuture.evaluation.run as module\n"
        "from nearfuture.cli import main\n"
        # Whoever runs the tests in the background had it ignored.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "inner = module.stream_recording\n"
        "def stream(*all):\n"
        "    print('decoding', file=sys.stderr, flush=True)\n"
        "    while True: inner(*all)\n"
        "module.stream_recording = stream\n"
        "main()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, "evaluate", "--data", str(folder)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stderr is not None
    seen = ""
    try:
        while "decoding" not in seen:
            seen += process.stderr.readline()
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        _, rest = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "Traceback" not in seen + rest


def test_a_plot_needs_matplotlib_and_not_all_of_training(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, out, err = run(capsys, "--data", "x", "--plot", "a.png")
    assert (code, out) == (2, "")
    assert err.endswith("install it with: pip install matplotlib\n")


def test_texts_that_the_model_cannot_write_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clip = SAMPLES / "flite-rms-991.flac"
    rows = ["path\ttranscript", f"{clip}\tstop", f"{clip}\tup we go", f"{clip}\tone"]
    data = tmp_path / "data.tsv"
    data.write_text("\n".join(rows), encoding="utf-8")
    code, out, _ = run(capsys, "--data", data, "--limit", "3")
    assert code == 0
    assert "2 of 3 texts have characters that digits does not write ('p'): they count" in out
    data.write_text("\n".join(["path\ttranscript", f"{clip}\tnine"]), encoding="utf-8")
    assert "does not write" not in run(capsys, "--data", data)[1]
