"""The time left: right where nothing changes, and no jumps where something does."""

import itertools

from nearfuture.cli.remaining_time import RemainingTime

STEPS = 1000


def shown(durations: list[float]) -> list[float]:
    """What is said after each step of so many seconds."""
    now = 0.0
    left = RemainingTime(clock=lambda: now)
    answers = [left.after(0, STEPS)]
    for step, seconds in enumerate(durations, 1):
        now += seconds
        answers.append(left.after(step, STEPS))
    assert answers[0] is None
    return [answer for answer in answers if answer is not None]


def test_steady_steps_are_counted_down() -> None:
    assert shown([2.0] * STEPS) == [2.0 * (STEPS - step) for step in range(1, STEPS + 1)]


def test_a_burst_of_slow_steps_does_not_double_it() -> None:
    burst = [1.0] * 200 + [8.0] * 10 + [1.0] * 200
    answers = shown(burst)[100:]
    jumps = [later / earlier for earlier, later in itertools.pairwise(answers)]
    assert max(jumps) < 1.08  # after eight steps' time, on top of a hundred
    assert max(answers) < 2 * min(answers)


def test_a_machine_that_becomes_slower_is_noticed_in_time() -> None:
    answers = shown([1.0] * 200 + [3.0] * 210)
    truth = 3.0 * (STEPS - 410)
    assert abs(answers[-1] - truth) < 0.05 * truth


def test_a_long_training_remembers_no_more_than_a_short_one() -> None:
    left = RemainingTime(clock=iter(range(10_001)).__next__)
    answers = [left.after(step, 20_000) for step in range(10_001)]
    assert answers[-1] == 10_000
    assert len(left._stamps) <= 512
