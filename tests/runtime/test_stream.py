"""A stream: any cut gives the same bits, nothing is lost at its end, nothing grows."""

import gc
import tracemalloc

import numpy as np
import pytest

from nearfuture.audio import LiveResampler
from nearfuture.error import NearfutureError
from nearfuture.model import Recognizer
from nearfuture.runtime import Event, Model
from tests.chain import cuts
from tests.waveform import (
    Heard,
    assert_close,
    assert_same_bits,
    assert_stream_equals_torch,
    hear,
    signals,
    torch_log_probs,
)

SPEECH = signals()["speech"]


@pytest.fixture(scope="module")
def whole(model: Model) -> Heard:
    return hear(model, SPEECH)


def test_the_tests_hear_something(whole: Heard) -> None:
    assert len(whole.final.words) > 3
    assert len({event.committed for event in whole.events}) > 10
    assert any(event.provisional for event in whole.events)


@pytest.mark.parametrize("seed", range(6))
def test_any_partition_gives_the_same_bits(model: Model, whole: Heard, seed: int) -> None:
    assert_same_bits(hear(model, SPEECH, cuts(len(SPEECH), np.random.default_rng(seed))), whole)


def test_single_samples_give_the_same_bits(model: Model) -> None:
    short = SPEECH[:1100]
    assert_same_bits(hear(model, short, [1] * len(short)), hear(model, short))


@pytest.mark.parametrize("rate", [16_000, 44_100, 6_000])
def test_any_partition_gives_the_same_bits_at_other_rates(model: Model, rate: int) -> None:
    samples = SPEECH[:9000]
    sizes = cuts(len(samples), np.random.default_rng(rate))
    heard = hear(model, samples, sizes, rate=rate)
    assert_same_bits(heard, hear(model, samples, rate=rate))


def test_one_event_a_quantum(whole: Heard) -> None:
    times = [event.audio_ms for event in whole.events]
    assert times == [15.0 + 40 * i for i in range(len(times))]
    assert len(times) == 1 + (len(SPEECH) - 120) // 320
    assert not any(event.final for event in whole.events)
    assert whole.final.final
    assert whole.final.audio_ms == 2000.0


def test_an_output_appears_with_its_last_sample(model: Model) -> None:
    found: list[int] = []
    stream = model.stream(on_log_probs=lambda log_probs: found.append(len(log_probs[8])))
    needed = 440 + 8 * 320
    stream.accept(SPEECH[: needed - 1])
    assert sum(found) == 0
    stream.accept(SPEECH[needed - 1 : needed])
    assert sum(found) == 1
    assert needed * 1000 / 8000 == model.budgets[8].worst_ms


@pytest.mark.parametrize("rate", [16_000, 48_000, 6_000])
def test_the_budget_counts_the_resampler(model: Model, rate: int) -> None:
    found: list[int] = []
    stream = model.stream(rate, on_log_probs=lambda log_probs: found.append(len(log_probs[19])))
    promised = round(stream.latency.worst_ms * rate / 1000)
    samples = np.zeros(promised, np.float32)
    stream.accept(samples)
    assert sum(found) == 1
    assert stream.latency.items[0].name == "resampler"
    assert stream.latency.items[0].ms == LiveResampler(rate, 8000).right_ms


@pytest.mark.parametrize(
    "lengths",
    [
        [0, 1, 119, 120, 121, 439, 440, 441, 759, 760],
        [9000 + extra for extra in range(0, 320, 13)],
        pytest.param([7000 + extra for extra in range(320)], marks=pytest.mark.slow),
    ],
    ids=["short", "some", "all"],
)
def test_no_final_lacks_a_tail(model: Model, recognizer: Recognizer, lengths: list[int]) -> None:
    expected = torch_log_probs(recognizer, [SPEECH[:n] for n in lengths])
    for b, n in enumerate(lengths):
        heard = hear(model, SPEECH[:n])
        for tau, rows in expected.items():
            assert tau is not None
            assert_close(heard.log_probs[tau], rows[b], 1e-4, f"{n} samples, head {tau}")
        assert heard.final.provisional == ""


