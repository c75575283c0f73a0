"""`nearfuture train` as a person runs it: to the end, interrupted, resumed, shared, mistaken."""

import io
import os
import pickle
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
import torch

from nearfuture.cli import main
from nearfuture.cli.console import Console
from nearfuture.cli.train import _Job, _print_results, _run
from nearfuture.error import NearfutureError
from nearfuture.runtime.bundle import MODELS
from nearfuture.training import (
    ArchitectureOptions,
    DataOptions,
    TrainingOptions,
    TrainingResult,
    bundle,
    load_model,
)
from tests.cli.without_export import export_nothing
from tests.patience import PATIENCE_S

SAMPLES = MODELS.parent / "samples" / "manifest.tsv"
BIDIRECTIONAL = ("--models", "bidirectional")


def arguments(out: Path, steps: int, *options: str) -> list[str]:
    given = ["--data", str(SAMPLES), "--preset", "tiny", "--steps", str(steps), *options]
    return ["train", *given, "--threads", "1", "--out", str(out)]


def environment(folder: Path) -> dict[str, str]:
    # Without noises and rooms, which take seconds to load.
    changes = {"COLUMNS": "120", "OMP_NUM_THREADS": "1", "NEARFUTURE_CORPORA": str(folder)}
    return {**os.environ, **changes}


