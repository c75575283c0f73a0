"""One pass over a recording for all heads = each budget by itself, to the last event."""

from dataclasses import dataclass
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile
from numpy.typing import NDArray

from nearfuture.audio import resample
from nearfuture.data import Cut, Utterance
from nearfuture.evaluation import Result, evaluate_bundles, streaming
from nearfuture.evaluation.streaming import PartialResults
from nearfuture.runtime import Event, Model, load
from tests.evaluation.samples import ITEMS, samples_of

FRAMES = (0, 4, 8, 19)
FRAME_MS, CENTRE_MS = 40.0, 27.5
SOME = {8000: ITEMS, 16_000: ITEMS[2:6], 44_100: ITEMS[:3]}


@dataclass(frozen=True)
class Live:
    """A stream with one budget, as a client sees it."""

    events: list[Event]
    final: Event
    resampler_ms: float


def listen(model: Model, samples: NDArray[np.float32], rate: int) -> Live:
    stream = model.stream(rate)
    chunk = rate * 40 // 1000
    events = []
    for at in range(0, len(samples), chunk):
        events += stream.accept(samples[at : at + chunk])
    items = {item.name: item.ms for item in stream.latency.items}
    return Live(events, stream.finish(), items.get("resampler", 0.0))


def resampled(item: Cut, rate: int) -> NDArray[np.float32]:
    return resample(samples_of(item), 8000, rate)


@pytest.fixture(scope="module", params=SOME)
def rate(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(scope="module")
def results(rate: int, tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, ...]:
    """The samples as files of another rate, evaluated in one pass."""
    folder = tmp_path_factory.mktemp("samples")
    items = []
    for number, item in enumerate(SOME[rate]):
        path = folder / f"{number}.wav"
        soundfile.write(path, resampled(item, rate), rate, subtype="FLOAT")
        items.append(Cut(name=item.name, path=path, text=item.text))
    found = evaluate_bundles("digits", None, items)
    assert found.problems == ()
    return found.results


@pytest.fixture(scope="module")
def lives(rate: int) -> dict[int, list[Live]]:
    """The same recordings, streamed once for every budget."""
    models = {tau: load("digits", budget_ms=60 + 40 * tau) for tau in FRAMES}
    return {
        tau: [listen(model, resampled(item, rate), rate) for item in SOME[rate]]
        for tau, model in models.items()
    }


@pytest.mark.parametrize("tau", FRAMES)
def test_every_head_writes_what_its_own_stream_writes(
    results: tuple[Result, ...], lives: dict[int, list[Live]], tau: int
) -> None:
    for result, live in zip(results, lives[tau], strict=True):
        assert result.heads[tau].text == live.final.committed
        assert result.heads[tau].words == live.final.words
        assert result.resampler_ms == live.resampler_ms


def taken_back(live: Live) -> tuple[int, int]:
    """Revisions of the text on show and characters taken back, counted from a client's screen."""
    screens = [event.committed + event.provisional for event in [*live.events, live.final]]
    times = characters = 0
    for before, after in pairwise(screens):
        kept = 0
        while kept < min(len(before), len(after)) and before[kept] == after[kept]:
            kept += 1
        times += kept < len(before)
        characters += len(before) - kept
    return times, characters


@pytest.mark.parametrize("tau", FRAMES)
def test_revisions_are_what_a_client_sees(
    results: tuple[Result, ...], lives: dict[int, list[Live]], tau: int
) -> None:
    found = []
    for result, live in zip(results, lives[tau], strict=True):
        reading = result.heads[tau]
        assert (reading.revisions, reading.retracted) == taken_back(live)
        found.append(reading.revisions)
    assert (sum(found) > 0) == (tau > 0)  # the head that previews never changes its own mind


@pytest.mark.parametrize("tau", FRAMES)
def test_text_is_committed_when_the_delays_say(lives: dict[int, list[Live]], tau: int) -> None:
    """The audio heard when a word is there = frame of its last character + worst latency."""
    checked = 0
    worst_ms = load("digits").budgets[tau].worst_ms
    for live in lives[tau]:
        for number, word in enumerate(live.final.words):
            there = [
                event.audio_ms
                for event in live.events
                if len(event.words) > number and event.words[number].text == word.text
            ]
            if there:  # while the stream was open
                start_of_frame = word.end_ms - CENTRE_MS - FRAME_MS / 2
                assert there[0] == pytest.approx(start_of_frame + worst_ms, abs=1e-6)
                checked += 1
    assert checked >= 4


def test_an_utterance_in_memory_is_a_recording() -> None:
    kept = Utterance(name="a", samples=samples_of(ITEMS[0]), text=ITEMS[0].text, speaker="slt")
    (from_memory,) = evaluate_bundles("digits", None, [kept]).results
    (from_disk,) = evaluate_bundles("digits", None, [ITEMS[0]]).results
    assert from_memory.heads == from_disk.heads
    assert (from_memory.name, from_memory.speaker) == ("a", "slt")


def test_heads_that_are_not_wanted_are_left_out() -> None:
    some = evaluate_bundles("digits", None, ITEMS[:2], heads=[8, 0])
    every = evaluate_bundles("digits", None, ITEMS[:2])
    for one, whole in zip(some.results, every.results, strict=True):
        assert one.heads == {tau: whole.heads[tau] for tau in (0, 8)}


@pytest.mark.parametrize("samples", [0, 1, 119, 320])
def test_almost_nothing_is_evaluated(samples: int) -> None:
    silence = Utterance(name="silence", samples=np.zeros(samples, np.float32), text="one")
    found = evaluate_bundles("digits", "digits-bidirectional", [silence])
    (result,) = found.results
    assert found.problems == ()
    assert result.aligned == ()
    assert {one.text for one in result.heads.values()} == {""}
    assert result.heads[8].word_errors.deletions == 1


def test_computing_is_measured() -> None:
    found = evaluate_bundles("digits", "digits-bidirectional", ITEMS[:3])
    for one in found.results:
        assert 0 < one.finish_ms < one.compute_ms
        assert one.twin_ms is not None
        assert one.twin_ms > 0
    assert 0 < found.quantum_p50_ms <= found.quantum_p98_ms


def test_decoders_beside_the_stream_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    accept, now_s = PartialResults.accept, 0.0

    def slow(partials: PartialResults, *log_probs: NDArray[np.float32]) -> None:
        nonlocal now_s
        now_s += 0.05
        accept(partials, *log_probs)

    # A clock that only they move: on the machine's own, any machine might be slow meanwhile.
    monkeypatch.setattr(streaming, "time", SimpleNamespace(perf_counter=lambda: now_s))
    monkeypatch.setattr(PartialResults, "accept", slow)
    found = evaluate_bundles("digits", None, ITEMS[:1], heads=[8])
    assert now_s > 1
    assert found.quantum_p50_ms == found.quantum_p98_ms == pytest.approx(0, abs=1e-9)
    assert found.results[0].finish_ms == pytest.approx(0, abs=1e-9)
