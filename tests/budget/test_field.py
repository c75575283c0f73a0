"""Receptive fields against a simulation that knows nothing of the formulas."""

import itertools
import math

import pytest

from nearfuture.budget import ReceptiveField
from tests.errors import refuses

PADDED = [
    ReceptiveField(left=left, right=right, stride=stride)
    for left, right, stride in itertools.product((0, 3), (0, 1, 4), (1, 2, 3))
]
COMPLETE = [
    ReceptiveField(right=right, stride=stride, padded=False)
    for right, stride in itertools.product((0, 1, 2, 4, 7), (1, 2, 3))
]
BLOCKS = [
    ReceptiveField(left=left, right=right, block=block)
    for left, right, block in itertools.product((0, 2), (0, 1, 5), (2, 3, 4))
]
SINGLE = [*PADDED, *COMPLETE, *BLOCKS]
PAIRS = list(itertools.product(SINGLE[::2], SINGLE[::3]))
LENGTHS = range(40)


def looks_at(field: ReceptiveField, t: int) -> range:
    """The input frames that output `t` of a single layer looks at."""
    first = t - t % field.block
    start = first * field.stride - int(field.left)
    last = first + field.block - 1
    return range(start, last * field.stride + int(field.right) + 1)


def simulate(field: ReceptiveField, n: int, *, closed: bool) -> int:
    """Count the outputs of a single layer one by one."""
    for t in itertools.count():
        frames = looks_at(field, t)
        last = t * field.stride if closed and field.padded else frames[-1]
        if last >= n:
            return t
    raise AssertionError


def simulate_chain(fields: tuple[ReceptiveField, ...], n: int, *, closed: bool) -> int:
    for field in fields:
        n = simulate(field, n, closed=closed)
    return n


@pytest.mark.parametrize("field", SINGLE, ids=str)
def test_emitted_and_total_count_what_a_simulation_counts(field: ReceptiveField) -> None:
    for n in LENGTHS:
        assert field.emitted(n) == simulate(field, n, closed=False)
        assert field.total(n) == simulate(field, n, closed=True)


def test_composition_counts_what_a_simulation_counts() -> None:
    for pair in PAIRS:
        both = pair[0].then(pair[1])
        for n in LENGTHS:
            assert both.emitted(n) == simulate_chain(pair, n, closed=False), pair
            assert both.total(n) == simulate_chain(pair, n, closed=True), pair


def test_composition_reaches_exactly_as_far_as_a_simulation() -> None:
    for below, above in PAIRS:
        both = below.then(above)
        left = right = 0
        for t in range(12):  # a multiple of every block
            frames = [frame for middle in looks_at(above, t) for frame in looks_at(below, middle)]
            left = max(left, t * both.stride - min(frames))
            right = max(right, max(frames) - t * both.stride)
        assert (both.left, both.right) == (left, right), (below, above)


@pytest.mark.parametrize("field", [*SINGLE, SINGLE[4].then(BLOCKS[3]).then(COMPLETE[5])], ids=str)
def test_needed_is_the_inverse_of_emitted(field: ReceptiveField) -> None:
    for t in range(15):
        needed = int(field.needed(t))
        assert field.emitted(needed) > t >= field.emitted(needed - 1)


def test_composition_is_associative() -> None:
    for a, b, c in itertools.product(PADDED[::4], BLOCKS[::4], SINGLE[::6]):
        assert a.then(b).then(c) == a.then(b.then(c))


def test_aligned_blocks_wait_once() -> None:
    chunk = ReceptiveField(block=4)
    assert chunk.then(chunk).right == 3


def test_composition_reaches_as_far_as_the_farthest_of_all_outputs() -> None:
    def all_of(*links: ReceptiveField) -> tuple[int, int]:
        period = math.lcm(*(link.block for link in links))
        windows = [(range(t, t + 1), t) for t in range(period)]
        for link in reversed(links):
            windows = [
                (range(looks_at(link, seen[0])[0], looks_at(link, seen[-1])[-1] + 1), t)
                for seen, t in windows
            ]
        return max(t - seen[0] for seen, t in windows), max(seen[-1] - t for seen, t in windows)

    single = ReceptiveField(left=1, right=2)
    for first, second, third in itertools.product(BLOCKS, [single, *BLOCKS[::4]], BLOCKS[::5]):
        field = first.then(second).then(third)
        assert (field.left, field.right) == all_of(first, second, third)


def test_long_blocks_cost_no_more_time_than_short_ones() -> None:
    long = ReceptiveField(left=10**9, block=10**9)
    twice = long.then(ReceptiveField(left=8)).then(long)
    assert (twice.left, twice.right) == (10**9 * 4 - 1, 10**9 - 1)


def test_bidirectional_emits_nothing_before_the_end() -> None:
    both = ReceptiveField(left=math.inf, right=math.inf)
    lookahead = ReceptiveField(right=4)
    for field in (both, lookahead.then(both), both.then(lookahead)):
        assert [field.emitted(n) for n in LENGTHS] == [0] * len(LENGTHS)
        assert [field.total(n) for n in LENGTHS] == list(LENGTHS)
        assert field.needed(0) == math.inf
        assert (field.left, field.right) == (math.inf, math.inf)


def test_speech_frames_without_centring() -> None:
    window = ReceptiveField(right=399, stride=160, padded=False)
    assert window.total(16000) == 98
    assert window.then(ReceptiveField(right=3, stride=4, padded=False)).total(16000) == 24


@pytest.mark.parametrize(
    ("options", "code", "parameter", "value"),
    [
        ({"left": -1}, "out_of_range", "left", -1),
        ({"right": 0.5}, "out_of_range", "right", 0.5),
        ({"right": math.nan}, "out_of_range", "right", math.nan),
        ({"stride": 0}, "out_of_range", "stride", 0),
        ({"block": 0}, "out_of_range", "block", 0),
        ({"block": 2, "stride": 2}, "conflict", "block", "stride 1"),
        ({"block": 2, "padded": False}, "conflict", "block", "padded"),
        ({"left": 1, "padded": False}, "conflict", "padded", "left=1"),
        ({"right": math.inf, "padded": False}, "conflict", "padded", "right=inf"),
    ],
)
def test_impossible_fields_are_refused_by_name(
    options: dict[str, float], code: str, parameter: str, value: object
) -> None:
    with refuses(code, parameter, value):
        ReceptiveField(**options)  # type: ignore[arg-type]
