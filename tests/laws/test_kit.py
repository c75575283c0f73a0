"""The kit itself: what it draws, how long its sequences are, and what it needs."""

import math
import random
import subprocess
import sys
from collections import OrderedDict
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from nearfuture import laws
from nearfuture.budget import ReceptiveField
from nearfuture.error import NearfutureError, NotStreamable
from nearfuture.laws.strategies import interrupted, smallest
from nearfuture.laws.stream import lengths_of
from nearfuture.laws.trial import Trial, enough_frames
from nearfuture.laws.violation import difference
from nearfuture.layers import GRU, Bidirectional, Convolution, Serial
from tests.laws import wrong_layers
from tests.laws.cases import ONE_OF_EACH
from tests.laws.registry import OFFLINE, STREAMING


def drawn(strategy: st.SearchStrategy, seed: int, count: int = 60) -> list:
    seen: list = []

    def look(case: object) -> bool:
        seen.append(case)
        return False

    assert smallest(strategy, look, seed=seed, examples=count) is None
    return seen


def test_what_is_drawn_follows_from_the_seed() -> None:
    first = drawn(laws.partitions(), seed=1)
    assert first == drawn(laws.partitions(), seed=1)
    assert first != drawn(laws.partitions(), seed=2)


def test_cuts_of_every_kind_are_drawn() -> None:
    cuts = drawn(laws.partitions(), seed=0, count=200)
    assert {len(cut[0]) for cut in cuts} == {1, 2, 3, 4}
    assert any(len(cut) == 1 and sum(cut[0]) > 3 for cut in cuts)  # all at once
    assert any(not any(chunk) for cut in cuts for chunk in cut)  # an empty chunk
    assert any(set(chunk) == {1} for cut in cuts for chunk in cut)  # a single frame
    assert any(len(set(lengths_of(cut))) == 4 for cut in cuts)  # ragged
    assert any(0 in chunk and max(chunk) > 4 for cut in cuts for chunk in cut)  # paces


def test_no_layer_that_streams_hides_behind_a_refusal() -> None:
    """Where the past has no bound, a refusal exempts from the laws about streams."""
    for make in STREAMING.values():
        make().start(1)
    for make in OFFLINE.values():
        with pytest.raises(NotStreamable):
            make().start(1)


def test_cases_are_drawn_for_one_of_each_class_of_layers() -> None:
    layers = STREAMING | OFFLINE
    assert {type(layers[name]()) for name in ONE_OF_EACH} == {
        type(make()) for make in layers.values()
    }


def test_interruptions_come_at_both_ends_and_between() -> None:
    cases = drawn(interrupted(), seed=0, count=200)
    assert all(0 <= at <= len(cut) for cut, at in cases)
    assert any(at == 0 for _, at in cases)
    assert any(0 < at < len(cut) for cut, at in cases)
    assert any(0 < at == len(cut) for cut, at in cases)


@settings(max_examples=2, database=None)
@given(st.integers(0, 99))
def test_a_search_inside_a_test_finds_what_one_outside_finds(seed: int) -> None:
    def long(cut: laws.Partition) -> bool:
        return len(cut) > 2 and sum(map(sum, cut)) > 4

    found = smallest(laws.partitions(), long, seed=seed)
    assert found is not None
    assert long(found)
    assert len(found[0]) == 1


def test_sequences_are_long_enough_for_windows_below_a_bidirectional_layer() -> None:
    features = ReceptiveField(right=199, stride=80, padded=False)
    stack = ReceptiveField(right=3, stride=4, padded=False)
    everything = ReceptiveField(left=math.inf, right=math.inf)
    field = features.then(stack).then(everything)
    assert field.total(enough_frames(field)) >= 4
    field = ReceptiveField(left=5, right=5, stride=2).then(everything)
    assert field.total(enough_frames(field)) >= 4


