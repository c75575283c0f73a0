"""Law 12: wrong layers, each rejected by the law that should catch it."""

from collections import OrderedDict

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from nearfuture import laws
from nearfuture.budget import ReceptiveField
from nearfuture.error import NotStreamable
from nearfuture.layers import LSTM, Convolution, Lookahead, Pointwise, Residual, Serial, State
from nearfuture.layers.ragged import mask
from tests.laws import page, wrong_layers
from tests.laws.wrong_layers import Currency, Frames, Step


@pytest.mark.parametrize("name", wrong_layers.WRONG_LAYERS)
def test_a_wrong_layer_is_caught_by_its_laws(name: str) -> None:
    _, named = wrong_layers.WRONG_LAYERS[name]
    assert list(wrong_layers.verdicts(name)) == [law.__name__ for law in laws.ALL if law in named]
    assert named[0] is min(named, key=laws.ALL.index)
    assert page.masked(page.row(name)) == page.masked(page.rows()[name]), page.RENEW


@pytest.mark.slow
@pytest.mark.parametrize("name", wrong_layers.WRONG_LAYERS)
def test_no_law_before_the_first_catches_it_in_any_case(name: str) -> None:
    layer, named = wrong_layers.WRONG_LAYERS[name]
    for law in laws.ALL[: laws.ALL.index(named[0])]:
        assert wrong_layers.verdict(law, layer) is None


@pytest.mark.parametrize("law", laws.ALL, ids=lambda law: law.__name__)
def test_every_law_is_the_first_to_catch_something(law: laws.Law) -> None:
    assert law in [named[0] for _, named in wrong_layers.WRONG_LAYERS.values()]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("DividesByLength", "law 1 (any partition): in chunks of [1, 1] frames, row 0, frame 0"),
        ("WrongFromThreeFrames", "in chunks of [3] frames, row 0, frame 0, feature 0: "),
        ("RefusesEmptyChunks", "in chunks of [0] frames, the layer raises RuntimeError: no frames"),
        (
            "CountsItsChunks",
            "in chunks of [0] frames, tensor 1 of the state, row 0, 1 so, 0 in sing",
        ),
        ("FastKernelForgets", "frames and 1 single frames, row 0, frame"),
        ("ScalesByTheBatch", "in chunks of [(1, 0)] frames, row 0, frame 0, feature 0: "),
        ("FillsTooLate", "for rows of [0] frames and 1 more of padding with nan (eval mode), grad"),
        ("WritesIntoItsState", "saved by clone before chunk 0, going on writes into the state"),
        ("lookahead_off_by_one", "in chunks of [3] frames, row 0, after 3 frames: 0 outputs inst"),
        ("left_too_small", "output 3 looks at input frame 0, but may look at 1 … 3 only (left=2"),
        ("DetachesItsState", "in chunks of [1, 1] frames, gradient of the input, row 0, frame 0"),
        ("HandsOutOneTensor", "two starts share memory: tensor 0, element (0, 0): 77.0 from the"),
        (
            "UnregisteredChild",
            "Linear in the attribute children_of_mine is not registered, so to()",
        ),
        (
            "SquaresFarFromZero",
            "in float32 on cpu for values around 100 in chunks of [1] frames, row 0",
        ),
        ("SquaresFarFromZero", "tolerance 3e-04 in float32)"),
        ("CountsInFloats", "in bfloat16 on cpu in chunks of [(256, 1), (1, 1), (1, 2), (1, 0)]"),
    ],
)
def test_the_message_names_the_smallest_case(name: str, said: str) -> None:
    assert said in str(next(iter(wrong_layers.verdicts(name).values())))


def test_the_message_says_how_to_see_it_again() -> None:
    layer = wrong_layers.DetachedMean()
    with pytest.raises(laws.LawBroken) as first:
        laws.any_partition(layer, seed=3, examples=20)
    call = "nearfuture.laws.any_partition(layer, seed=3, examples=20)"
    assert str(first.value).endswith(f"\n  again: {call}")
    with pytest.raises(laws.LawBroken) as again:
        eval(call, {"nearfuture": __import__("nearfuture.laws"), "layer": layer})
    assert str(again.value) == str(first.value)


@settings(max_examples=4, database=None)
@given(st.integers(0, 3), st.sampled_from(["right", "wrong"]))
def test_the_laws_hold_inside_a_test_that_hypothesis_drives(frames: int, which: str) -> None:
    if which == "right":
        laws.any_partition(Lookahead(2, frames), examples=3)
        return
    with pytest.raises(laws.LawBroken, match=r"in chunks of \[1, 1\]"):
        laws.any_partition(wrong_layers.DividesByLength(), examples=3)


def test_what_is_found_inside_another_test_is_what_is_found_outside() -> None:
    said = []

    @settings(database=None)
    @given(st.just("inside"))
    def inside(_: str) -> None:
        with pytest.raises(laws.LawBroken) as caught:
            laws.gradients_agree(wrong_layers.DetachesItsState)
        said.append(str(caught.value))

    inside()
    assert set(said) == {str(wrong_layers.verdicts("DetachesItsState")["gradients_agree"])}


