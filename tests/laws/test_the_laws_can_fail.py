"""Law 12: a zoo of wrong layers, each rejected by the law that should catch it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearfuture import laws
from nearfuture.layers import LSTM, Convolution, Lookahead, Pointwise, Residual, Serial
from tests.laws import zoo


@pytest.mark.parametrize("name", zoo.ZOO)
def test_a_wrong_layer_is_caught_by_its_laws(name: str) -> None:
    _, named = zoo.ZOO[name]
    assert list(zoo.verdicts(name)) == [law.__name__ for law in laws.ALL if law in named]
    assert named[0] is min(named, key=laws.ALL.index)


@pytest.mark.parametrize("law", laws.ALL, ids=lambda law: law.__name__)
def test_every_law_is_the_first_to_catch_something(law: laws.Law) -> None:
    assert law in [named[0] for _, named in zoo.ZOO.values()]


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
        ("CountsInFloats", "in bfloat16 on cpu in chunks of [(256, 1), (1, 1), (1, 2), (1, 0)]"),
    ],
)
def test_the_message_names_the_smallest_case(name: str, said: str) -> None:
    assert said in str(next(iter(zoo.verdicts(name).values())))


def test_the_message_says_how_to_see_it_again() -> None:
    layer = zoo.DetachedMean()
    with pytest.raises(laws.LawBroken) as first:
        laws.any_partition(layer, seed=3, examples=20)
    call = "nearfuture.laws.any_partition(layer, seed=3, examples=20)"
    assert str(first.value).endswith(f"\n  again: {call}")
    with pytest.raises(laws.LawBroken) as again:
        eval(call, {"nearfuture": __import__("nearfuture.laws"), "layer": layer})
    assert str(again.value) == str(first.value)


@settings(max_examples=6, database=None)
@given(st.integers(0, 3), st.sampled_from(["right", "wrong"]))
def test_the_laws_hold_inside_a_test_that_hypothesis_drives(frames: int, which: str) -> None:
    if which == "right":
        laws.any_partition(Lookahead(2, frames), examples=3)
        return
    with pytest.raises(laws.LawBroken, match=r"in chunks of \[1, 1\]"):
        laws.any_partition(zoo.DividesByLength(), examples=3)


def test_what_is_found_inside_another_test_is_what_is_found_outside() -> None:
    said = []

    @settings(database=None)
    @given(st.just("inside"))
    def inside(_: str) -> None:
        with pytest.raises(laws.LawBroken) as caught:
            laws.gradients_agree(zoo.DetachesItsState)
        said.append(str(caught.value))

    inside()
    assert set(said) == {str(zoo.verdicts("DetachesItsState")["gradients_agree"])}


def test_check_names_the_first_broken_law_and_tells_what_the_others_say() -> None:
    with pytest.raises(laws.LawBroken) as caught:
        laws.check(zoo.left_too_small, laws.ALL[6:8])
    assert caught.value.law == "law 8 (declared = measured)"
    with pytest.raises(laws.LawBroken) as caught:
        laws.check(zoo.lookahead_off_by_one, laws.ALL[6:8])
    assert caught.value.law == "law 7 (emission schedule)"
    assert "\n  also law 8 (declared = measured): output 0 looks at input frame 3" in str(
        caught.value
    )


def test_a_right_layer_passes() -> None:
    inner = Serial(Lookahead(4, (0, 2)).at(2), LSTM(4, 4))
    laws.check(Serial(Convolution(2, 4, left=1, right=1, stride=2), Residual(inner)), seed=1)


def test_a_layer_that_changes_from_call_to_call_is_told_so() -> None:
    calls = iter(range(10_000))

    class Moody(Pointwise):
        """Keeps its life outside of itself, where no copy helps."""

        def __init__(self) -> None:
            super().__init__(zoo.nn.Identity(), 2)

        def step(self, x: zoo.Tensor, lengths: zoo.Tensor, state: zoo.State) -> zoo.Step:
            y, n = self(x, lengths)
            return y + (next(calls) == 25) * (y != 0), n, state

    with pytest.raises(laws.LawBroken, match="from one call to the next: there is hidden state"):
        laws.any_partition(Moody())
