"""From waveform to text, the bundled model and a tiny one: streaming is offline for any chunks."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file

from nearfuture.data import read_source
from nearfuture.decoding import greedy_text
from nearfuture.model import Recognizer
from nearfuture.runtime import Bundle, Engine, Event, Model, load
from nearfuture.runtime.bundle import MODELS
from nearfuture.runtime.engine import Outputs
from nearfuture.text import ErrorRate, word_errors
from recipes.digits import DigitRecordings
from tests.chain import cuts

RATE = 8000
SAMPLES = MODELS.parent / "samples"

Samples = NDArray[np.float32]


@pytest.fixture(scope="module", params=["digits", "tiny"])
def source(request: pytest.FixtureRequest, bundle_folder: Path) -> Path:
    """The bundled model, and one with random weights."""
    return MODELS / "digits" if request.param == "digits" else bundle_folder


@pytest.fixture(scope="module")
def model(source: Path) -> Model:
    return load(source, budget_ms=400)


@pytest.fixture(scope="module")
def learned(source: Path) -> Recognizer:
    """The same weights in torch."""
    recognizer = Recognizer(load(source).manifest.architecture)
    recognizer.load_state_dict(load_file(source / "weights.safetensors"))
    return recognizer.eval()


@pytest.fixture(scope="module")
def clips() -> list[Samples]:
    return [cut.load(RATE).samples for cut in read_source(SAMPLES / "manifest.tsv").cuts]


def probes() -> dict[str, Samples]:
    seconds = np.arange(2 * RATE) / RATE
    signals = {
        "silence": np.zeros_like(seconds),
        "full scale": np.sign(np.sin(2 * np.pi * 200 * seconds)),
        "tone": np.sin(2 * np.pi * 1000 * seconds),
        "quiet tone": 0.01 * np.sin(2 * np.pi * 440 * seconds),
        "hum": 0.5 * np.sin(2 * np.pi * 50 * seconds),
        "direct current": np.ones_like(seconds),
    }
    return {name: signal.astype(np.float32) for name, signal in signals.items()}


def streamed(
    model: Model, samples: Samples, sizes: Sequence[int]
) -> tuple[Event, list[str], dict[int, Samples]]:
    """The last event, every committed text on the way, and the log-probabilities of every head."""
    heads: dict[int, list[Samples]] = {}

    def keep(log_probs: dict[int, Samples]) -> None:
        for tau, frames in log_probs.items():
            heads.setdefault(tau, []).append(frames)

    stream = model.stream(on_log_probs=keep)
    committed, at = [], 0
    for size in sizes:
        committed += [event.committed for event in stream.accept(samples[at : at + size])]
        at += size
    assert at >= len(samples)
    final = stream.finish()
    return final, committed, {tau: np.concatenate(parts) for tau, parts in heads.items()}


def offline(learned: Recognizer, samples: Samples, tau: int) -> Samples:
    with torch.inference_mode():
        pcm = torch.from_numpy(samples)[None, :, None]
        y, n = learned.at(tau)(pcm, torch.tensor([len(samples)]))
    return y[0, : int(n)].numpy()


def assert_partitions_agree(
    model: Model, learned: Recognizer, samples: Samples, partitions: int, seed: int
) -> None:
    whole, _, expected = streamed(model, samples, [len(samples)])
    for tau, log_probs in expected.items():
        np.testing.assert_allclose(log_probs, offline(learned, samples, tau), atol=1e-4, rtol=0)
    log_probs = offline(learned, samples, 8)
    assert whole.committed == greedy_text(log_probs, learned.vocabulary, frame_ms=40.0)
    rng = np.random.default_rng(seed)
    for _ in range(partitions):
        final, committed, log_probs = streamed(model, samples, cuts(len(samples), rng))
        assert final == whole
        assert all(final.committed.startswith(earlier) for earlier in committed)
        for tau in expected:
            assert np.array_equal(log_probs[tau], expected[tau])


@pytest.mark.processor
def test_any_partition_gives_the_same_text(
    model: Model, learned: Recognizer, clips: list[Samples]
) -> None:
    for seed, samples in enumerate(clips[:4]):
        assert_partitions_agree(model, learned, samples, partitions=3, seed=seed)


@pytest.mark.slow
def test_any_partition_of_real_recordings_gives_the_same_text(
    model: Model, learned: Recognizer, fsdd: DigitRecordings
) -> None:
    strings = fsdd.strings(fsdd.seen, "test", 4, seed=11)
    assert len(strings) == 20
    for seed, one in enumerate(strings):
        assert_partitions_agree(model, learned, one.samples, partitions=5, seed=seed)


def test_cuts_of_one_sample(model: Model, learned: Recognizer, clips: list[Samples]) -> None:
    samples = clips[0][RATE // 2 : RATE]
    whole, _, expected = streamed(model, samples, [len(samples)])
    final, _, log_probs = streamed(model, samples, [1] * len(samples))
    assert final == whole
    for tau in expected:
        assert np.array_equal(log_probs[tau], expected[tau])


def test_streaming_is_offline_in_float64(learned: Recognizer, clips: list[Samples]) -> None:
    exact = Recognizer(learned.config)
    exact.load_state_dict(learned.state_dict())
    exact = exact.double().eval()
    rng = np.random.default_rng(0)
    pcm = torch.from_numpy(clips[1]).double()[None, :, None]
    for tau in learned.config.heads:
        layer = exact.at(tau)
        with torch.inference_mode():
            expected, total = layer(pcm, torch.tensor([pcm.shape[1]]))
            state = layer.start(1)
            parts, at = [], 0
            for size in cuts(pcm.shape[1], rng):
                chunk = pcm[:, at : at + size]
                y, n, state = layer.step(chunk, torch.tensor([chunk.shape[1]]), state)
                parts.append(y[:, : int(n)])
                at += size
            y, n = layer.finish(state)
            parts.append(y[:, : int(n)])
        found = torch.cat(parts, dim=1)
        assert found.shape[1] == int(total)
        assert (found - expected).abs().max() < 1e-10


@pytest.mark.parametrize("name", probes())
def test_torch_and_onnx_runtime_agree(model: Model, learned: Recognizer, name: str) -> None:
    samples = probes()[name]
    _, _, log_probs = streamed(model, samples, [len(samples)])
    for tau, found in log_probs.items():
        np.testing.assert_allclose(found, offline(learned, samples, tau), atol=1e-4, rtol=0)


def test_a_final_never_lacks_its_tail(model: Model, learned: Recognizer) -> None:
    samples = probes()["tone"]
    for length in [*range(320, 640, 13), *range(435, 445), 0, 1, 119, 120, 121]:
        _, _, log_probs = streamed(model, samples[:length], [length])
        for tau, found in log_probs.items():
            expected = offline(learned, samples[:length], tau)
            assert found.shape == expected.shape, length
            np.testing.assert_allclose(found, expected, atol=1e-4, rtol=0)


@pytest.mark.processor
def test_rows_are_independent_bit_for_bit(source: Path, clips: list[Samples]) -> None:
    engine = Engine(Bundle.open(source))
    rng = np.random.default_rng(0)
    quanta = clips[0][: 20 * 320].reshape(20, 320)
    full = np.array([320], np.int64)

    def alone() -> list[Outputs]:
        state, heard = engine.start(1), []
        for quantum in quanta:
            outputs, state = engine.step(quantum[None], full, state)
            heard.append(outputs)
        return heard

    expected = alone()
    for rows in (2, 3, 8, 17, 64):
        state = engine.start(rows)
        at = int(rng.integers(rows))
        for quantum, one in zip(quanta, expected, strict=True):
            pcm = rng.normal(0, 0.3, (rows, 320)).astype(np.float32)
            lengths = rng.integers(0, 321, rows)
            pcm[at], lengths[at] = quantum, 320
            outputs, state = engine.step(pcm, lengths, state)
            for tau in engine.heads:
                assert np.array_equal(outputs[tau][0][at], one[tau][0][0]), (rows, tau)
                assert outputs[tau][1][at] == one[tau][1][0]


@pytest.mark.processor
def test_the_samples_are_understood() -> None:
    """The voices were never heard in training; the words must come through all the same."""
    model = load("digits", budget_ms=400)
    errors = ErrorRate()
    for cut in read_source(SAMPLES / "manifest.tsv").cuts:
        audio = cut.read()
        heard = model.transcribe(audio.samples, audio.rate).text
        errors += word_errors(cut.text, heard)
    assert errors.errors <= 4  # of 35; all in the two clips of flite slt
