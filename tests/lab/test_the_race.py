"""The race is real: what the models write, when, and how long a word is waited for."""

import numpy as np
import pytest

from nearfuture import load
from nearfuture.lab import race
from nearfuture.lab.pages import the_race


@pytest.fixture(scope="module")
def lanes() -> dict[str, dict[str, object]]:
    sound, *lanes = the_race.run(1, "8")
    return {"sound": sound, **{str(each["lane"]): each for each in lanes}}


def test_the_lanes_write_what_the_models_transcribe(lanes: dict[str, dict[str, object]]) -> None:
    clip = race.clip(1)
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
