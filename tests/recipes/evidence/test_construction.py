"""Late, scattered and early evidence, added up by the real lookahead layer."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import nn

from nearfuture.layers import Lookahead
from recipes.evidence.construction import LOOKAHEADS, SCHEDULES, adding, decide, decisions

LATE, SCATTERED, EARLY = SCHEDULES
RIGHT = {
    "late": [False, False, False, True, True, True, True],
    "scattered": [True, False, True, True, True, True, True],
    "early": [True] * 7,
}


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda each: each.name)
def test_a_decision_is_right_from_where_its_evidence_is_seen(schedule) -> None:
    assert [each.right for each in decisions(schedule)] == RIGHT[schedule.name]


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda each: each.name)
def test_a_probability_is_that_of_the_sum_of_what_is_seen(schedule) -> None:
    for each in decisions(schedule):
        seen = schedule.evidence[: each.lookahead_frames + 1]
        assert each.t == pytest.approx(sigmoid(sum(t - d for t, d in seen)), abs=1e-6)


def test_late_evidence_turns_the_answer_at_120_ms() -> None:
    t = [each.t for each in decisions(LATE)]
    assert t[:4] == pytest.approx([0.8808, 0.9526, 0.9526, 0.0025], abs=1e-4)
    assert decisions(LATE)[3].waited_ms == 120


def test_an_answer_waits_for_its_lookahead_and_no_longer() -> None:
    assert [each.waited_ms for each in decisions(EARLY)] == [40 * tau for tau in LOOKAHEADS]


def looking_too_far(tau: int) -> Lookahead:
    return adding(tau + 1)


def deaf_to_the_last(tau: int) -> Lookahead:
    layer = adding(tau)
    nn.init.zeros_(layer.weights[0].data[:, -1:])
    return layer


def deaf_to_the_first(tau: int) -> Lookahead:
    layer = adding(tau)
    nn.init.zeros_(layer.weights[0].data[:, :1])
    return layer


@pytest.mark.parametrize("fault", [looking_too_far, deaf_to_the_last, deaf_to_the_first])
def test_a_faulty_layer_decides_otherwise(fault: Callable[[int], Lookahead]) -> None:
    wrong = [decide(fault(tau), LATE.evidence)[0] < 0.5 for tau in LOOKAHEADS]
    scattered = [decide(fault(tau), SCATTERED.evidence)[0] < 0.5 for tau in LOOKAHEADS]
    assert (wrong, scattered) != (RIGHT["late"], RIGHT["scattered"])


def test_a_layer_that_looks_too_far_waits_too_long() -> None:
    assert decide(looking_too_far(2), LATE.evidence)[1] == 3


def test_evidence_shorter_than_the_lookahead_is_decided_at_its_end() -> None:
    t, waited = decide(adding(6), LATE.evidence[:4])
    assert (round(t, 4), waited) == (0.0025, 4)
    assert torch.is_grad_enabled()
