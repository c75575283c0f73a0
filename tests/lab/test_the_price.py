"""The price is what the experiments measured, and the words are what the bundled models write."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from nearfuture import load
from nearfuture.error import NearfutureError
from nearfuture.lab import recordings
from nearfuture.lab.endpoint import call
from nearfuture.lab.pages import the_price

TOOL = Path(__file__).parents[2] / "tools" / "make_lab_prices.py"


def imported_tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_lab_prices", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def lines() -> list[dict[str, Any]]:
    return list(the_price.words())


def test_the_curves_are_those_of_the_pages_of_the_experiments() -> None:
    tool = imported_tool()
    assert json.loads(the_price.MEASURED.read_text("utf-8")) == tool.prices()


def test_a_curve_is_that_of_the_facts() -> None:
    known = the_price.curve("known-voices")
    assert [each["value"] for each in known["lines"][0]["points"]] == [5.89, 1.77, 1.02, 1.06]
    assert known["twin"]["value"] == 0.3
    new = the_price.curve("new-voice")
    assert [each["value"] for each in new["lines"][0]["points"]] == [10.81, 4.99, 4.02, 3.81]
    assert new["twin"]["value"] == 5.47
    assert len(the_price.curve("thirteen-heads")["lines"][0]["points"]) == 13


@pytest.mark.parametrize("experiment", ["known-voices", "thirteen-heads", "sentences", "families"])
def test_every_point_lies_in_its_interval(experiment: Any) -> None:
    found = the_price.curve(experiment)
    points = [point for line in found["lines"] for point in line["points"]]
    for point in [*points, found["twin"]]:
        assert 0 <= point["low"] <= point["value"] <= point["high"]
    assert found["trained"]
    assert found["command"].startswith("python benchmarks/experiments/")


def test_a_budget_chooses_the_largest_head_that_keeps_it() -> None:
    for budget_ms, frames in ((55, 0), (214, 0), (215, 4), (400, 8), (1300, 19)):
        found = the_price.choice("known-voices", budget_ms)
        assert found["frames"] == frames
        assert found["kept"]["row-convolution"]["frames"] == frames
        assert found["worst_ms"] <= budget_ms
    assert the_price.choice("thirteen-heads", 300)["kept"]["row-convolution"]["frames"] == 6
    assert the_price.choice("families", 100)["kept"]["chunked-attention"] is None
    with pytest.raises(NearfutureError):
        call(the_price.choice, {"budget_ms": "40"})


def test_the_words_are_what_the_models_transcribe(lines: list[dict[str, Any]]) -> None:
    heads, *spoken = lines
    assert list(heads["heads"].values()) == [55.0, 215.0, 375.0, 815.0]
    assert len(spoken) == 14
    worst = next(each for each in spoken if each["name"] == "jackson-09256")
    audio = recordings.audio(recordings.recordings()[1])
    for frames, latency_ms in heads["heads"].items():
        model = load("digits", budget_ms=latency_ms)
        text = " ".join(word["written"] for word in worst["written"][str(frames)])
        assert text == model.transcribe(audio, endpoint=None).text


def test_a_budget_changes_words(lines: list[dict[str, Any]]) -> None:
    def wrong(model: str) -> list[str]:
        words = [word for each in lines[1:] for word in each["written"][model]]
        return [word["written"] for word in words if word["wrong"]]

    assert "hzero" in wrong("0")
    assert "hzero" not in wrong("4")
    assert len(wrong("0")) > len(wrong("8"))
    assert "shree" in wrong("19")  # more future does not help everywhere


def test_words_that_lack_and_words_too_many_are_wrong() -> None:
    assert [each["wrong"] for each in recordings.judged("one two", "one")] == [False, True]
    assert [each["said"] for each in recordings.judged("one", "oh one")] == ["", "one"]
