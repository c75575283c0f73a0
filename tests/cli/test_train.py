"""`nearfuture train` as a person runs it: to the end, interrupted, resumed, shared, mistaken."""

import io
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from nearfuture.cli import main
from nearfuture.cli.console import Console
from nearfuture.cli.train import _in_our_words, _print
from nearfuture.runtime import load
from nearfuture.runtime.bundle import MODELS
from nearfuture.training import load_model
from nearfuture.training.checkpoint import OtherTrainingError
from nearfuture.training.session import Outcome
from tests.patience import PATIENCE_S

SAMPLES = MODELS.parent / "samples" / "manifest.tsv"
BOTH_WAYS = ("--models", "bidirectional")


def command(out: Path, steps: int, *options: str) -> list[str]:
    told = ["--data", str(SAMPLES), "--preset", "tiny", "--steps", str(steps), *options]
    return ["-m", "nearfuture", "train", *told, "--threads", "1", "--out", str(out)]


def environment(folder: Path) -> dict[str, str]:
    # Without noises and rooms, which take seconds to load.
    changes = {"COLUMNS": "120", "OMP_NUM_THREADS": "1", "NEARFUTURE_CORPORA": str(folder)}
    return {**os.environ, **changes}


def ran(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )


def test_to_the_end_and_into_use(tmp_path: Path) -> None:
    done = ran(command(tmp_path, 6, "--heads", "0,8", "--shifts", "0:2"), tmp_path)
    assert done.returncode == 0, done.stderr
    assert "recordings  8" in done.stdout  # what the data is, before the first step
    assert "watched: 8 recordings that were trained on" in done.stdout
    assert "everything" in done.stdout  # the twin's row
    assert "375 ms" in done.stdout
    for name in ("bidirectional", "streaming"):
        assert f"{name}: step 6 of 6, epoch " in done.stdout
    assert "looking through" not in done.stdout  # which is for terminals
    assert "noises: none, so they are made up" in done.stdout
    assert "0 recordings left out, 0 skipped in some steps" in done.stdout
    assert load(tmp_path / "streaming" / "bundle", budget_ms=400).budget.frames == 8
    assert load(tmp_path / "bidirectional" / "bundle").manifest.kind == "bidirectional"
    _, about = load_model(tmp_path / "streaming" / "checkpoint.safetensors")
    assert (about["step"], about["distill"]) == (6, 3.0)


@pytest.mark.parametrize("rate", [0.5, 1.0])
def test_models_that_write_nothing_are_not_passed_over(rate: float) -> None:
    file = io.StringIO()
    outcome = Outcome(done=True, rates=((0, 1.0, 1.0), (8, 1.0, rate)), wait_ms=(55.0, 375.0))
    _print({"streaming": outcome}, Path("out"), Console(file=file, width=120))
    assert ("have learnt next to nothing yet" in file.getvalue()) == (rate == 1.0)


@pytest.mark.parametrize("start", [["--processes", "2"], "torchrun"], ids=["processes", "torchrun"])
def test_two_processes_share_the_work_and_tell_a_mistake_once(
    tmp_path: Path, start: list[str] | str
) -> None:
    if start == "torchrun":
        launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
        done = ran([*launcher, *command(tmp_path, 3, *BOTH_WAYS)], tmp_path)
    else:
        done = ran(command(tmp_path, 3, *BOTH_WAYS, *start), tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("errors on") == 1  # one process reports
    _, about = load_model(tmp_path / "bidirectional" / "checkpoint.safetensors")
    assert (about["step"], about["processes"]) == (3, 2)
    assert load(tmp_path / "bidirectional" / "bundle").manifest.kind == "bidirectional"
    if start == "torchrun":
        return
    mistaken = ran(command(tmp_path, 4, *BOTH_WAYS, *start, "--seed", "1"), tmp_path)
    assert mistaken.returncode == 2
    assert "was started otherwise: --seed 0 → 1; say what" in mistaken.stderr
    assert "steps" not in mistaken.stderr  # which may change
    assert mistaken.stderr.count("\n") == 1  # by one process


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"shift_frames": ({}, {"0": 2})}, "otherwise: --shifts {} → {'0': 2};"),
        ({"noise": ("none", "3 recordings (ab)")}, "noises of NEARFUTURE_CORPORA: none → 3 rec"),
        ({"recordings_sha256": ("a" * 64, "b" * 64)}, "otherwise: the recordings changed;"),
        ({"begin_with": (None, "a" * 64)}, "otherwise: --from changed;"),
        ({"average": (0.9, 0.8)}, "average: 0.9 → 0.8"),
        ({"frames": ([0, 8], [0]), "rate": (8000, 16000)}, r"--heads \[0, 8\] → \[0\], --rate 8"),
        ({"symbols": (["a"], ["a", "b"])}, "the characters of the texts changed;"),
        ({"dropout": (0.1, 0.0), "augmentation": ({}, {})}, "otherwise: --regularise changed;"),
    ],
)
def test_another_training_is_told_in_words_of_the_command(
    changes: dict[str, tuple[object, object]], told: str
) -> None:
    words = _in_our_words(OtherTrainingError(Path("a/checkpoint.safetensors"), changes))
    assert re.search(told, words)
    assert "a" * 64 not in words


