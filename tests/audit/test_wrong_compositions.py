"""A leak at a random place of a random stack is found, named and measured; no other is seen."""

from dataclasses import replace

import pytest

from nearfuture.audit import Culprit
from tests.audit.leaks import LEAKS
from tests.audit.wrong_compositions import KINDS, leak_of, wrong_composition

QUICK, MANY = range(20), range(200)


@pytest.mark.parametrize("seed", QUICK)
def test_a_planted_leak_is_found_where_it_is(seed: int) -> None:
    wrong = wrong_composition(seed)
    assert wrong.faults(wrong.report()) == {}


@pytest.mark.parametrize("seed", QUICK[:: len(KINDS) + 1])
def test_the_same_stack_without_the_leak_holds(seed: int) -> None:
    wrong = wrong_composition(seed)
    assert wrong.false_alarms(wrong.report(wrong=False)) == {}


@pytest.mark.slow
def test_of_200_leaks_98_in_100_are_named_and_every_lookahead_is_exact() -> None:
    faults, alarms = {}, {}
    for seed in MANY:
        wrong = wrong_composition(seed)
        faults[seed] = wrong.faults(wrong.report())
        alarms[seed] = wrong.false_alarms(wrong.report(wrong=False))
    named = [seed for seed in MANY if not {"kind", "culprit"} & faults[seed].keys()]
    assert len(named) >= 0.98 * len(MANY), faults
    assert [seed for seed in MANY if "lookahead" in faults[seed]] == []
    assert {seed: each for seed, each in alarms.items() if each} == {}


def test_a_leak_of_every_kind_is_planted() -> None:
    planted = [leak_of(seed) for seed in MANY]
    assert all(leak in planted for leaks in LEAKS.values() for leak in leaks)


def test_a_wrong_report_is_noticed() -> None:
    """The comparison itself can fail."""
    wrong = wrong_composition(0)
    report = wrong.report()
    culprit = Culprit(where="elsewhere", what="Linear", operation="linear")
    moved = tuple(finding.at([culprit]) for finding in report.findings)
    assert wrong.faults(replace(report, lookahead=17)).keys() == {"lookahead"}
    assert wrong.faults(replace(report, findings=moved)).keys() == {"culprit"}
    assert wrong.faults(replace(report, findings=())).keys() == {"kind"}