@pytest.fixture(autouse=True)
def _no_corpora(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment(tmp_path).items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def no_export(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "export_bundle", export_nothing)


def run(given: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(given)
    assert not ended.value.code


def mistaken(given: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The line on stderr of a command that makes no sense."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main(given)
    assert ended.value.code == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    return err


@pytest.mark.usefixtures("no_export")
def test_both_models_to_the_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(arguments(tmp_path, 6, "--heads", "0,8", "--shifts", "0:2"))
    out = capsys.readouterr().out
    assert "recordings  8" in out  # what the data is, before the first step
    assert "validation: 8 recordings that were trained on" in out
    assert "everything" in out  # the bidirectional model's row
    assert "375 ms" in out
    for name in ("bidirectional", "streaming"):
        assert f"{name}: step 6 of 6, epoch " in out
        assert f"--model {tmp_path}/{name}/bundle" in out
    assert "checking recordings" not in out  # which is for terminals
    assert "noises: none, so they are synthetic" in out
    assert "0 recordings skipped, 0 more in some steps" in out
    _, header = load_model(tmp_path / "streaming" / "checkpoint.safetensors")
    assert (header["step"], header["options"]["distillation"]["distill"]) == (6, 3.0)


@pytest.mark.parametrize("rate", [0.5, 1.0])
def test_models_that_write_nothing_are_not_passed_over(rate: float) -> None:
    file = io.StringIO()
    result = TrainingResult(
        finished=True, error_rates=((0, 1.0, 1.0), (8, 1.0, rate)), latency_ms=(55.0, 375.0)
    )
    _print_results({"streaming": result}, Path("out"), Console(file=file, width=120))
    assert ("have learnt next to nothing yet" in file.getvalue()) == (rate == 1.0)


@pytest.mark.slow  # tests/training lets two processes share the work
@pytest.mark.usefixtures("no_export")
def test_two_processes_share_the_work_and_report_a_mistake_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(arguments(tmp_path, 3, *BIDIRECTIONAL, "--processes", "2"))
    assert capsys.readouterr().out.count("errors on") == 1  # one process reports
    _, header = load_model(tmp_path / "bidirectional" / "checkpoint.safetensors")
    assert (header["step"], header["run"]["processes"]) == (3, 2)
    seed = (*BIDIRECTIONAL, "--processes", "2", "--seed", "1")
    line = mistaken(arguments(tmp_path, 4, *seed), capsys)
    assert "was started otherwise: --seed 0 → 1; resume with" in line
    assert "steps" not in line  # which may change


def test_a_process_that_shares_the_work_ends_at_sigterm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    works = []

    def capture(work: partial[object], processes: int) -> None:
        works.append(pickle.loads(pickle.dumps(work)))
        raise NearfutureError(f"no {processes} processes are started here")

    monkeypatch.setattr("nearfuture.training.worker_group.worker_group", capture)
    job = _Job(DataOptions(), ArchitectureOptions(), TrainingOptions(), tmp_path)
    with pytest.raises(NearfutureError, match="no 2 processes"):
        _run(job, 2, Console())
    handler = signal.getsignal(signal.SIGTERM)
    with works[0].keywords["progress"].interruption():
        assert signal.getsignal(signal.SIGTERM) is handler


@pytest.mark.slow  # three processes load torch
def test_torchrun_starts_two_processes(tmp_path: Path) -> None:
    launcher = ["torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    training = ["-m", "tests.cli.without_export", *arguments(tmp_path, 3, *BIDIRECTIONAL)]
    done = subprocess.run(
        [sys.executable, "-m", *launcher, *training],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("errors on") == 1
    _, header = load_model(tmp_path / "bidirectional" / "checkpoint.safetensors")
    assert (header["step"], header["run"]["processes"]) == (3, 2)


BEGUN = ("--models", "streaming", "--heads", "0,8", "--longest", "9")


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training of one step."""
    folder = tmp_path_factory.mktemp("begun")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment(folder).items():
            patch.setenv(name, value)
        patch.setattr(bundle, "export_bundle", export_nothing)
        run(arguments(folder, 1, *BEGUN))
    return folder


@pytest.mark.usefixtures("no_export")
@pytest.mark.parametrize(
    ("now", "message"),
    [
        (("--seed", "1"), "--seed 0 → 1;"),
        (("--learning-rate", "0.001"), "--learning-rate 0.002 → 0.001;"),
        (("--no-regularise",), "--regularise True → False;"),
        (("--heads", "0"), "--heads [0, 8] → [0];"),
        (("--longest", "8"), "--longest 9.0 → 8.0;"),
        (("--preset", "base"), "`hidden` 32 → 96"),
        (("--rate", "16000"), "--rate 8000 → 16000;"),
    ],
)
def test_another_training_is_named_by_its_flags(
    begun: Path, now: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = arguments(begun, 1, *BEGUN)
    if now[0] in given:
        at = given.index(now[0])
        del given[at : at + 2]
    assert message in mistaken([*given, *now], capsys)


def started(out: Path, *options: str) -> subprocess.Popen[str]:
    """A long training, once it has written its checkpoint."""
    training = subprocess.Popen(
        [sys.executable, "-m", "nearfuture", *arguments(out, 100_000, *BIDIRECTIONAL, *options)],
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


@pytest.mark.parametrize("processes", ["1", pytest.param("2", marks=pytest.mark.slow)])
def test_control_c_keeps_a_checkpoint_that_goes_on(tmp_path: Path, processes: str) -> None:
    training = started(tmp_path, "--processes", processes)
    os.killpg(training.pid, signal.SIGINT)  # as a terminal does: to every process
    time.sleep(1)
    os.killpg(training.pid, signal.SIGINT)  # and once more, out of impatience
    out, err = ended(training)
    assert training.returncode == 130, err
    assert "Traceback" not in out + err
    assert "resumes from there" in " ".join(out.split())
    assert f"nearfuture export {tmp_path}" in out
    path = tmp_path / "bidirectional" / "checkpoint.safetensors"
    assert load_model(path)[1]["step"] < 100_000


def test_a_folder_that_cannot_be_made_is_refused_before_anything_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    given = ["train", "--data", "nowhere", "--steps", "1", "--out", str(tmp_path / "file" / "a")]
    line = mistaken(given, capsys)
    assert f"--out {tmp_path}/file/a cannot be made: Not a directory" in line


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
    ("options", "message"),
    [
        (["--data", "nowhere.tsv"], "nowhere.tsv"),
        (["--steps", "0"], "--steps is at least 1, not 0"),
        (["--steps", "5", "--epochs", "5"], "either --steps or --epochs"),
        (["--processes", "0"], "--processes is at least 1, not 0"),
        (["--longest", "0"], "more than 0 seconds"),
        (["--from", "nowhere"], "there is no model 'nowhere'"),
        (["--from", "digits", "--preset", "tiny"], "leave --preset out"),
        (["--from", "digits", "--rate", "16000"], "has --rate 8000 and keeps it"),
        (["--from", "digits", "--heads", "0"], "has --heads (0, 4, 8, 19) and keeps it"),
        (["--from", "digits", "--models", "bidirectional"], "choose --models streaming"),
        (["--from", "digits-bidirectional"], "cannot be trained on: it holds no weights.safe"),
        (["--longest", "0.1"], "over the limit of 0.1 s"),
        (["--models", "bidirectional", "--heads", "0"], "not trained"),
        (["--models", "bidirectional", "--distill", "1"], "--distill, --shifts and --delay"),
        (["--models", "streaming", "--shifts", "0:1"], "--shifts has no effect where --distill"),
        (["--shifts", "7:1"], "heads of 7 frames; the model has heads of 0, 4, 8, 19"),
        (["--delay-penalty=-1"], "--delay-penalty is at least 0, not -1"),
        (["--learning-rate", "nan"], "--learning-rate is at least 0"),
        (["--models", "streaming", "--distill", "1"], "train both models, or give --distill 0"),
        (
            ["--preset", "deep-speech-2-research", "--models", "streaming"],
            "cannot stream; choose --preset deep-speech-2-deployed",
        ),
    ],
)
def test_mistakes_are_one_line(
    options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = [] if "--data" in options else ["--data", str(SAMPLES)]
    given = ["train", *data, *options, "--threads", "1", "--out", str(tmp_path / "out")]
    assert message in mistaken(given, capsys)
    assert torch.get_num_threads() == 1
    assert not list(tmp_path.rglob("*.safetensors"))


def test_recordings_have_to_be_given(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--data" in mistaken(["train"], capsys)


@pytest.mark.parametrize(
    "option", [["--heads", "0,x"], ["--heads=-1"], ["--shifts", "3"], ["--steps", "many"]]
)
def test_what_is_no_number_is_refused_with_its_flag(
    option: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["train", "--data", str(SAMPLES), *option])
    assert ended.value.code == 2
    assert option[0].partition("=")[0] in capsys.readouterr().err
