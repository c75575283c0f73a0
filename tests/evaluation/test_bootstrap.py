"""Intervals: known answers, that they cover, and that pairing is worth it."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from nearfuture.evaluation import bootstrap, bootstrap_interval, paired_bootstrap
from nearfuture.text import ErrorRate
from tests.errors import refuses

WORDS = 10  # of every utterance that is drawn here


def units(errors: Sequence[int] | np.ndarray, reference: int = WORDS) -> list[ErrorRate]:
    return [ErrorRate(substitutions=int(n), reference=reference) for n in errors]


def drawn(rng: np.random.Generator, hard: np.ndarray) -> list[ErrorRate]:
    """Errors of utterances, each with its own probability of an error a word."""
    return units(rng.binomial(WORDS, np.clip(hard, 0, 1)))


def test_two_units_have_three_resamples() -> None:
    found = bootstrap_interval(units([0, 10]))
    assert (found.value, found.low, found.high) == (0.5, 0.0, 1.0)


def test_equal_units_leave_no_doubt() -> None:
    found = bootstrap_interval(units([3] * 20))
    assert (found.value, found.low, found.high) == (0.3, 0.3, 0.3)


def test_the_rate_is_a_ratio_of_sums() -> None:
    found = bootstrap_interval([*units([1]), *units([1], reference=90)])
    assert found.value == 0.02


def test_it_is_the_textbook_interval_for_many_units() -> None:
    """A mean of n coin flips: ± 1.96 · √(p · (1 − p) / n)."""
    found = bootstrap_interval(units(np.arange(400) % 4 == 0, reference=1), resamples=20_000)
    half = 1.96 * np.sqrt(0.25 * 0.75 / 400)
    assert found.value == 0.25
    assert found.low == pytest.approx(0.25 - half, abs=0.003)
    assert found.high == pytest.approx(0.25 + half, abs=0.003)


def test_an_interval_covers_the_truth_19_times_in_20() -> None:
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(400):
        found = bootstrap_interval(drawn(rng, rng.beta(2, 8, 80)), resamples=400)
        covered += found.low <= 0.2 <= found.high
    assert 0.92 <= covered / 400 <= 0.98


def speakers(rng: np.random.Generator) -> tuple[list[ErrorRate], list[str]]:
    """30 speakers who differ, with 20 utterances each that do not."""
    hard = np.repeat(rng.beta(2, 8, 30), 20)
    return drawn(rng, hard), [f"speaker {n // 20}" for n in range(600)]


def test_only_an_interval_by_speaker_covers_what_holds_for_speakers() -> None:
    rng = np.random.default_rng(2)
    alone = together = 0
    for _ in range(200):
        rates, groups = speakers(rng)
        one, other = (
            bootstrap_interval(rates, resamples=300),
            bootstrap_interval(rates, groups, resamples=300),
        )
        alone += one.low <= 0.2 <= one.high
        together += other.low <= 0.2 <= other.high
    assert together / 200 >= 0.90
    assert alone / 200 <= 0.60


def test_groups_of_one_are_no_groups() -> None:
    rates = units(np.random.default_rng(3).integers(0, 5, 40))
    assert bootstrap_interval(rates, [str(n) for n in range(40)]) == bootstrap_interval(rates)
    groups = [f"speaker {n % 4}" for n in range(40)]
    summed = [sum(rates[n::4], ErrorRate()) for n in range(4)]
    assert bootstrap_interval(rates, groups) == bootstrap_interval(summed)


def test_twice_the_errors_are_100_percent_more() -> None:
    rng = np.random.default_rng(4)
    errors = rng.integers(0, 5, 50)
    found = paired_bootstrap(units(2 * errors), units(errors))
    assert (found.value, found.low, found.high) == (100.0, 100.0, 100.0)
    found = paired_bootstrap(units(errors), units(2 * errors))
    assert (found.value, found.low, found.high) == (-50.0, -50.0, -50.0)


def test_a_model_is_as_good_as_itself() -> None:
    rates = units(np.random.default_rng(5).integers(0, 5, 30))
    found = paired_bootstrap(rates, rates)
    assert (found.value, found.low, found.high) == (0.0, 0.0, 0.0)


def test_the_relative_difference_is_covered_19_times_in_20() -> None:
    rng = np.random.default_rng(6)
    covered = 0
    for _ in range(400):
        hard = rng.beta(2, 8, 120)
        found = paired_bootstrap(drawn(rng, 1.1 * hard), drawn(rng, hard), resamples=400)
        covered += found.low <= 10.0 <= found.high
    assert 0.92 <= covered / 400 <= 0.98


def test_pairs_are_narrower_than_strangers() -> None:
    """What makes an utterance hard for both cancels only where both are drawn together."""
    rng = np.random.default_rng(7)
    hard = rng.beta(0.3, 0.7, 300)
    a, b = drawn(rng, hard), drawn(rng, hard)
    pairs = paired_bootstrap(a, b)
    strangers = paired_bootstrap([a[n] for n in rng.permutation(300)], b)
    assert pairs.value == strangers.value
    assert pairs.high - pairs.low < 0.5 * (strangers.high - strangers.low)


def test_a_paired_difference_by_speaker_draws_speakers() -> None:
    """A is worse for one speaker alone: all that is known about other speakers is little."""
    groups = [f"speaker {n // 50}" for n in range(200)]
    a, b = units([2] * 50 + [1] * 150), units([1] * 200)
    by_speaker, by_utterance = paired_bootstrap(a, b, groups), paired_bootstrap(a, b)
    assert by_speaker.value == by_utterance.value == 25.0
    assert (by_speaker.low, by_speaker.high) == (0.0, 75.0)
    assert by_utterance.low > 15
    assert by_utterance.high < 35


def test_resamples_without_an_error_of_the_second_are_not_hidden() -> None:
    found = paired_bootstrap(units([1, 1, 1, 1]), units([0, 0, 0, 1]))
    assert (found.value, found.high) == (300.0, np.inf)
    assert found.low == pytest.approx(100 / 3)  # three of four draws are the last
    both = paired_bootstrap(units([0, 0, 0, 1]), units([0, 0, 0, 1]))
    assert (both.low, both.high) == (0.0, 0.0)


def test_a_seed_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    rates = units(np.random.default_rng(8).integers(0, 5, 37))
    other = units(np.random.default_rng(9).integers(0, 5, 37))
    once = bootstrap_interval(rates), paired_bootstrap(rates, other)
    assert once == (bootstrap_interval(rates), paired_bootstrap(rates, other))
    assert once[0] != bootstrap_interval(rates, seed=1)
    monkeypatch.setattr(bootstrap, "_BLOCK", 100)  # two rows at once: the same numbers
    assert once == (bootstrap_interval(rates), paired_bootstrap(rates, other))


def test_empty_references_do_no_harm() -> None:
    rates = [*units([1, 2, 3]), ErrorRate(insertions=2)]
    found = bootstrap_interval(rates)
    assert found.value == 8 / 30
    assert np.isfinite(found.high)


@pytest.mark.parametrize(
    ("call", "code", "parameter", "values"),
    [
        (lambda: bootstrap_interval([]), "invalid", None, ("2 utterances", 0)),
        (lambda: bootstrap_interval(units([1])), "invalid", None, ("2 utterances", 1)),
        (lambda: bootstrap_interval(units([1, 2]), ["a"] * 2), "invalid", None, ("2 groups", 1)),
        (lambda: bootstrap_interval(units([1, 2]), ["a"]), "invalid", "groups", (1, 2)),
        (
            lambda: bootstrap_interval([ErrorRate(), ErrorRate(insertions=1)]),
            "invalid",
            None,
            ("every reference is empty",),
        ),
        (
            lambda: bootstrap_interval(units([1, 2]), resamples=0),
            "out_of_range",
            "resamples",
            (0, 1),
        ),
        (lambda: paired_bootstrap(units([1, 2]), units([0, 0])), "invalid", None, ("no error",)),
        (lambda: paired_bootstrap(units([1, 2]), units([1])), "invalid", None, (2, 1)),
        (
            lambda: paired_bootstrap(units([1, 2]), units([1, 2], 9)),
            "invalid",
            None,
            ("the same utterances",),
        ),
    ],
)
def test_undefined_intervals_are_refused(
    call: Callable[[], object], code: str, parameter: str | None, values: tuple[object, ...]
) -> None:
    with refuses(code, parameter, *values):
        call()
