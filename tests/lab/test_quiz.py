"""What the quiz calls right is what is measured."""

from typing import Any

import numpy as np
import pytest

from nearfuture.lab.pages.quiz import FRAMES, RIGHT, figure, questions
from nearfuture.lab.texts import texts


def bars(question: Any) -> dict[str, float]:
    return {bar["name"]: bar["value"] for bar in figure(question)["bars"]}


def curves(question: Any) -> dict[str, Any]:
    return {curve["name"]: np.array(curve["values"]) for curve in figure(question)["curves"]}


def matrices(question: Any) -> list[Any]:
    return [each["measured"] for each in figure(question)["matrices"]]


def test_there_are_ten_questions_with_three_answers_each() -> None:
    assert len(questions()) == 10
    said = texts("en")["pages"]["quiz"]["figure"]
    for question in RIGHT:
        assert {f"{question}-{option}" for option in "abc"} <= set(said)
        assert f"{question}-why" in said


def test_layers_on_top_of_each_other_see_the_past_and_two_directions_everything() -> None:
    stacked, both = matrices("stacked")
    assert (stacked == np.tril(np.ones((FRAMES, FRAMES), bool))).all()
    assert both.all()


def test_the_first_output_of_two_directions_waits_for_the_end() -> None:
    assert bars("first") == {"unidirectional": 40, "row": 160, "twin1": 1000, "twin5": 5000}


def test_the_first_output_is_final_only_at_the_last_input() -> None:
    gap = curves("predicts")["gap"]
    assert (gap[:-1] > 0).all()
    assert gap[-1] == 0


def test_traces_fade_in_every_direction() -> None:
    for name, trace in curves("vanishing").items():
        assert trace[-1] < 0.05 * trace[0], name


def test_numbers_are_those_of_the_facts() -> None:
    assert bars("promise")["sum"] == 375
    assert bars("cost") == {"one": 1, "sumshared": 1.5, "sum2": 2, "concat": 3}


def test_lookaheads_add_up() -> None:
    one, two = matrices("add-up")
    assert one[0].sum() == 1 + 3
    assert two[0].sum() == 1 + 6


def test_a_state_of_four_values_depends_on_twelve_inputs() -> None:
    found = figure("width")
    assert (found["width"], found["depends"]) == (4, 12)


def test_one_direction_does_not_see_the_answer_and_two_do() -> None:
    one, both = matrices("leak")
    answers = [(t, t + 1) for t in range(FRAMES - 1)]
    assert not any(one[answer] for answer in answers)
    assert all(both[answer] for answer in answers)


def test_padding_moves_the_last_frames_most() -> None:
    drift = curves("padding")["drift"]
    assert (np.diff(drift) > 0).all()
    assert drift[-1] > 0.01


@pytest.mark.parametrize("question", RIGHT)
def test_every_figure_says_the_right_answer(question: Any) -> None:
    assert figure(question)["right"] == RIGHT[question]