def test_a_stream_equals_torch(model: Model, recognizer: Recognizer) -> None:
    assert_stream_equals_torch(model, recognizer, SPEECH)
    with pytest.raises(AssertionError, match="head 0"):  # the comparison can fail
        assert_stream_equals_torch(model, recognizer, SPEECH, atol=0.0)


def test_committed_text_only_grows_and_the_tail_is_ahead_of_it(whole: Heard) -> None:
    before = ""
    for event in [*whole.events, whole.final]:
        assert event.committed.startswith(before)
        assert event.committed == " ".join(word.text for word in event.words)
        shown = event.committed + event.provisional
        assert shown == " ".join(shown.split())
        before = event.committed
    assert whole.final.committed == before


def test_an_event_says_how_many_frames_are_settled(model: Model) -> None:
    parts: list[int] = []
    stream = model.stream(on_log_probs=lambda log_probs: parts.append(len(log_probs[19])))
    for quantum, event in enumerate(stream.accept(SPEECH)):
        assert event.frames == sum(parts[: quantum + 1])
    final = stream.finish()
    assert final.frames == sum(parts) == 1 + (len(SPEECH) - 440) // 320
    assert all(word.end_ms <= 27.5 + 40 * (final.frames - 0.5) for word in final.words)


def test_an_event_says_how_long_it_took_and_equality_does_not_ask(model: Model) -> None:
    stream, again = model.stream(), model.stream()
    events, others = stream.accept(SPEECH), again.accept(SPEECH)
    took = [event.compute_ms for event in events]
    assert took[0] > 0
    assert took == sorted(took)  # complete at once, computed one after another
    assert stream.finish().compute_ms > 0
    assert took != [event.compute_ms for event in others]
    assert events == others


def test_int16_is_float(model: Model) -> None:
    samples = np.round(SPEECH[:4000] * 32768).astype(np.int16)
    assert_same_bits(hear(model, samples), hear(model, samples.astype(np.float32) / 32768))


def test_streams_are_independent(model: Model, whole: Heard) -> None:
    random = np.random.default_rng(1)
    one, other = model.stream(), model.stream()
    for at in range(0, len(SPEECH), 500):
        event: list[Event] = one.accept(SPEECH[at : at + 500])
        other.accept(random.uniform(-1, 1, 777).astype(np.float32))
        assert all(e in whole.events for e in event)
    assert one.finish() == whole.final


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        (np.zeros((2, 3), np.float32), r"not \(2, 3\)"),
        (np.float32(0.5), r"not \(\)"),
        (np.zeros(3, np.int32), "int32"),
        (np.zeros(3, complex), "complex"),
        (np.array(["a"]), "<U1"),
        (np.array([0.0, np.nan], np.float32), "a sample at 1 that is no finite number"),
        (np.array([np.inf, 0.0], np.float32), "a sample at 0 that is no finite number"),
        (np.array([1e300, 0.0]), "full scale is 1"),
        (np.array([12_000.0, 3.0]), "full scale is 1"),
    ],
)
def test_a_bad_chunk_is_refused_and_changes_nothing(
    model: Model, samples: np.ndarray, message: str
) -> None:
    stream = model.stream()
    stream.accept(SPEECH[:5000])
    with pytest.raises(NearfutureError, match=message):
        stream.accept(samples)
    stream.accept(SPEECH[5000:])
    last, whole = stream.finish(), model.transcribe(SPEECH)
    assert (last.committed, last.words) == (whole.text, whole.words)


def test_a_stream_ends_once(model: Model) -> None:
    stream = model.stream()
    stream.finish()
    with pytest.raises(NearfutureError, match="has ended"):
        stream.accept(SPEECH)
    with pytest.raises(NearfutureError, match="has ended"):
        stream.finish()


def test_a_long_stream_does_not_grow(model: Model) -> None:
    stream = model.stream(16_000)
    silence = np.zeros(1600, np.float32)

    def hear_seconds(seconds: int) -> int:
        for _ in range(10 * seconds):
            stream.accept(silence)
        gc.collect()  # which empties Python's own free lists too
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        hear_seconds(10)  # until what is kept for later is there
        before = hear_seconds(5)
        after = hear_seconds(30)
    finally:
        tracemalloc.stop()
    assert after - before < 32 * 30 * 25  # bytes: not even an empty list a quantum
