"""All laws over compositions that Hypothesis draws; each failing example is runnable source."""

import pytest
import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from nearfuture import laws
from tests.laws.cases import obey_in_explicit_cases
from tests.laws.compositions import build, compositions, hybrids
from tests.laws.registry import ALL

# The explicit cases of a few; the slow tests take minutes for many, and shrink what fails.
quick = settings(
    derandomize=True,
    max_examples=3,
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate],
)
many = settings(
    derandomize=True,
    max_examples=150,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)


@quick
@given(compositions())
def test_compositions_obey_the_laws(source: str) -> None:
    obey_in_explicit_cases(build(source))


@quick
@given(compositions(streaming=False))
def test_compositions_with_bidirectional_layers_obey_the_laws(source: str) -> None:
    obey_in_explicit_cases(build(source))


@settings(quick, max_examples=2)
@given(hybrids())
def test_hybrids_obey_the_laws(source: str) -> None:
    obey_in_explicit_cases(build(source))


@pytest.mark.slow
@many
@given(compositions() | hybrids(), st.integers(1, 10_000))
def test_many_compositions_obey_the_laws(source: str, seed: int) -> None:
    laws.check(build(source), seed=seed)


@pytest.mark.slow
@many
@given(compositions(streaming=False), st.integers(1, 10_000))
def test_many_offline_compositions_obey_the_laws(source: str, seed: int) -> None:
    laws.check(build(source), seed=seed)


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_every_layer_obeys_the_laws_in_many_cases(name: str) -> None:
    laws.check(ALL[name], seed=1, examples=40)


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_every_layer_obeys_the_laws_in_float32(name: str) -> None:
    laws.check(ALL[name], laws.ALL[:6], seed=1, dtype=torch.float32)
