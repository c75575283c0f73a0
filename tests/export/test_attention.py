"""Recognisers of chunked attention as bundles: a quantum is a chunk, and all else is as ever.

Their graphs are large, and slow to export: quick tests run them in torch.
"""

import copy
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch

from nearfuture import audit
from nearfuture.export import ModelCard, export_bundle
from nearfuture.export.graphs.recognizer import quantum_samples
from nearfuture.export.graphs.streaming import StepGraph
from nearfuture.export.streams import run_streams
from nearfuture.model import Recognizer
from nearfuture.runtime import Bundle, Engine, OfflineEngine, load
from nearfuture.runtime.precision import FLOAT32
from tests.export.test_streaming import stream
from tests.processor import OFFERED
from tests.runtime.states import assert_rows_are_strangers
from tests.waveform import assert_close, assert_same_bits, hear, signals, torch_log_probs

SPEECH = signals(1.5)["speech"]
precisions = pytest.mark.parametrize("precision", [FLOAT32, *OFFERED])


def test_a_quantum_makes_one_chunk_possible(attention: Recognizer) -> None:
    quantum, first = quantum_samples(attention)
    # Two frames of 320 samples; the first window is of 440.
    assert (quantum, first) == (640, 440)
    graph = StepGraph(attention)
    state, emitted = graph.start(1), []
    for size in (first, *[quantum] * 3):
        zero, n_zero, three, n_three, *state = graph(
            torch.zeros(1, quantum, 1), torch.tensor([size]), *state
        )
        emitted.append([int(n_zero), int(n_three)])
        assert zero.shape == three.shape == (1, 2, 4)  # no slot that no frame can fill
    # Frames 0 and 1 see frame 2, the last of the second quantum.
    assert emitted == [[0, 0], [2, 0], [2, 1], [2, 2]]


def test_the_latency_of_a_head_is_itemised(attention: Recognizer) -> None:
    assert {item.name: item.ms for item in attention.config.latency(3).items} == {
        "window": 25,
        "stack": 30,
        "conformer layers": 40,
        "lookahead": 120,
        "block wait (conformer layers)": 40,
    }


@pytest.mark.parametrize("largest", [640, 5000])
def test_ragged_streams_of_the_graphs_equal_torch(attention: Recognizer, largest: int) -> None:
    exact = copy.deepcopy(attention).double()
    rows = [SPEECH[:n].astype(np.float64) for n in (12_000, 5001, 1079, 440, 439, 0)]
    found = stream(exact, rows, np.random.default_rng(2), largest)
    for head, expected in torch_log_probs(exact, rows).items():
        assert head is not None
        for b, values in enumerate(expected):
            assert_close(found[head][b], values, 1e-10, f"head {head}, row {b}")


@pytest.mark.slow
@pytest.mark.parametrize("head", [0, 3])
def test_the_audit_measures_what_is_declared(attention_folder: Path, head: int) -> None:
    report = audit.model(attention_folder, output=head)
    assert report.latency_ms == Bundle.open(attention_folder).manifest.heads[head].worst_ms
    assert report.holds
    assert not report.lookahead_is_lower_bound


@pytest.mark.slow
def test_ragged_streams_of_a_bundle_equal_torch(
    attention: Recognizer, attention_folder: Path
) -> None:
    rows = [SPEECH[:n] for n in (12_000, 5001, 1079, 440, 439, 0)]
    engine = Engine(Bundle.open(attention_folder))
    assert engine.quantum_samples == 640
    streams = run_streams(engine, rows, np.random.default_rng(2))
    for head, expected in torch_log_probs(attention, rows).items():
        assert head is not None
        for b, values in enumerate(expected):
            assert_close(streams[b][head], values, 1e-4, f"head {head}, row {b}")


@pytest.mark.slow
@precisions
def test_any_cut_gives_the_same_bits(attention_folder: Path, precision: str) -> None:
    model = load(attention_folder, precision=precision)
    sizes = np.diff([0, 1, 2, 700, 701, 5000, 5320, len(SPEECH)]).tolist()
    assert_same_bits(hear(model, SPEECH, sizes), hear(model, SPEECH))


@pytest.mark.slow
@precisions
def test_rows_are_bit_equal_in_any_batch(attention_folder: Path, precision: str) -> None:
    engine = Engine(Bundle.open(attention_folder), precision=precision)
    random = np.random.default_rng(3)
    quantum, state = engine.quantum_samples, engine.start(16)
    for _ in range(8):
        size = random.integers(0, quantum + 1, 16)
        noise = random.uniform(-1, 1, (16, quantum)).astype(np.float32)
        _, state = engine.step(noise, size, state)
    pcm = random.uniform(-1, 1, (16, quantum)).astype(np.float32)
    lengths = random.choice([0, 1, quantum], 16)
    assert_rows_are_strangers(engine, pcm, lengths, state, (2, 3, 7, 16), random)


@pytest.mark.slow
@pytest.mark.parametrize("precision", OFFERED)
def test_low_precision_changes_the_large_products_alone(
    attention_folder: Path, precision: str
) -> None:
    graph = onnx.load(attention_folder / f"step.{precision}.onnx", load_external_data=False).graph
    operators = [node.op_type for node in graph.node]
    assert operators.count({"int8": "MatMulIntegerToFloat", "int4": "MatMulNBits"}[precision]) == 1
    stated = Bundle.open(attention_folder).manifest.precisions[precision]
    assert 0 < stated.mean < {"int8": 0.15, "int4": 1.0}[precision]


def test_every_part_of_its_state_has_a_name(attention: Recognizer) -> None:
    leaves = {leaf.name: leaf.shape for leaf in StepGraph(attention).leaves()}
    block = "encoder.2.1.inner.1"
    assert leaves[f"{block}.waiting"] == (2, 80)
    assert leaves[f"{block}.keys"] == leaves[f"{block}.values"] == (4 + 2, 80)
    assert leaves[f"{block}.waiting_count"] == leaves[f"{block}.count"] == ()
    assert not any(name[-1].isdigit() for name in leaves)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", [5, None])
def test_attention_to_the_whole_recording_runs_from_a_bundle(
    kernel: int | None, attention: Recognizer, tmp_path: Path
) -> None:
    torch.manual_seed(1)
    block = "transformer" if kernel is None else "conformer"
    config = attention.config.replace(hidden=8, kernel=kernel, block=block).twin()
    model = Recognizer(config).eval()
    folder = export_bundle(model, tmp_path / "twin", ModelCard(name="twin"))
    engine = OfflineEngine(Bundle.open(folder))
    for lengths in ((0,), (439,), (440,), (12_000, 5001, 0)):
        rows = [SPEECH[:n] for n in lengths]
        pcm = np.full((len(rows), max(lengths)), np.nan, np.float32)
        for b, samples in enumerate(rows):
            pcm[b, : len(samples)] = samples
        log_probs, frames = engine.run(pcm, np.array(lengths, np.int64))
        for b, expected in enumerate(torch_log_probs(model, rows)[None]):
            assert_close(log_probs[b, : frames[b]], expected, 1e-4, f"row {b} of {lengths}")