def started(out: Path, *options: str) -> subprocess.Popen[str]:
    """A long training, once it has written its checkpoint."""
    training = subprocess.Popen(
        [sys.executable, *command(out, 100_000, *BOTH_WAYS, *options)],
        env=environment(out),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # As in a terminal, also where the tests themselves run in the background.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + PATIENCE_S
    while not (out / "bidirectional" / "checkpoint.safetensors").exists():
        if training.poll() is not None or time.monotonic() > deadline:
            os.killpg(training.pid, signal.SIGKILL)
            raise AssertionError(training.communicate())
        time.sleep(0.2)
    return training


def ended(training: subprocess.Popen[str]) -> tuple[str, str]:
    try:
        return training.communicate(timeout=PATIENCE_S)
    except BaseException:
        os.killpg(training.pid, signal.SIGKILL)
        training.communicate()
        raise


@pytest.mark.parametrize("processes", ["1", "2"])
def test_control_c_keeps_a_checkpoint_that_goes_on(tmp_path: Path, processes: str) -> None:
    training = started(tmp_path, "--processes", processes)
    os.killpg(training.pid, signal.SIGINT)  # as a terminal does: to every process
    time.sleep(1)
    os.killpg(training.pid, signal.SIGINT)  # and once more, out of impatience
    out, err = ended(training)
    assert training.returncode == 130, err
    assert "Traceback" not in out + err
    assert "goes on from there" in " ".join(out.split())
    assert f"nearfuture export {tmp_path}" in out
    path = tmp_path / "bidirectional" / "checkpoint.safetensors"
    assert load_model(path)[1]["step"] < 100_000


def test_a_folder_that_cannot_be_made_is_told_before_anything_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit) as stopped:
        main(["train", "--data", "nowhere", "--steps", "1", "--out", str(tmp_path / "file" / "a")])
    assert stopped.value.code == 2
    err = capsys.readouterr().err
    assert f"--out {tmp_path}/file/a cannot be made: Not a directory" in err


def children(parent: int) -> list[int]:
    """The processes that a process started. A small Linux has no `ps`, another system no /proc."""
    threads = [*Path(f"/proc/{parent}/task").glob("*/children")]
    if threads:
        return [int(pid) for one in threads for pid in one.read_text("ascii").split()]
    listed = subprocess.check_output(["ps", "-A", "-o", "pid=,ppid="], text=True)
    pairs = [line.split() for line in listed.splitlines()]
    return [int(pid) for pid, its_parent in pairs if its_parent == str(parent)]


def test_a_lost_process_ends_the_training_in_one_line(tmp_path: Path) -> None:
    training = started(tmp_path, "--processes", "2")
    mine = children(training.pid)
    for pid in mine:  # one that shares the work, and one that minds what they share
        os.kill(pid, signal.SIGKILL)
    out, err = ended(training)
    assert len(mine) == 2
    assert training.returncode == 2, err
    assert "ended unexpectedly; the last checkpoint is kept" in err
    assert "Traceback" not in out + err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "say what to train on: --data SOURCE"),
        (["--data", "nowhere.tsv"], "nowhere.tsv"),
        (["--data", str(SAMPLES), "--steps", "0"], "--steps is at least 1, not 0"),
        (["--data", str(SAMPLES), "--steps", "5", "--epochs", "5"], "either --steps or --epochs"),
        (["--data", str(SAMPLES), "--heads", "0,x"], "--heads is frames from 0"),
        (["--data", str(SAMPLES), "--heads=-1"], "--heads is frames from 0"),
        (["--data", str(SAMPLES), "--longest", "0"], "more than 0 seconds"),
        (["--data", str(SAMPLES), "--from", "nowhere"], "there is no model 'nowhere'"),
        (["--data", str(SAMPLES), "--from", "digits", "--preset", "tiny"], "leave --preset out"),
        (["--data", str(SAMPLES), "--from", "digits", "--rate", "16000"], "has 8000, and keeps it"),
        (
            ["--data", str(SAMPLES), "--from", "digits", "--heads", "0"],
            "has 0, 4, 8, 19, and keeps",
        ),
        (
            ["--data", str(SAMPLES), "--from", "digits", "--models", "bidirectional"],
            "is a streaming model, which is trained on alone",
        ),
        (
            ["--data", str(SAMPLES), "--from", "digits-bidirectional"],
            "cannot be trained on: it holds no weights.safetensors",
        ),
        (["--data", str(SAMPLES), "--longest", "0.1"], "over the limit of 0.1 s"),
        (["--data", str(SAMPLES), "--models", "bidirectional", "--heads", "0"], "not trained"),
        (["--data", str(SAMPLES), "--shifts", "3"], "--shifts is heads and frames"),
        (
            ["--data", str(SAMPLES), "--models", "bidirectional", "--distill", "1"],
            "about the streaming model, which is not trained",
        ),
        (
            ["--data", str(SAMPLES), "--models", "streaming", "--shifts", "0:1"],
            "--shifts has no effect where --distill is 0",
        ),
        (
            ["--data", str(SAMPLES), "--shifts", "7:1"],
            "heads of 7 frames; the model has heads of 0, 4, 8, 19",
        ),
        (["--data", str(SAMPLES), "--delay-penalty=-1"], "--delay-penalty is at least 0, not -1"),
        (["--data", str(SAMPLES), "--learning-rate", "nan"], "--learning-rate is at least 0"),
        (
            ["--data", str(SAMPLES), "--models", "streaming", "--distill", "1"],
            "train both models, or set distill to 0",
        ),
        (
            [
                *("--data", str(SAMPLES)),
                *("--preset", "deep-speech-2-research", "--models", "streaming"),
            ],
            "cannot stream; choose --preset deep-speech-2-deployed",
        ),
    ],
)
def test_mistakes_are_told_in_one_line(
    arguments: list[str],
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("NEARFUTURE_CORPORA", str(tmp_path))
    with pytest.raises(SystemExit) as stopped:
        main(["train", *arguments, "--threads", "1", "--out", str(tmp_path / "out")])
    assert stopped.value.code == 2
    err = capsys.readouterr().err
    assert told in err
    assert err.count("\n") == 1
    assert torch.get_num_threads() == 1
    assert not list(tmp_path.rglob("*.safetensors"))
