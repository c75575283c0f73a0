"""A grammar searched in recordings: the same for any cut of the audio, with its meaning."""

import itertools

import numpy as np
import pytest

from nearfuture.audio import read
from nearfuture.decoding import Automaton, Endpoint, GrammarResult
from nearfuture.phrases import Phrases, SpokenCommand
from nearfuture.runtime import Model, grammar_search, load, search_blocks
from nearfuture.runtime.bundle import MODELS
from tests.errors import refuses

SAMPLES = MODELS.parent / "samples"
SENTENCE = "[call] {d:a} {d:b} {d:c} [{d:e}]"
DIGITS = {
    "language": "en",
    "intents": {
        "Dial": {
            "data": [{"sentences": ["[call] {d:a} {d:b} {d:c} [{d:e}]"], "slots": {"to": "me"}}]
        }
    },
    "lists": {"d": {"range": {"from": 0, "to": 9}}},
}


@pytest.fixture(scope="module")
def model() -> Model:
    return load("digits", budget_ms=400)


@pytest.fixture(scope="module")
def phrases() -> Phrases:
    return Phrases.of_dict(DIGITS)


def test_any_cut_of_the_audio_gives_the_same_results(model: Model, phrases: Phrases) -> None:
    silence = np.zeros(8000, np.float32)
    spoken = [read(SAMPLES / f"flite-{name}.flac").samples for name in ("rms-3602", "rms-991")]
    samples = np.concatenate([spoken[0], silence, spoken[1], silence, spoken[0][:9000]])
    search = grammar_search(model, phrases.automaton, endpoint=Endpoint(silence_ms=600))
    whole = list(search_blocks(model, [samples], search))
    assert [result.text for result in whole[:2]] == ["three six zero two", "nine nine one"]
    assert whole == list(search_blocks(model, np.array_split(samples, 7), search))

    # Live: one chunk at a time, by a hook.
    cuts = np.sort(np.random.default_rng(0).integers(0, len(samples), 20))
    state, live = search.start(), list[GrammarResult]()

    def decode(heads: dict[int, np.ndarray]) -> None:
        nonlocal state
        results, state = search.step(heads[8], state)
        live.extend(results)

    stream = model.stream(on_log_probs=decode)
    assert stream.budget.frames == 8
    for begin, end in itertools.pairwise([0, *cuts.tolist(), len(samples)]):
        stream.accept(samples[begin:end])
    stream.finish()
    assert live + search.finish(state) == whole


def test_a_bidirectional_model_can_be_searched(phrases: Phrases) -> None:
    model = load("digits-bidirectional")
    search = grammar_search(model, phrases.automaton)
    samples = read(SAMPLES / "flite-rms-3602.flac").samples
    (result,) = search_blocks(model, [samples], search)
    assert (result.text, result.understood) == ("three six zero two", True)


def test_a_command_has_its_intent_and_its_slots_in_time(model: Model, phrases: Phrases) -> None:
    search = grammar_search(model, phrases.automaton)
    samples = read(SAMPLES / "flite-rms-3602.flac").samples
    (result,) = search_blocks(model, [samples], search)
    command = SpokenCommand.of(result, phrases)
    assert (command.intent, command.values) == (
        "Dial",
        {"to": "me", "a": 3, "b": 6, "c": 0, "e": 2},
    )
    for slot, word in zip(command.slots.values(), result.words, strict=True):
        assert (slot.text, slot.start_ms, slot.end_ms) == (word.text, word.start_ms, word.end_ms)
    described = command.json()
    assert described["slots"]["to"] == {"value": "me"}
    assert described["slots"]["a"]["start_ms"] == round(result.words[0].start_ms, 1)


def test_noise_gives_nothing_and_a_lower_threshold_more(model: Model, phrases: Phrases) -> None:
    noise = np.random.default_rng(0).normal(0, 0.05, 24000).astype(np.float32)
    strict = grammar_search(model, phrases.automaton, threshold=1.0)
    lenient = grammar_search(model, phrases.automaton, threshold=0.0)
    results = list(search_blocks(model, [noise], strict))
    assert not any(result.understood for result in results)
    assert not any(SpokenCommand.of(result, phrases).intent for result in results)
    samples = read(SAMPLES / "flite-rms-3602.flac").samples
    assert [result.understood for result in search_blocks(model, [samples], lenient)] == [True]


def test_what_the_model_cannot_write_is_refused(model: Model) -> None:
    with refuses("unsupported", "grammar", "'k'"):
        grammar_search(model, Automaton.of(["kitchen"]))
