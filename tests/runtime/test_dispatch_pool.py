"""The pool's rows, the sizes of batches, and the threads a machine bears."""

import os
from pathlib import Path

import numpy as np
import pytest

from nearfuture.runtime import Bundle, Engine
from nearfuture.runtime.cores import physical_cores
from nearfuture.runtime.engine import row
from nearfuture.runtime.scheduler.batch import BatchEngine, StatePool, bucket
from tests.waveform import signals

SPEECH = signals()["speech"]


@pytest.fixture(scope="module")
def engine(bundle_folder: Path) -> Engine:
    return Engine(Bundle.open(bundle_folder))


def test_buckets_are_few_and_waste_little() -> None:
    sizes = {bucket(rows) for rows in range(1, 257)}
    assert len(sizes) == 48
    for rows in range(1, 257):
        assert rows <= bucket(rows) <= max(rows, rows * 9 / 8)
        assert bucket(bucket(rows)) == bucket(rows)


def test_gather_returns_what_scatter_put_there(engine: Engine) -> None:
    random = np.random.default_rng(0)
    pool = StatePool(engine, slots=9)
    state = {
        name: random.integers(1, 9, array.shape).astype(array.dtype)
        for name, array in engine.start(5).items()
    }
    slots = [7, 0, 3, 8, 4]
    pool.scatter(state, slots)
    again = pool.gather([3, 7, 4], rows=3)
    for name, array in state.items():
        np.testing.assert_array_equal(again[name], array[[2, 0, 4]])
    pool.reset(7)
    fresh = engine.start(1)
    again = pool.gather([7, 0], rows=2)
    for name, array in state.items():
        np.testing.assert_array_equal(again[name][:1], fresh[name])
        np.testing.assert_array_equal(again[name][1:], array[1:2])


def test_any_turns_keep_every_streams_state(engine: Engine) -> None:
    """Streams that leave a batch, come back, begin anew, and are only read in between."""
    random = np.random.default_rng(0)
    pool = StatePool(engine, slots=9)
    fresh = engine.start(1)
    expected = {slot: {name: array[0] for name, array in fresh.items()} for slot in range(9)}
    for turn in range(60):
        slots = random.permutation(9)[: random.integers(1, 10)].tolist()
        if turn % 4 == 3:
            pool.reset(slots[0])
            expected[slots[0]] = {name: array[0] for name, array in fresh.items()}
        rows = bucket(len(slots) + int(random.integers(0, 10 - len(slots))))
        state = pool.gather(slots, rows=rows)
        for name, array in state.items():
            assert len(array) == rows
            for b, slot in enumerate(slots):
                np.testing.assert_array_equal(array[b], expected[slot][name])
        if turn % 3 == 2:
            continue  # as for the tails of streams that end
        after = {
            name: random.integers(1, 99, array.shape).astype(array.dtype)
            for name, array in state.items()
        }
        pool.scatter(after, slots)
        for b, slot in enumerate(slots):
            expected[slot] = {name: array[b].copy() for name, array in after.items()}


def test_slots_come_back(engine: Engine) -> None:
    pool = StatePool(engine, slots=3)
    taken = {pool.take() for _ in range(3)}
    assert (taken, len(pool._free)) == ({0, 1, 2}, 0)
    pool.give_back(1)
    assert (pool.take(), len(pool._free)) == (1, 0)


@pytest.mark.parametrize("rows", [17, 33, 40])
def test_padded_rows_change_no_bit(engine: Engine, rows: int) -> None:
    batch, single = BatchEngine(engine, 48), engine.start(1)
    slots = [batch.pool.take() for _ in range(rows)]
    assert bucket(rows) > rows or rows == 40
    for slot in slots:
        batch.pool.reset(slot)
    for at in range(0, 3200, 320):
        quanta = [SPEECH[at + b : at + b + 320 - b] for b in range(rows)]
        outputs = batch.step(slots, quanta)
        pcm = np.zeros((1, 320), np.float32)
        b = rows - 1
        pcm[0, : len(quanta[b])] = quanta[b]
        alone, single = engine.step(pcm, np.array([len(quanta[b])]), single)
        for tau, log_probs in row(alone, 0).items():
            np.testing.assert_array_equal(row(outputs, b)[tau], log_probs)
    for tau, log_probs in row(engine.finish(single), 0).items():
        np.testing.assert_array_equal(row(batch.finish(slots), b)[tau], log_probs)


def machine(folder: Path, siblings: list[str]) -> Path:
    for cpu, text in enumerate(siblings):
        path = folder / f"cpu{cpu}" / "topology"
        path.mkdir(parents=True)
        (path / "thread_siblings_list").write_text(text + "\n")
    return folder


@pytest.mark.parametrize(
    ("allowed", "quota", "cores"),
    [
        ({0, 1, 2, 3}, "max 100000", 2),
        ({0, 2}, "max 100000", 1),
        ({0, 1}, "max 100000", 2),
        ({0, 1, 2, 3}, "100000 100000", 1),
        ({0, 1, 2, 3}, "150000 100000", 2),
        ({0, 1, 2, 3}, "20000 100000", 1),
        ({0, 1, 2, 3}, "garbage", 2),
        ({8, 9}, "max 100000", 2),  # not described
    ],
)
def test_threads_are_the_physical_cores_one_may_use(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    allowed: set[int],
    quota: str,
    cores: int,
) -> None:
    cpus = machine(tmp_path / "cpu", ["0,2", "1,3", "0,2", "1,3"])
    (tmp_path / "cpu.max").write_text(quota + "\n")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: allowed, raising=False)
    assert physical_cores(cpus=cpus, groups=tmp_path) == cores


def test_a_quota_of_control_groups_version_1_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cpus = machine(tmp_path / "cpus", ["0", "1", "2", "3"])
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text("250000\n")
    (tmp_path / "cpu" / "cpu.cfs_period_us").write_text("100000\n")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3}, raising=False)
    assert physical_cores(cpus=cpus, groups=tmp_path) == 3
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text("-1\n")
    assert physical_cores(cpus=cpus, groups=tmp_path) == 4
