"""The race is real: what the models write, when, and how long a word is waited for."""

from itertools import pairwise

import numpy as np
import pytest

from nearfuture import load
from nearfuture.audio import resample
from nearfuture.lab import race, recordings
from nearfuture.lab.pages import the_race
from nearfuture.lab.recording import as_wav


@pytest.fixture(scope="module")
def lanes() -> dict[str, dict[str, object]]:
    sound, *lanes = the_race.run(5, "8")
    return {"sound": sound, **{str(each["lane"]): each for each in lanes}}


def test_the_lanes_write_what_the_models_transcribe(lanes: dict[str, dict[str, object]]) -> None:
    clip, _ = race.stretch(5)
    for lane, budget_ms in (("unidirectional", 55), ("row-convolution", 375)):
        model = load("digits", budget_ms=budget_ms)
        assert lanes[lane]["text"] == model.transcribe(clip.samples, endpoint=None).text
    twin = load("digits-bidirectional").transcribe(clip.samples, endpoint=None)
    assert lanes["twin"]["text"] == twin.text


def test_a_letter_is_never_written_before_its_sound(lanes: dict[str, dict[str, object]]) -> None:
    for lane in ("unidirectional", "row-convolution", "twin"):
        written: list[float] = lanes[lane]["written_ms"]  # type: ignore[assignment]
        assert written == sorted(written)
        assert len(written) == len(str(lanes[lane]["text"]))
        assert lanes[lane]["mean_wait_ms"] > 0  # type: ignore[operator]
    twin: list[float] = lanes["twin"]["written_ms"]  # type: ignore[assignment]
    assert min(twin) > lanes["sound"]["ms"]  # type: ignore[operator]


def test_waits_are_counted_for_right_words_alone() -> None:
    words = [race.Spoken("one", 0, 100), race.Spoken("two", 200, 300), race.Spoken("six", 400, 500)]
    waits, wrong = race._judge(words, "one too six", list(np.arange(11) * 100.0))
    assert waits == [100.0, None, 500.0]
    assert wrong == [False, True, False]
    waits, wrong = race._judge(words, "oh one two six", list(np.arange(14) * 100.0))
    assert waits == [400.0, 600.0, 800.0]
    assert wrong == [True, False, False, False]


def test_one_wait_is_constant_and_the_other_grows() -> None:
    found = the_race.waits("19")
    assert set(found["row-convolution"]) == {815.0}
    assert found["twin"] == [1000 * s for s in found["seconds"]]


def test_recordings_are_cut_between_words() -> None:
    """Whatever the length: the twin hears the words that are said to be in it, and no others."""
    for seconds in (1, 3, 9, 30):
        clip, words = race.stretch(seconds)
        assert clip.ms <= 1000 * seconds or len(words) == 1
        assert clip.text.split() == [word.text for word in words]
        assert all(one.end_ms <= two.start_ms for one, two in pairwise(words))
        assert words[-1].end_ms <= clip.ms
        heard = race.model(None).transcribe(clip.samples, clip.rate, endpoint=None)
        assert heard.text == clip.text


def test_a_recording_of_ones_own_is_not_judged() -> None:
    own = (recordings.PEOPLE / "nicolas-66327.flac").read_bytes()
    sound, *found = the_race.run(body=own)
    assert sound["own"]
    assert [word["text"] for word in sound["words"]] == ["six", "six", "three", "two", "seven"]
    for lane in found:
        assert lane["errors"] is None
        assert not any(lane["wrong"])
        assert lane["mean_wait_ms"] > 0
    silence = as_wav(np.zeros(8000, np.float32), 8000).content
    _, *lanes = the_race.run(body=silence)
    assert [lane["text"] for lane in lanes] == ["", "", ""]


def test_sound_of_a_microphone_keeps_the_lookahead() -> None:
    """Its rate costs 5 ms, which must not choose the next smaller head."""
    clip = race.one_clip(1)
    body = as_wav(resample(clip.samples, clip.rate, 48_000), 48_000).content
    _, past, ahead, _ = the_race.run(body=body)
    assert (past["tau"], past["promise_ms"]) == (0, 60.0)
    assert (ahead["tau"], ahead["promise_ms"]) == (8, 380.0)
