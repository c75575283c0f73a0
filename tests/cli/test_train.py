"""`nearfuture train` as a person runs it: to the end, interrupted, resumed, mistaken."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nearfuture.cli import main
from nearfuture.runtime import load
from nearfuture.runtime.bundle import MODELS
from nearfuture.training import load_model

MANIFEST = MODELS.parent / "samples" / "manifest.tsv"


def command(out: Path, steps: int) -> list[str]:
    options = ["--manifest", str(MANIFEST), "--preset", "tiny", "--steps", str(steps)]
    code = "from nearfuture.cli import main; main()"
    return [sys.executable, "-c", code, "train", *options, "--out", str(out)]


def environment() -> dict[str, str]:
    return {**os.environ, "COLUMNS": "120", "OMP_NUM_THREADS": "1"}


def test_to_the_end_and_into_use(tmp_path: Path) -> None:
    done = subprocess.run(
        command(tmp_path, 6), env=environment(), capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert "everything" in done.stdout  # the twin's row
    assert load(tmp_path / "streaming" / "bundle", budget_ms=400).budget.frames == 8
    assert load(tmp_path / "bidirectional" / "bundle").manifest.kind == "bidirectional"
    assert load_model(tmp_path / "streaming" / "checkpoint.safetensors")[1]["step"] == 6


def test_control_c_keeps_a_checkpoint_that_goes_on(tmp_path: Path) -> None:
    checkpoint = tmp_path / "streaming" / "checkpoint.safetensors"
    training = subprocess.Popen(
        command(tmp_path, 100_000),
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # As in a terminal, also where the tests themselves run in the background.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        deadline = time.monotonic() + 240
        while not checkpoint.exists():
            assert training.poll() is None, training.communicate()
            assert time.monotonic() < deadline, "no checkpoint was written"
            time.sleep(0.2)
        os.killpg(training.pid, signal.SIGINT)  # as a terminal does: to every process
        time.sleep(1)
        os.killpg(training.pid, signal.SIGINT)  # and once more, out of impatience
        out, err = training.communicate(timeout=120)
    except BaseException:
        os.killpg(training.pid, signal.SIGKILL)
        training.communicate()
        raise
    assert training.returncode == 130, err
    assert "Traceback" not in out + err
    assert "goes on from there" in " ".join(out.split())
    _, about = load_model(checkpoint)
    assert about["step"] < 100_000


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "either --task digits or --manifest"),
        (["--task", "digits", "--manifest", "x.tsv"], "not both"),
        (["--manifest", "nowhere.tsv"], "nowhere.tsv"),
        (["--manifest", str(MANIFEST), "--steps", "0"], "at least 1 step"),
        (
            [
                *("--manifest", str(MANIFEST)),
                *("--preset", "deep-speech-2-research", "--models", "streaming"),
            ],
            "cannot stream; choose --preset deep-speech-2-deployed",
        ),
    ],
)
def test_mistakes_are_told_in_one_line(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["train", *arguments])
    assert stopped.value.code == 2
    err = capsys.readouterr().err
    assert told in err
    assert err.count("\n") == 1
