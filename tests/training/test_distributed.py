"""Processes that share a batch do together what one does alone, and none waits for ever."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from nearfuture.training import Group, load_model
from tests.patience import PATIENCE_S
from tests.training import workers


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What one process makes of all cases."""
    folder = tmp_path_factory.mktemp("alone")
    workers.every_case(folder, Group())
    return folder


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What two make of them."""
    folder = tmp_path_factory.mktemp("together")
    workers.together(folder, 2)
    return folder


def assert_close(one: dict[str, Tensor], two: dict[str, Tensor], tolerance: float) -> None:
    assert one.keys() == two.keys()
    for name, value in one.items():
        torch.testing.assert_close(two[name], value, rtol=0, atol=tolerance)


@pytest.mark.parametrize("case", workers.CASES)
def test_two_processes_are_one(alone: Path, together: Path, case: str) -> None:
    expected = load_file(alone / case / "0.safetensors")
    first, second = (load_file(together / case / f"{rank}.safetensors") for rank in range(2))
    assert first.keys() == second.keys()
    assert all(torch.equal(second[name], value) for name, value in first.items())
    assert_close(expected, first, workers.TOLERANCE[case])
    assert load_model(together / case / "checkpoint.safetensors")[1]["step"] == workers.STEPS


def test_what_one_process_skips_all_skip(alone: Path, together: Path) -> None:
    for folder in (alone, together):
        told = (folder / "poison" / "0.txt").read_text(encoding="utf-8").splitlines()
        named = sorted(line.split(": ")[0] for line in told)
        assert named == ["hurried.wav", "nan.wav", "odd.wav", "step 4"]
    assert (together / "poison" / "1.txt").read_text() == ""  # the main process reports


def test_processes_that_meet_as_torchrun_lets_them_are_one(alone: Path, together: Path) -> None:
    expected = load_file(alone / "batch norm" / "0.safetensors")
    for rank in range(2):
        assert_close(expected, load_file(together / "torchrun" / f"{rank}.safetensors"), 1e-10)


@pytest.mark.slow  # four processes load torch
def test_torchrun_starts_three_that_are_one(alone: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
            *("--nproc-per-node", "3", "-m", "tests.training.workers", str(tmp_path)),
        ],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    expected = load_file(alone / "batch norm" / "0.safetensors")
    assert_close(expected, load_file(tmp_path / "2.safetensors"), 1e-10)


def test_one_process_sums_with_nobody() -> None:
    group = Group()
    assert group.is_main
    assert torch.equal(group.sum(torch.tensor([1.0, 2.0])), torch.tensor([1.0, 2.0]))
    assert group.any(True)
    assert not group.any(False)
    assert group.gather(("a", "b")) == ("a", "b")
    weight = torch.nn.Parameter(torch.ones(2))
    weight.grad = torch.tensor([3.0, 4.0])
    assert group.sum_gradients([weight], torch.tensor([5.0])).tolist() == [5.0]
    assert weight.grad.tolist() == [3.0, 4.0]