def test_law_8_looks_far_enough_by_itself() -> None:
    def windows() -> Convolution:
        return Convolution(1, 2, right=40, stride=4, padded=False)

    laws.declared_is_measured(lambda: Serial(windows(), Bidirectional(GRU(2, 2))))

    def blind() -> Serial:
        """Declares to hear everything and hears the past."""
        layer = Serial(windows(), GRU(2, 2))
        everything = ReceptiveField(left=math.inf, right=math.inf)
        layer.field = windows().field.then(everything)
        return layer

    with pytest.raises(
        laws.LawBroken, match=r"output 0 does not look at input frame \d+, the right"
    ):
        laws.declared_is_measured(blind)


def test_every_case_is_judged_on_a_layer_that_has_never_run() -> None:
    trial = Trial("a law", laws.any_partition, wrong_layers.Cell, seed=0, dtype=torch.float64)
    one, other = trial.fresh(), trial.fresh()
    assert one.field is trial.layer.field
    for name, weight in one.named_parameters():
        assert torch.equal(weight, other.get_parameter(name))
        assert weight.data_ptr() != other.get_parameter(name).data_ptr()


def test_a_difference_is_told_in_the_words_of_the_tensor() -> None:
    names = ("here", "there")
    zeros, ones = torch.zeros(2, 2, dtype=torch.int64), torch.ones(2, 2, dtype=torch.int64)
    assert difference(zeros, ones, names=names) == "frame 0, feature 0: 0 here, 1 there"
    assert difference(zeros, ones, names=names, words=()) == "element (0, 0): 0 here, 1 there"
    assert difference(zeros[0], ones[0], names=names) == "element 0: 0 here, 1 there"
    assert difference(zeros[0, 0], ones[0, 0], names=names) == "0 here, 1 there"
    nan = torch.tensor([math.nan])
    assert difference(nan, nan, names=names, tolerance=0) is None
    assert difference(nan, nan, names=names) is not None


def test_a_law_leaves_the_random_numbers_of_its_caller_alone() -> None:
    laws.any_partition(wrong_layers.Cell)
    torch.manual_seed(5)
    expected = torch.rand(3)
    random.seed(5)
    number = random.random()
    torch.manual_seed(5)
    random.seed(5)
    laws.check(wrong_layers.Cell, laws.ALL[:5])
    assert torch.equal(torch.rand(3), expected)
    assert random.random() == number


@pytest.mark.parametrize("judge", [laws.check, *laws.ALL, laws.dependency_matrix])
@pytest.mark.parametrize(
    ("layer", "said"),
    [
        (3, "3 is neither a StreamingLayer nor a function that makes one"),
        (None, "None is neither a StreamingLayer nor"),
        (nn.GRU(2, 3), "GRU is no StreamingLayer: the laws test forward"),
        (lambda: nn.GRU(2, 3), "GRU is no StreamingLayer: the laws test forward"),
        (lambda: None, "NoneType is no StreamingLayer"),
    ],
)
def test_what_is_no_layer_and_makes_none_is_told_so(
    judge: Callable[..., object], layer: object, said: str
) -> None:
    with pytest.raises(NearfutureError, match=said):
        judge(layer)


def test_copies_share_nothing_that_a_layer_may_fill() -> None:
    class Holds(wrong_layers.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.cache: OrderedDict[str, int] = OrderedDict()

    trial = Trial("a law", laws.any_partition, Holds, seed=0, dtype=torch.float64)
    one, other = trial.fresh(), trial.fresh()
    assert one.cache is not other.cache
    assert one._forward_hooks is other._forward_hooks  # torch's own are shared while empty


@pytest.mark.parametrize("missing", ["hypothesis", "torch"])
def test_what_is_missing_is_named_with_the_way_to_install_it(missing: str) -> None:
    script = f"import sys\nsys.modules[{missing!r}] = None\nimport nearfuture.laws"
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert run.stderr.splitlines()[-1] == (
        f"ImportError: nearfuture.laws needs {missing}; "
        f"install it with: pip install 'nearfuture[laws]'"
    )
