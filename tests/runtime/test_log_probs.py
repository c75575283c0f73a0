"""The log-probabilities of a whole recording, in one go and in windows."""

import numpy as np
import pytest

from nearfuture.audio import read, resample
from nearfuture.decoding import greedy_text
from nearfuture.runtime import Model, load, offline
from nearfuture.runtime.bundle import MODELS

SAMPLES = sorted((MODELS.parent / "samples").glob("*.flac"))


@pytest.fixture(scope="module")
def digits() -> Model:
    return load("digits-bidirectional")


@pytest.mark.parametrize("name", ["digits", "digits-bidirectional"])
@pytest.mark.parametrize("rate", [8000, 16000])
def test_they_read_as_the_transcript(name: str, rate: int) -> None:
    model = load(name)
    samples = resample(read(SAMPLES[0]).samples, 8000, rate)
    log_probs = model.log_probs(samples, rate)
    text = greedy_text(log_probs, model.manifest.vocabulary, frame_ms=40.0)
    event = model.transcribe(samples, rate)
    assert text == event.text != ""
    np.testing.assert_allclose(np.exp(log_probs).sum(axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("samples", [0, 1, 439])
def test_less_than_a_window_is_no_frame(samples: int, digits: Model) -> None:
    assert digits.log_probs(np.zeros(samples, np.float32)).shape == (0, 17)


# Small windows are many, each with its context: one odd end for each of them, all for the large.
@pytest.mark.parametrize(
    ("window_s", "odd"), [(2.0, 439), (4.0, 1), (6.4, 0), (6.4, 1), (6.4, 439), (6.4, 440)]
)
def test_windows_give_the_frames_of_the_whole(
    window_s: float, odd: int, digits: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples = np.concatenate([read(path).samples for path in SAMPLES])
    samples = samples[: 320 * (len(samples) // 320 - 2) + odd]
    whole = digits.log_probs(samples)
    monkeypatch.setattr(offline, "_WINDOW_S", window_s)
    monkeypatch.setattr(offline, "_CONTEXT_S", 20.0)
    np.testing.assert_allclose(np.exp(digits.log_probs(samples)), np.exp(whole), atol=1e-5)


def test_windows_need_their_context(digits: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    samples = np.concatenate([read(path).samples for path in SAMPLES])
    whole = digits.log_probs(samples)
    monkeypatch.setattr(offline, "_WINDOW_S", 2.0)
    monkeypatch.setattr(offline, "_CONTEXT_S", 0.2)
    assert abs(np.exp(digits.log_probs(samples)[: len(whole) - 9]) - np.exp(whole[:-9])).max() > 0.1
