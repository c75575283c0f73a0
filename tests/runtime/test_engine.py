"""The graphs in ONNX Runtime: the same as torch, and rows that are independent, bit for bit."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nearfuture.error import NearfutureError, NotStreamable
from nearfuture.export.streams import run_streams
from nearfuture.model import Recognizer
from nearfuture.runtime import Bundle, Engine, OfflineEngine
from nearfuture.runtime.engine import State, row
from tests.runtime.states import assert_rows_are_strangers, gather, scatter
from tests.waveform import assert_close, signals, torch_log_probs

SIGNALS = signals()


@pytest.fixture(scope="module")
def engine(bundle_folder: Path) -> Engine:
    return Engine(Bundle.open(bundle_folder))


@pytest.fixture(scope="module")
def streams(engine: Engine) -> list[dict[int, np.ndarray]]:
    return run_streams(engine, list(SIGNALS.values()), np.random.default_rng(5))


@pytest.mark.processor
@pytest.mark.parametrize("signal", SIGNALS)
def test_onnx_runtime_equals_torch(
    streams: list[dict[int, np.ndarray]], recognizer: Recognizer, signal: str
) -> None:
    stream = streams[list(SIGNALS).index(signal)]
    for tau, (expected,) in torch_log_probs(recognizer, [SIGNALS[signal]]).items():
        assert tau is not None
        assert_close(stream[tau], expected, 1e-4, f"{signal}, head {tau}")


@pytest.mark.processor
@pytest.mark.parametrize("signal", SIGNALS)
def test_offline_onnx_runtime_equals_torch(
    twin: Recognizer, twin_folder: Path, signal: str
) -> None:
    pcm = SIGNALS[signal]
    engine = OfflineEngine(Bundle.open(twin_folder))
    log_probs, frames = engine.run(pcm[None], np.array([len(pcm)]))
    (expected,) = torch_log_probs(twin, [pcm])[None]
    assert_close(log_probs[0, : frames[0]], expected, 1e-4, signal)


def random_rows(
    engine: Engine, rows: int, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, State]:
    """A quantum and a lived-in state for each row, at different ages, some fresh."""
    states = []
    for _ in range(rows):
        state = engine.start(1)
        for _ in range(random.integers(0, 4)):
            size = random.integers(1, engine.quantum_samples + 1)
            pcm = random.uniform(-1, 1, (1, engine.quantum_samples)).astype(np.float32)
            _, state = engine.step(pcm, np.array([size]), state)
        states.append(state)
    loudness = random.choice([0.0, 1e-3, 0.1, 1.0], (rows, 1))
    pcm = loudness * random.uniform(-1, 1, (rows, engine.quantum_samples))
    lengths = random.choice([0, 1, 119, 120, 319, 320], rows)
    return pcm.astype(np.float32), lengths, gather(states)


@pytest.mark.processor
def test_rows_are_bit_equal_in_batches_of_1_to_64(engine: Engine) -> None:
    random = np.random.default_rng(11)
    pcm, lengths, state = random_rows(engine, 64, random)
    assert_rows_are_strangers(engine, pcm, lengths, state, range(1, 65), random)


@pytest.mark.processor
def test_a_reset_row_is_a_fresh_row(engine: Engine) -> None:
    random = np.random.default_rng(12)
    pcm, lengths, state = random_rows(engine, 8, random)
    parts = scatter(state)
    parts[3] = engine.start(1)
    outputs, after = engine.step(pcm, lengths, gather(parts))
    fresh, fresh_state = engine.step(pcm[3:4], lengths[3:4], engine.start(1))
    for tau in engine.heads:
        np.testing.assert_array_equal(row(outputs, 3)[tau], row(fresh, 0)[tau])
    for name, values in scatter(after)[3].items():
        np.testing.assert_array_equal(values, fresh_state[name])


def test_a_row_without_samples_stays_as_it_is(engine: Engine) -> None:
    pcm, lengths, state = random_rows(engine, 8, np.random.default_rng(13))
    outputs, after = engine.step(pcm, np.zeros_like(lengths), state)
    assert all(not frames.any() for _, frames in outputs.values())
    for name, values in after.items():
        np.testing.assert_array_equal(values, state[name])


def test_a_step_leaves_its_state_alone(engine: Engine) -> None:
    pcm, lengths, state = random_rows(engine, 4, np.random.default_rng(14))
    before = {name: values.copy() for name, values in state.items()}
    _, after = engine.step(pcm, lengths, state)
    for name, values in state.items():
        np.testing.assert_array_equal(values, before[name])
        assert not np.shares_memory(values, after[name])


def test_each_engine_refuses_the_other_kind(bundle_folder: Path, twin_folder: Path) -> None:
    with pytest.raises(NotStreamable, match="backward direction"):
        Engine(Bundle.open(twin_folder))
    with pytest.raises(NearfutureError, match="streaming"):
        OfflineEngine(Bundle.open(bundle_folder))


def test_a_graph_that_contradicts_the_manifest_is_refused(bundle_folder: Path) -> None:
    bundle = Bundle.open(bundle_folder)
    manifest = replace(bundle.manifest, heads={0: bundle.manifest.heads[0]})
    with pytest.raises(NearfutureError, match="heads"):
        Engine(replace(bundle, manifest=manifest))


def test_a_damaged_graph_is_reported_in_one_line(bundle_folder: Path, tmp_path: Path) -> None:
    bundle = Bundle.open(bundle_folder)
    (tmp_path / "step.onnx").write_bytes(b"not a graph")
    with pytest.raises(NearfutureError, match=r"step\.onnx of tiny cannot be run") as error:
        Engine(replace(bundle, folder=tmp_path))
    assert "\n" not in str(error.value)