def test_check_names_the_first_broken_law_and_tells_what_the_others_say() -> None:
    with pytest.raises(laws.LawBroken) as caught:
        laws.check(wrong_layers.left_too_small, laws.ALL[6:8])
    assert caught.value.law == "law 8 (declared = measured)"
    with pytest.raises(laws.LawBroken) as caught:
        laws.check(wrong_layers.lookahead_off_by_one, laws.ALL[6:8])
    assert caught.value.law == "law 7 (emission schedule)"
    assert "\n  also law 8 (declared = measured): output 0 looks at input frame 3" in str(
        caught.value
    )


class WithoutLengths(Frames):
    def forward(self, x: Tensor) -> Tensor:
        return x


class GivesNoLengths(Frames):
    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        return x


def test_what_several_laws_say_in_the_same_words_is_told_once() -> None:
    with pytest.raises(laws.LawBroken) as caught:
        laws.check(WithoutLengths())
    first, also, again = str(caught.value).splitlines()
    assert "law 1 (any partition): in chunks of [0] frames, the layer raises TypeError" in first
    assert also == f"  also {', '.join(f'law {n}' for n in range(2, 12))}: the same"
    assert again.startswith("  again: ")


def test_each_thing_that_other_laws_say_has_its_line() -> None:
    with pytest.raises(laws.LawBroken) as caught:
        laws.check(GivesNoLengths(), [laws.ALL[i] for i in (0, 1, 2, 5, 7)])
    _, same, others, alone, _ = str(caught.value).splitlines()
    assert same == "  also law 3 (prefill then step): the same"
    assert others.startswith("  also law 2, law 6: in chunks of [0] frames, the layer raises Val")
    assert alone.startswith("  also law 8 (declared = measured): the layer raises RuntimeError: ")


def test_law_11_names_the_dtype_that_its_tolerance_belongs_to() -> None:
    class Coarse(Frames):
        def forward(self, x: Tensor, lengths: Tensor) -> Currency:
            wrong = 2.0 if x.dtype is torch.bfloat16 else 1.0
            return mask(wrong * x, lengths), lengths

    with pytest.raises(laws.LawBroken, match=r"tolerance 5e-02 in bfloat16\)"):
        laws.any_dtype_and_device(Coarse())


class Refuses(Frames):
    error: Exception = NotStreamable("not me")

    def start(self, batch_size: int, *, device: object = None, dtype: object = None) -> State:
        raise self.error


def test_a_layer_that_declares_a_finite_right_and_refuses_to_stream_is_told_so() -> None:
    with pytest.raises(laws.LawBroken) as caught:
        laws.check(Refuses())
    assert str(caught.value).splitlines()[:2] == [
        "law 1 (any partition): right = 0 is declared, but start() refuses to stream "
        "(NotStreamable: not me)",
        "  also law 2, law 3, law 4, law 6, law 7, law 9, law 10, law 11: the same",
    ]


def test_a_layer_whose_past_has_no_bound_may_refuse_to_stream() -> None:
    layer = Refuses()
    layer.field = ReceptiveField(left=float("inf"))
    laws.any_partition(layer)
    layer.field = ReceptiveField(left=9)
    with pytest.raises(laws.LawBroken, match=r"but start\(\) refuses to stream"):
        laws.any_partition(layer)


def test_a_layer_that_cannot_stream_and_says_so_with_another_error_is_told_so() -> None:
    layer = Refuses()
    layer.error = RuntimeError("no such thing")
    with pytest.raises(laws.LawBroken, match=r"in chunks of \[0\] frames, the layer raises Run"):
        laws.any_partition(layer)
    layer.field = ReceptiveField(left=float("inf"), right=float("inf"))
    with pytest.raises(laws.LawBroken) as caught:
        laws.any_partition(layer)
    assert caught.value.where == (
        "right = inf is declared, but start() raises RuntimeError: no such thing instead of "
        "NotStreamable"
    )


@pytest.mark.parametrize("law", [laws.any_partition, laws.rows_are_independent])
def test_hidden_state_shows_in_whatever_an_attribute_keeps_it(law: laws.Law) -> None:
    class Counts(Frames):
        """The third step, and every later one, is doubled."""

        def __init__(self, seen: dict) -> None:
            super().__init__()
            self.seen = seen

        def step(self, x: Tensor, lengths: Tensor, state: State) -> Step:
            self.seen["steps"] = self.seen.get("steps", 0) + 1
            y, n = self(x, lengths)
            return y * (1 + (self.seen["steps"] > 2)), n, state

    said = []
    for kind in (dict, OrderedDict):
        with pytest.raises(laws.LawBroken) as caught:
            law(lambda kind=kind: Counts(kind()))
        said.append(str(caught.value))
    assert said[0] == said[1]
    assert "from one call to the next" not in said[0]


def test_a_right_layer_passes() -> None:
    inner = Residual(Serial(Lookahead(2, (0, 2)).at(2), LSTM(2, 2)))
    laws.check(Serial(Convolution(2, 2, left=1, right=1, stride=2), inner), seed=1, examples=1)


def test_a_layer_that_changes_from_call_to_call_is_told_so() -> None:
    calls = iter(range(10_000))

    class Moody(Pointwise):
        """Keeps its life outside of itself, where no copy helps."""

        def __init__(self) -> None:
            super().__init__(nn.Identity(), 2)

        def step(self, x: Tensor, lengths: Tensor, state: State) -> Step:
            y, n = self(x, lengths)
            return y + (next(calls) == 25) * (y != 0), n, state

    with pytest.raises(laws.LawBroken, match="from one call to the next: there is hidden state"):
        laws.any_partition(Moody())
