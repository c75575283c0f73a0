"""`nearfuture data` as people run it: what is printed, what is written, and the exit code."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nearfuture.cli import main
from nearfuture.data import read_source
from nearfuture.data.corpora import CORPORA
from tests.data.fixtures import write_manifest
from tests.data.sources import write_audio, write_hard_folder, write_text
from tests.patience import PATIENCE_S


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as stopped:
        main(["data", *map(str, arguments)])
    return int(stopped.value.code or 0)


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "140")


@pytest.fixture(scope="module")
def hard(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_hard_folder(tmp_path_factory.mktemp("data") / "hard")


def write_good(folder: Path, speakers: int = 5) -> Path:
    rows = []
    for number in range(speakers * 2):
        write_audio(folder / f"{number}.wav", 1.0, seed=number)
        words = f"take {'ab'[number % 2]}"
        rows.append({"path": f"{number}.wav", "transcript": words, "speaker": f"s{number // 2}"})
    return write_manifest(folder, rows)


# check --------------------------------------------------------------------------------------------


def test_check_of_good_recordings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("check", write_good(tmp_path)) == 0
    out = capsys.readouterr().out
    for told in ("10", "10.0 s", "8000 Hz", "5", "nothing is wrong"):
        assert told in out


def test_check_names_what_is_wrong(hard: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("check", hard, "--longest", 30) == 1
    out, err = capsys.readouterr()
    for told in (
        "wrong: too long: 1\n  long.wav: it is 60.0 s long, over the limit of 30 s",
        "wrong: cut off: 1\n  cut.wav: was cut off: 19956 of 48000 bytes",
        "wrong: not UTF-8: 2\n  latin.txt: is not UTF-8 (byte 0xf6",
        "wrong: empty transcript: 1\n  silent.wav",
        "8000 Hz (5), 16000 Hz (2), 44100 Hz (1)",
    ):
        assert told in out
    assert err == ""


def test_check_as_json(hard: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("check", hard, "--json", "--vocabulary", " abc") == 1
    told = json.loads(capsys.readouterr().out)
    counts = {finding["kind"]: finding["count"] for finding in told["issues"]}
    assert counts["outside the vocabulary"] == len(set(told["symbols"]) - set(" abc"))


def test_a_model_is_a_vocabulary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_audio(tmp_path / "1.wav")
    write_text(tmp_path / "1.txt", "six zebras")
    assert run("check", tmp_path, "--vocabulary", "digits") == 1
    out = capsys.readouterr().out
    assert "wrong: outside the vocabulary: 2" in out
    assert "'a': 1 times" not in out
    assert "'b': once, in 1.wav" in out


def test_all_are_named_when_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(6):
        write_audio(tmp_path / f"{number}.wav", 0.1)
    assert run("check", tmp_path) == 1
    out = capsys.readouterr().out
    assert out.count(".txt beside") == 3
    assert "3 more: data check --all" in out
    assert run("check", tmp_path, "--all") == 1
    assert capsys.readouterr().out.count(".txt beside") == 6


# import -------------------------------------------------------------------------------------------


def test_import_names_problems_and_goes_on(
    hard: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("import", hard, "--out", tmp_path / "out") == 0
    out = capsys.readouterr().out
    assert "wrong: cut off: 1" in out
    assert "8 recordings, 7 skipped; 2 of them wrong, see above" in out
    source = read_source(tmp_path / "out")
    assert len(source.cuts) == 8
    assert {item.name for item in source.cuts} >= {"long.wav", "sub folder/stereo.wav"}


def test_import_splits_by_speaker(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_good(tmp_path / "in")
    flags = ("--split-by", "speaker", "--dev", 0.2, "--test", 0.2, "--copy")
    assert run("import", tmp_path / "in", "--out", tmp_path / "out", *flags) == 0
    assert "dev 2 (2.0 s), test 2 (2.0 s), train 6 (6.0 s)" in capsys.readouterr().out
    items = read_source(tmp_path / "out").cuts
    assert len({(item.speaker, item.split) for item in items}) == 5
    assert all(item.path.is_relative_to(tmp_path / "out/audio") for item in items)


def test_import_of_nothing_usable(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_audio(tmp_path / "in/1.wav")
    assert run("import", tmp_path / "in", "--out", tmp_path / "out") == 1
    assert "nothing is left" in capsys.readouterr().out
    assert not (tmp_path / "out").exists()


def test_import_finds_the_same_audio_in_the_splits_it_makes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(10):
        write_audio(tmp_path / f"in/{number}.wav", seed=1)
        write_text(tmp_path / f"in/{number}.txt", f"take {number}")
    assert run("import", tmp_path / "in", "--out", tmp_path / "out", "--split-by", "random") == 0
    assert "wrong: same audio in two splits: " in capsys.readouterr().out


def test_control_c_leaves_nothing_half_written(tmp_path: Path) -> None:
    for number in range(400):
        write_audio(tmp_path / f"in/{number}.wav", 1.0, seed=number)
        write_text(tmp_path / f"in/{number}.txt", "words")
    out = tmp_path / "out"
    code = "from nearfuture.cli import main; main()"
    arguments = ["data", "import", str(tmp_path / "in"), "--out", str(out), "--copy"]
    command = subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + PATIENCE_S
    while not out.exists():
        assert command.poll() is None, command.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.001)
    command.send_signal(signal.SIGINT)
    told, err = command.communicate(timeout=PATIENCE_S)
    if command.returncode == 0:  # faster than the signal: then it is complete
        assert len(read_source(out).cuts) == 400
    else:
        assert (command.returncode, err) == (130, b""), (told, err)
        assert not out.exists()


# list and fetch -----------------------------------------------------------------------------------


def test_a_list_fits_a_narrow_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert run("list", "--to", tmp_path) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("│ ")]
    assert len(rows) < 3 * len(CORPORA)


def test_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_good(tmp_path / "fsdd")
    assert run("list", "--to", tmp_path) == 0
    out = capsys.readouterr().out
    for told in (
        "librispeech-train-clean-100",
        "CC BY-SA 4.0",
        "openslr.org/resources/31",
        ", sha256 checked",
        ", whose publisher states no checksum",
        f"Here: in {tmp_path}.",
    ):
        assert told in out
    rows = {line.split()[1]: line for line in out.splitlines() if line.startswith("│ ")}
    assert "yes" in rows["fsdd"].split("│")[-2]
    assert "–" in rows["prompts"].split("│")[-2]
    assert "…" not in out  # all of it in 80 columns


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["fetch", "libri"], "choose one of fsdd, prompts"),
        (["fetch", "fsdd", "--mirror", "somewhere"], "begins with http or https"),
        (["check", "nowhere"], "there is no file or folder nowhere: name a folder"),
        (["check", "nowhere", "--vocabulary", "models/none"], "there is no model models/none"),
        (["import", "nowhere", "--out", "out"], "there is no file or folder nowhere"),
    ],
)
def test_mistakes_are_told_in_one_line(
    arguments: list[str],
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NEARFUTURE_CORPORA", str(tmp_path))
    assert run(*arguments) == 2
    out, err = capsys.readouterr()
    assert told in err
    assert (out, err.count("\n")) == ("", 1)


def test_splits_that_cannot_be_write_nothing(
    hard: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("import", hard, "--out", tmp_path / "out", "--split-by", "speaker") == 2
    assert "has no speaker" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
