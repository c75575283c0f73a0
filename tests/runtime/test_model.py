"""`load`: the budget decides the head, and what has no budget says so."""

from pathlib import Path

import numpy as np
import pytest

from nearfuture.audio import resample
from nearfuture.decoding import greedy_text
from nearfuture.error import NearfutureError, NotStreamable
from nearfuture.model import Recognizer
from nearfuture.runtime import Bundle, Model, load
from tests.waveform import hear, signals, torch_log_probs

SPEECH = signals()["speech"]


@pytest.mark.parametrize(
    ("budget_ms", "frames"),
    [(55, 0), (214.9, 0), (215, 4), (374, 4), (375, 8), (400, 8), (815, 19), (None, 19)],
)
def test_the_largest_head_that_fits(
    bundle_folder: Path, budget_ms: float | None, frames: int
) -> None:
    model = load(bundle_folder, budget_ms)
    assert (model.budget.frames, model.budget.worst_ms) == (frames, 55.0 + 40 * frames)
    assert model.rate == 8000
    heard = hear(model, SPEECH)
    log_probs = heard.log_probs[frames]
    text = greedy_text(log_probs, model.manifest.vocabulary, frame_ms=40.0)
    assert heard.final.committed == text


def test_the_smallest_budget_is_named(bundle_folder: Path) -> None:
    with pytest.raises(NearfutureError, match=r"budget of 40 ms .* 55 ms or more"):
        load(bundle_folder, budget_ms=40)


def test_the_resampler_is_part_of_the_budget(bundle_folder: Path) -> None:
    model = load(bundle_folder, budget_ms=377)
    assert model.stream().budget.frames == 8
    assert model.stream(16_000).budget.frames == 4
    assert model.stream(16_000).budget.worst_ms == 220.0
    latency = model.latency(16_000)
    assert latency is not None
    assert {item.name: item.ms for item in latency.items} == {
        "resampler": 5.0,
        "window": 25.0,
        "stack": 30.0,
        "lookahead": 160.0,
    }
    tight = load(bundle_folder, budget_ms=57)
    with pytest.raises(NearfutureError, match=r"60 ms or more .*16000 Hz is resampled, 5 ms"):
        tight.stream(16_000)


def test_every_budget_is_listed(model: Model) -> None:
    assert {frames: x.worst_ms for frames, x in model.budgets.items()} == {
        0: 55.0,
        4: 215.0,
        8: 375.0,
        19: 815.0,
    }


@pytest.mark.parametrize("rate", [8000, 16_000, 44_100])
def test_a_file_gives_the_text_of_the_live_stream(model: Model, rate: int) -> None:
    samples = resample(SPEECH, 8000, rate)
    heard, live = model.transcribe(samples, rate), hear(model, samples, rate=rate).final
    assert (heard.text, heard.words, heard.audio_ms) == (
        live.committed,
        live.words,
        live.audio_ms,
    )


@pytest.mark.parametrize("rate", [800, 8000.5, "8000"])
def test_an_impossible_rate_is_refused(model: Model, rate: int) -> None:
    with pytest.raises(NearfutureError, match="sample rate"):
        model.stream(rate)


def test_a_bidirectional_model_does_not_stream(offline_model: Model) -> None:
    with pytest.raises(NotStreamable, match=r"whole recording.*transcribe\(\).*streaming model"):
        offline_model.stream()
    assert offline_model.budget.frames is None
    assert offline_model.budget.worst_ms == float("inf")
    assert offline_model.latency() is None
    assert offline_model.budgets == {}


def test_a_bidirectional_model_keeps_no_budget(twin_folder: Path) -> None:
    with pytest.raises(NearfutureError, match="whole utterance"):
        Model(Bundle.open(twin_folder), budget_ms=1000)


@pytest.mark.parametrize("rate", [8000, 16_000])
def test_a_bidirectional_model_transcribes(
    offline_model: Model, twin: Recognizer, rate: int
) -> None:
    samples = resample(SPEECH, 8000, rate)
    event = offline_model.transcribe(samples, rate)
    (log_probs,) = torch_log_probs(twin, [resample(samples, rate, 8000)])[None]
    assert event.text == greedy_text(log_probs, twin.vocabulary, frame_ms=40.0)
    assert len(event.words) > 3
    assert event.audio_ms == 2000.0


@pytest.mark.parametrize("samples", [0, 1, 439, 440])
def test_almost_nothing_is_transcribed(model: Model, offline_model: Model, samples: int) -> None:
    silence = np.zeros(samples, np.float32)
    for one in (model, offline_model):
        event = one.transcribe(silence)
        assert event.audio_ms == samples / 8
        assert event.text == "" or samples == 440
