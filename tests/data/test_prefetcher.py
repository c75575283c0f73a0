"""The next batch is made in a thread, and nobody can tell but by the clock."""

import subprocess
import sys
import threading

import pytest

from nearfuture.data.batching.batch import Batch
from nearfuture.data.batching.prefetcher import Prefetcher
from tests.patience import PATIENCE_S


def made(step: int, rank: int, world_size: int) -> Batch:
    return Batch(skipped=(f"{step} {rank} {world_size}",))


def threads() -> list[str]:
    return [one.name for one in threading.enumerate() if one.name.startswith("nearfuture")]


def finish() -> None:
    for one in threading.enumerate():
        if one.name.startswith("nearfuture"):
            one.join()


def test_any_order_of_steps_and_ranks_gets_its_own() -> None:
    ahead = Prefetcher()
    for key in [(0, 0, 1), (1, 0, 1), (2, 1, 2), (3, 1, 2), (3, 0, 2), (9, 0, 2), (9, 0, 2)]:
        assert ahead.batch(made, *key).skipped == made(*key).skipped


def test_the_next_step_is_made_before_it_is_asked_for() -> None:
    ahead, asked = Prefetcher(), []

    def noted(step: int, rank: int, world_size: int) -> Batch:
        assert (rank, world_size) == (1, 2)  # this rank's, not another's
        asked.append((step, threading.current_thread() is threading.main_thread()))
        return made(step, rank, world_size)

    for step in range(3):
        ahead.batch(noted, step, 1, 2)
    finish()
    assert asked == [(0, True), (1, False), (2, False), (3, False)]


def test_an_error_is_raised_at_its_own_step_every_time() -> None:
    def fails(step: int, rank: int, world_size: int) -> Batch:
        if step == 2:
            raise OSError("step 2")
        return made(step, rank, world_size)

    ahead = Prefetcher()
    assert [ahead.batch(fails, step, 0, 1).skipped[0][0] for step in (0, 1)] == ["0", "1"]
    for _ in range(2):
        with pytest.raises(OSError, match="step 2"):
            ahead.batch(fails, 2, 0, 1)
    assert ahead.batch(fails, 3, 0, 1).skipped == ("3 0 1",)


def test_an_error_ahead_that_nobody_asks_for_is_nobodys() -> None:
    def fails(step: int, rank: int, world_size: int) -> Batch:
        if step == 1:
            raise OSError("step 1")
        return made(step, rank, world_size)

    ahead = Prefetcher()
    ahead.batch(fails, 0, 0, 1)
    assert ahead.batch(fails, 5, 0, 1).skipped == ("5 0 1",)


def test_never_two_at_once_and_none_is_left() -> None:
    working, most = 0, 0
    lock = threading.Lock()

    def counted(step: int, rank: int, world_size: int) -> Batch:
        nonlocal working, most
        with lock:
            working += 1
            most = max(most, working)
        threading.Event().wait(0.002)
        with lock:
            working -= 1
        return made(step, rank, world_size)

    ahead = Prefetcher()
    for step in (0, 1, 7, 8, 3, 3):
        ahead.batch(counted, step, 0, 1)
        assert len(threads()) <= 1
    finish()
    assert most == 1
    assert threads() == []


def test_a_process_ends_with_a_batch_in_the_making() -> None:
    script = (
        "import time\n"
        "from nearfuture.data.batching.prefetcher import Prefetcher\n"
        "from nearfuture.data.batching.batch import Batch\n"
        "def make(step, rank, world_size):\n"
        "    time.sleep(0.3 * step)\n"
        "    return Batch()\n"
        "Prefetcher().batch(make, 0, 0, 1)\n"
        "print('done')\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    assert (result.stdout.strip(), result.stderr) == ("done", "")
