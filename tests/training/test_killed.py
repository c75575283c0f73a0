"""20 epochs are 10 epochs, `kill -9`, and 10 more: bit for bit."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from torch import Tensor

from nearfuture.training import load_model
from tests.training import killed


def everything(path: Path) -> dict[str, Tensor]:
    with safe_open(path, framework="pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


def killed_at(step: int, folder: Path) -> None:
    """A training in a process of its own, killed when it says this step."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.training.killed", str(folder)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        text=True,
    ) as training:
        assert training.stdout is not None
        for line in training.stdout:
            if line.split()[0] == str(step):
                training.send_signal(signal.SIGKILL)
                break
        training.stdout.close()
    assert training.returncode == -signal.SIGKILL


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("straight")
    killed.run(folder, lambda _: None)
    return folder


# At the end of the tenth epoch, and in the middle of the thirteenth, just before a validation.
@pytest.mark.parametrize("step", [30, pytest.param(38, marks=pytest.mark.slow)])
def test_twenty_epochs_are_ten_killed_and_ten_more(
    straight: Path, tmp_path: Path, step: int
) -> None:
    killed_at(step, tmp_path)
    before = load_model(tmp_path / "checkpoint.safetensors")[1]["step"]
    assert 0 < before < killed.OPTIONS.schedule.total_steps
    rest: list[tuple[int, int]] = []
    killed.run(tmp_path, lambda progress: rest.append((progress.step, progress.epoch)))
    assert rest[0] == (before + 1, before // killed.STEPS_PER_EPOCH)
    assert rest[-1] == (killed.OPTIONS.schedule.total_steps, killed.EPOCHS - 1)
    for name in ("checkpoint.safetensors", "best.safetensors"):
        one, two = everything(straight / name), everything(tmp_path / name)
        assert one.keys() == two.keys()
        assert [key for key, value in one.items() if not torch.equal(two[key], value)] == []
        assert load_model(straight / name)[1] == load_model(tmp_path / name)[1]
    kinds = {name.split(".")[0] for name in everything(straight / "checkpoint.safetensors")}
    assert kinds == {"model", "ema", "optimizer"}
