"""One thread a process, unless the environment or the command says otherwise; none spins."""

import os
import subprocess
import sys

import pytest

from nearfuture.cli.train import let_idle_threads_sleep
from nearfuture.training import HardwareOptions


@pytest.mark.parametrize(
    ("environment", "given", "threads"),
    [
        (None, None, 1),
        ("", None, 1),
        ("3", None, 3),
        ("3", 2, 2),
        (" 4,2", None, 4),
        ("0", None, 1),
        ("many", None, 1),
    ],
)
def test_the_command_decides_before_the_environment(
    environment: str | None, given: int | None, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if environment is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", environment)
    assert HardwareOptions(threads=given).thread_count == threads


def test_what_the_environment_says_of_waiting_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    monkeypatch.delenv("KMP_BLOCKTIME", raising=False)
    let_idle_threads_sleep()
    assert (os.environ["OMP_WAIT_POLICY"], os.environ["KMP_BLOCKTIME"]) == ("ACTIVE", "0")


def test_train_says_it_before_torch_is_loaded() -> None:
    code = """
import os, sys
from nearfuture.cli.train import train
from nearfuture.training import DataOptions

sys.modules["nearfuture.training.run"] = None  # so that it ends at an import
try:
    train(data=DataOptions(data=("nowhere",)))
except Exception:
    print(os.environ.get("OMP_WAIT_POLICY"))
"""
    environment = {k: v for k, v in os.environ.items() if k != "OMP_WAIT_POLICY"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "PASSIVE\n", done.stderr
