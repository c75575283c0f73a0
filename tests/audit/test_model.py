"""What `audit.model` measures, finds and refuses, on small models whose answer is known."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nearfuture import audit
from nearfuture.layers import GRU, Bidirectional, Lookahead, Serial
from nearfuture.layers.state import State
from tests.errors import refuses


def example(frames: int = 24, *, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(2, frames, 3, generator=torch.Generator().manual_seed(0)).to(dtype)


def ahead(frames: int) -> Callable[[Tensor], Tensor]:
    return lambda x: x + F.pad(x, (0, 0, 0, frames))[:, frames:]


def kinds(report: audit.Report) -> set[str]:
    return {finding.kind for finding in report.findings if finding.severity == "broken"}


# Numbers


def test_the_matrix_is_who_looks_at_whom() -> None:
    report = audit.model(ahead(2), example(6))
    expected = np.eye(6, dtype=bool) | np.eye(6, k=2, dtype=bool)
    assert report.matrix is not None
    assert np.array_equal(report.matrix, expected)
    assert (report.lookahead, report.lookback, report.stride) == (2, 0, 1)


def test_the_matrix_alone_is_that_of_the_report() -> None:
    torch.manual_seed(0)
    net = Serial(GRU(3, 4), Lookahead(4, 2)).eval()
    called = []

    def counted(x: Tensor) -> Tensor:
        called.append(len(x))
        with torch.no_grad():
            y: Tensor = net(x, torch.full((len(x),), x.shape[1]))[0]
        return y

    matrix = audit.matrix(counted, example(9))
    few = len(called)
    report = audit.model(counted, example(9))
    assert np.array_equal(matrix, report.matrix)
    assert few < (len(called) - few) / 1.5


@pytest.mark.parametrize("frames", [0, 1, 5, 19])
def test_lookahead_alone_is_that_of_the_matrix(frames: int) -> None:
    assert audit.lookahead(ahead(frames), example(150)) == frames
    assert audit.model(ahead(frames), example(150)).lookahead == frames


def test_latency_counts_the_frame_itself() -> None:
    report = audit.model(ahead(4), example(), frame_ms=40, at_most_ms=200)
    assert report.latency_ms == 200
    assert report.holds
    assert kinds(audit.model(ahead(5), example(), frame_ms=40, at_most_ms=200)) == {"future"}


def test_what_grows_with_the_sequence_is_endless() -> None:
    for fn in (lambda x: x.flip(1), lambda x: x - x.mean(1, keepdim=True)):
        assert audit.lookahead(fn, example()) == math.inf
        assert audit.model(fn, example()).lookahead == math.inf


def test_a_look_beyond_a_short_example_is_measured_on_longer_ones() -> None:
    report = audit.model(Lookahead(3, 30), example(8), at_most=30)
    assert report.lookahead == 30
    assert report.holds


@pytest.mark.parametrize("stride", [2, 3, 4])
def test_the_rate_is_measured(stride: int) -> None:
    report = audit.model(lambda x: x[:, ::stride], example(25))
    assert (report.stride, report.lookahead) == (stride, 0)
    pooled = audit.model(
        lambda x: F.avg_pool1d(x.transpose(1, 2), stride).transpose(1, 2), example()
    )
    assert (pooled.stride, pooled.lookahead) == (stride, stride - 1)


def test_more_outputs_than_inputs() -> None:
    report = audit.model(lambda x: x.repeat_interleave(2, dim=1), example(12))
    assert (report.stride, report.lookahead) == (Fraction(1, 2), 0)


def test_only_one_place_lookahead_sources() -> None:
    def fn(x: Tensor) -> Tensor:
        y = x.clone()
        y[:, 7] = y[:, 7] + x[:, 12]
        return y

    report = audit.model(fn, example())
    assert report.lookahead == 5
    assert report.matrix is not None
    assert report.matrix.sum() == 25


@pytest.mark.parametrize(
    ("block", "frames"), [(4, 48), (7, 200), (20, 200), (25, 200), (40, 210), (16, 400)]
)
def test_blocks_look_as_far_as_their_first_frame(block: int, frames: int) -> None:
    def fn(x: Tensor) -> Tensor:
        frames = x.shape[1]
        place = torch.arange(frames)
        same = (place[:, None] // block) == (place[None] // block)
        return torch.einsum("ts,bsd->btd", same.to(x), x)

    assert audit.lookahead(fn, example(frames)) == block - 1
    if frames < 100:
        assert audit.model(fn, example(frames)).lookahead == block - 1


def test_what_grows_in_fits_and_starts_is_endless() -> None:
    def fn(x: Tensor) -> Tensor:  # hears only how loud the loudest is
        return x + (x.amax((1, 2), keepdim=True) > 50).float()

    x = torch.randn(1, 60, 20, generator=torch.Generator().manual_seed(0))
    report = audit.model(fn, x, at_most=115)
    assert report.lookahead == math.inf
    assert not report.holds


def test_a_silence_ahead_is_heard() -> None:
    def fn(x: Tensor) -> Tensor:
        quiet = (x.abs().mean(-1, keepdim=True) < 0.05).float()
        return x * (1 - F.pad(quiet, (0, 0, 0, 3))[:, 3:])

    assert audit.model(fn, example(), at_most=0).lookahead == 3


def test_two_frames_ahead_that_work_together_are_found() -> None:
    def fn(x: Tensor) -> Tensor:
        loud = x.abs().mean(-1) > 3
        both = F.pad((loud[:, 1:] & loud[:, :-1]).float(), (0, 2))[:, 1:, None]
        return x * (1 - both)

    assert not audit.model(fn, example(30), at_most=0).holds


def test_rounding_is_no_influence() -> None:
    class ByFourier(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.kernel = nn.Parameter(torch.tensor([1.0, 0.5, 0.2]))

        def forward(self, x: Tensor) -> Tensor:
            n = 2 * x.shape[1]
            spectrum = torch.fft.rfft(x, n=n, dim=1) * torch.fft.rfft(self.kernel, n=n)[:, None]
            return torch.fft.irfft(spectrum, n=n, dim=1)[:, : x.shape[1]]

    report = audit.model(ByFourier(), example(), at_most=0)
    assert report.lookahead == 0
    assert any("shrink in higher precision" in note for note in report.notes)
    assert audit.lookahead(ByFourier(), example(200)) == 0


def test_a_note_says_that_integers_hide_the_scores_they_come_from() -> None:
    report = audit.model(lambda x: x.argmax(-1), example())
    assert any("integers" in note for note in report.notes)


def test_a_note_counts_outputs_that_depend_on_nothing() -> None:
    report = audit.model(torch.zeros_like, example())
    assert "24 of 24 outputs depend on nothing: no input changes them" in report.notes


def test_a_budget_of_a_whole_number_of_frames_is_kept() -> None:
    assert audit.model(ahead(2), example(), frame_ms=12.8, at_most_ms=38.4).holds


def test_a_look_of_one_bit() -> None:
    def fn(x: Tensor) -> Tensor:
        following = F.pad(x, (0, 0, 0, 1))[:, 1:]
        return x * (1 + 0.1 * following.sign())

    assert audit.model(fn, example(), at_most=0).lookahead == 1
    assert audit.lookahead(fn, example(300)) == 1


def test_the_past_that_sinks_below_float32_is_followed() -> None:
    torch.manual_seed(0)
    rnn = nn.RNN(3, 8, batch_first=True)
    with torch.no_grad():
        rnn.weight_hh_l0 *= 0.3
    report = audit.model(rnn, example(200))
    assert report.matrix is not None
    assert np.array_equal(report.matrix, np.tri(200, dtype=bool))
    assert (report.lookback, report.lookback_is_lower_bound) == (math.inf, False)


def test_what_cannot_be_followed_is_said_to_fade() -> None:
    weights = torch.full((1, 1), 0.3)

    def fn(x: Tensor) -> Tensor:
        x = torch.from_numpy(x.numpy().astype(np.float32))  # no other precision can be had
        state, out = x[:, 0] * 0, []
        for t in range(x.shape[1]):
            state = torch.tanh(weights * state + x[:, t])
            out.append(state)
        return torch.stack(out, dim=1)

    report = audit.model(fn, example(120))
    assert report.lookback_is_lower_bound
    assert not report.lookahead_is_lower_bound
    assert report.lookahead == 0


def test_observed_frames_are_no_future() -> None:
    def window_then_causal(x: Tensor) -> Tensor:
        return x.cumsum(1) + x[:, :8].mean(1, keepdim=True)

    assert audit.model(window_then_causal, example(), at_most=0).lookahead == 7
    report = audit.model(window_then_causal, example(), at_most=0, observed=8)
    assert report.lookahead == 0
    assert report.holds


def test_one_answer_to_a_whole_window_looks_at_what_was_observed() -> None:
    report = audit.model(lambda x: x.mean(1), example(), at_most=0)
    assert report.lookahead == 0
    assert report.holds
    assert "one output for the whole sequence" in report.notes[0]


# Layouts and arguments


def test_layouts() -> None:
    cases = [
        (lambda x: x + x.roll(-1, 0) * 0.5, (20, 2, 3), "TNC"),
        (lambda x: F.conv1d(F.pad(x, (0, 1)), torch.ones(3, 3, 2)), (2, 3, 20), "NCT"),
        (lambda x: x + F.pad(x, (0, 1))[:, 1:], (2, 20), "NT"),
        (lambda x: x + F.pad(x, (0, 1))[1:], (20,), "T"),
        (lambda x: x + F.pad(x, (0, 1))[..., 1:], (2, 3, 5, 20), "NCFT"),
    ]
    for fn, shape, layout in cases[1:]:
        x = torch.randn(shape, generator=torch.Generator().manual_seed(1))
        assert audit.model(fn, x, layout=layout).lookahead == 1, layout
    rolled = audit.model(cases[0][0], torch.randn(cases[0][1]), layout="TNC")
    assert rolled.lookback == math.inf  # the last looks at the first


def test_the_output_may_be_anywhere_in_the_answer() -> None:
    def fn(x: Tensor) -> dict[str, Any]:
        return {"hidden": x, "logits": x + F.pad(x, (0, 0, 0, 2))[:, 2:]}

    assert audit.model(fn, example()).lookahead == 0
    assert audit.model(fn, example(), output="logits").lookahead == 2
    assert audit.model(lambda x: (x, x.flip(1)), example(), output=1).lookahead == math.inf
    with refuses("not_found", "output", "'text'"):
        audit.model(fn, example(), output="text")
    with refuses("invalid", "output", "str", "no array"):
        audit.model(lambda x: "text", example())


@pytest.mark.parametrize("takes", ["lengths", "mask", "padding_mask"])
def test_what_is_passed_to_a_model_about_padding(takes: str) -> None:
    def fn(x: Tensor, argument: Tensor) -> Tensor:
        inside = argument
        if takes == "lengths":
            inside = torch.arange(x.shape[1]) < argument[:, None]
        elif takes == "padding_mask":
            inside = ~argument
        x = x * inside[..., None]
        return (x - x.sum(1, keepdim=True) / inside.sum(1)[:, None, None]) * inside[..., None]

    report = audit.model(fn, example(), [24, 15], takes=takes)
    assert report.holds
    assert "whether the content of the padding changes anything" in report.checked
    ignored = audit.model(
        lambda x, _: x - x.mean(1, keepdim=True), example(), [24, 15], takes=takes
    )
    assert kinds(ignored) == {"padding"}


def test_extra_arguments_and_keywords() -> None:
    def fn(x: Tensor, *, shift: int, valid: Tensor) -> Tensor:
        return ahead(shift)(x)

    options: dict[str, Any] = {"takes": "mask", "keyword": "valid", "extra": {"shift": 3}}
    assert audit.model(fn, example(), **options).lookahead == 3


def test_numpy_tokens_and_booleans() -> None:
    tokens = np.random.default_rng(0).integers(0, 30, (2, 20))
    report = audit.model(lambda x: np.cumsum(x, axis=1)[..., None], tokens, at_most=0)
    assert (report.lookahead, report.lookback) == (0, math.inf)
    flags = np.random.default_rng(0).random((2, 20, 2)) > 0.5
    assert audit.model(lambda x: np.flip(x, 1).copy(), flags).lookahead == math.inf


def test_a_module_takes_what_numpy_makes() -> None:
    x = np.random.default_rng(0).standard_normal((1, 20, 3))
    report = audit.model(nn.GRU(3, 4, batch_first=True), x, at_most=0)
    assert report.holds
    assert report.lookback == math.inf
    assert audit.model(nn.GRU(3, 4, batch_first=True).double(), x, at_most=0).holds


def test_half_precision() -> None:
    layer = nn.Conv1d(3, 3, 3, padding=1).bfloat16()
    x = example().transpose(1, 2).bfloat16()
    assert audit.model(layer, x, layout="NCT").lookahead == 1


def test_models_of_one_length_and_one_row() -> None:
    def only(x: Tensor) -> Tensor:
        if x.shape != (1, 24, 3):
            raise RuntimeError(f"shape {tuple(x.shape)}")
        return x.cumsum(1)

    report = audit.model(only, example()[:1], at_most=0)
    assert report.holds
    assert report.lookahead == 0
    assert any("batches of 1 only" in note for note in report.notes)
    assert any("runs on 24 frames only" in note for note in report.notes)


# Findings


def test_what_is_wrong_besides_the_future() -> None:
    class Counts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.calls = 0

        def forward(self, x: Tensor) -> Tensor:
            self.calls += 1
            return x * self.calls

    cases: list[tuple[Any, str]] = [
        (lambda x: x / x.shape[1], "length"),
        (lambda x: x - x.mean(0, keepdim=True), "batch"),
        (lambda x: x - x[:1], "batch"),  # row 0 itself sees no other row
        (lambda x: x + torch.randn(x.shape), "nondeterminism"),
        (Counts(), "state"),
    ]
    for fn, kind in cases:
        assert kinds(audit.model(fn, example())) == {kind}, kind


def test_a_state_that_stays_is_forgotten_for_the_rest() -> None:
    class Remembers(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = nn.GRU(3, 4, batch_first=True)
            self.h: Tensor | None = None

        def forward(self, x: Tensor) -> Tensor:
            y, self.h = self.rnn(x, self.h)
            return y

    model = Remembers()
    report = audit.model(model, example()[:1])
    assert kinds(report) == {"state"}
    assert report.lookahead == 0
    assert model.h is None


def test_a_module_is_left_as_it_was() -> None:
    model = nn.Sequential(nn.BatchNorm1d(3), nn.Dropout())
    before = {name: value.clone() for name, value in model.state_dict().items()}
    seed = torch.get_rng_state()
    audit.model(model, example().transpose(1, 2), layout="NCT", train=True)
    assert model.training
    assert torch.equal(torch.get_rng_state(), seed)
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name])


class Net(nn.Module):
    """A leak three modules deep."""

    class Block(nn.Module):
        def __init__(self, norm: nn.Module) -> None:
            super().__init__()
            self.conv = nn.Conv1d(3, 3, 3)
            self.norm = norm

        def forward(self, x: Tensor) -> Tensor:
            return x + torch.relu(self.norm(self.conv(F.pad(x, (2, 0)))))

    def __init__(self, norm: nn.Module) -> None:
        super().__init__()
        blocks = [self.Block(nn.Identity()) for _ in range(4)]
        blocks[2].norm = norm
        self.encoder = nn.Sequential(*blocks)

    def forward(self, x: Tensor) -> Tensor:
        return self.encoder(x.transpose(1, 2)).transpose(1, 2)


def test_the_culprit_is_the_submodule_where_it_enters() -> None:
    report = audit.model(Net(nn.GroupNorm(1, 3)), example(), at_most=0)
    (finding,) = report.findings
    assert (finding.kind, finding.severity) == ("normalisation", "broken")
    assert finding.culprit is not None
    assert (finding.culprit.where, finding.culprit.what) == ("encoder.2.norm", "GroupNorm")
    assert finding.culprit.source is not None
    assert finding.culprit.source.startswith("tests/audit/test_model.py:")
    assert str(finding).startswith(
        "encoder.2.norm (GroupNorm, in group_norm at tests/audit/test_model.py:"
    )
    assert "output 0 changes with input 23" in str(finding)
    assert [place.where for place in report.lookahead_sources] == ["encoder.2.norm"]
    assert audit.model(Net(nn.Identity()), example(), at_most=0).holds


def test_places_are_itemised() -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.near = nn.Conv1d(3, 3, 3, padding=1)
            self.far = nn.Conv1d(3, 3, 7, padding=3)

        def forward(self, x: Tensor) -> Tensor:
            return self.far(self.near(x.transpose(1, 2))).transpose(1, 2)

    report = audit.model(Two(), example(40), at_most=3)
    assert report.lookahead == 4
    assert [(p.where, p.frames) for p in report.lookahead_sources] == [("far", 3), ("near", 1)]
    assert report.findings[0].culprit == report.lookahead_sources[0]


@pytest.mark.parametrize("frames", [60, 63, 64, 65, 201])
@pytest.mark.parametrize(("padding", "places"), [(1, [4, 2, 1]), (0, [8, 4, 2])])
def test_places_behind_strides_are_counted_in_input_frames(
    frames: int, padding: int, places: list[int]
) -> None:
    model = nn.Sequential(*[nn.Conv1d(3, 3, 3, 2, padding=padding) for _ in range(3)])
    report = audit.model(model, example(frames).transpose(1, 2), layout="NCT")
    assert report.lookahead == sum(places)
    assert [(p.where, p.frames) for p in report.lookahead_sources] == list(
        zip("210", places, strict=True)
    )


def test_the_culprit_of_a_fold_is_where_time_was_lost() -> None:
    class Squeeze(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.pool = nn.AdaptiveAvgPool1d(1)
            self.gate = nn.Linear(3, 3)

        def forward(self, x: Tensor) -> Tensor:
            pooled = self.pool(x.transpose(1, 2))[..., 0]
            return x * torch.sigmoid(self.gate(pooled))[:, None]

    report = audit.model(Squeeze(), example(), at_most=0)
    assert report.findings[0].culprit is not None
    assert report.findings[0].culprit.where == "pool"


def test_the_culprit_of_mixed_rows() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
    norm = nn.BatchNorm1d(3)

    class Mixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.norm = model, norm

        def forward(self, x: Tensor) -> Tensor:
            return self.norm(self.body(x).transpose(1, 2)).transpose(1, 2)

    report = audit.model(Mixed(), example(), train=True)
    (finding,) = (found for found in report.findings if found.kind == "batch")
    assert finding.culprit is not None
    assert finding.culprit.where == "norm"


# Streaming


def test_ones_own_steps_are_compared() -> None:
    gru = nn.GRU(3, 4, batch_first=True)

    def forward(x: Tensor) -> Tensor:
        return gru(x)[0]

    assert audit.model(forward, example(), step=gru).holds

    def wrong_from_three(chunk: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
        return gru(chunk * (1.5 if chunk.shape[1] >= 3 else 1), state)

    report = audit.model(forward, example(), step=wrong_from_three)
    assert kinds(report) == {"streaming"}
    assert "in chunks of [24] frames" in report.findings[0].message

    def loses_its_tail(chunk: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
        held = chunk[:, :0] if state is None else state
        frames = torch.cat([held, chunk], dim=1)
        return frames[:, :-1] + frames[:, 1:], frames[:, -1:]

    def window(x: Tensor) -> Tensor:
        return x + F.pad(x, (0, 0, 0, 1))[:, 1:]

    def wrong_at_seven(chunk: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
        return gru(chunk * (1.5 if chunk.shape[1] == 7 else 1), state)

    assert kinds(audit.model(forward, example(40), step=wrong_at_seven)) == {"streaming"}

    def bad_start(size: int) -> None:
        raise AssertionError

    report = audit.model(forward, example(), step=gru, start=bad_start)
    assert report.verdict == "undecided"
    assert "bad_start cannot be run: TypeError" in report.findings[0].message

    report = audit.model(window, example(), step=loses_its_tail)
    assert "it gives 23 outputs, whole 24" in report.findings[0].message
    finished = audit.model(window, example(), step=loses_its_tail, finish=lambda state: state)
    assert finished.holds


def test_a_streaming_layer_brings_its_own_steps() -> None:
    class Forgets(Lookahead):
        def finish(self, state: State) -> tuple[Tensor, Tensor]:
            return super().finish(self.start(1))

    assert audit.model(Serial(GRU(3, 4), Lookahead(4, 3)), example(), at_most=3).holds
    assert kinds(audit.model(Forgets(3, 2), example())) == {"streaming"}
    assert audit.model(Bidirectional(GRU(3, 4)), example()).holds


# Errors


@pytest.mark.parametrize(
    ("arguments", "parameter", "values"),
    [
        ({"example": np.ones((1, 1, 3))}, "example", ["1 frame", "(1, 1, 3)", "`layout`"]),
        ({"example": np.ones((1, 0, 3))}, "example", ["0 frame"]),
        ({"example": np.full((1, 5, 3), np.nan)}, "example", ["NaN or infinity"]),
        ({"example": np.array([["a"]])}, "example", ["<U1"]),
        ({"example": np.ones((1, 2, 3, 4))}, "layout", ["4 axes", "NCFT"]),
        ({"example": None}, "example", []),
        ({"layout": "NT"}, "layout", ["NT", "2 axes", "(1, 8, 3)"]),
        ({"layout": "NCC"}, "layout", ["'NCC'"]),
        ({"output_layout": "NCC"}, "output_layout", ["'NCC'"]),
        ({"layout": "NCF"}, "layout", ["T", "'NCF'"]),
        ({"lengths": [9]}, "lengths", ["[9]", "1 rows and 8 frames"]),
        ({"at_most_ms": 100}, "frame_ms", ["`at_most_ms`"]),
        ({"takes": "hints"}, "takes", ["'hints'", "padding_mask"]),
        ({"fn": 3}, "fn", ["int"]),
        ({"fn": lambda x: x[:, :0]}, "example", ["8 frames"]),
        ({"fn": lambda x: x * np.nan}, None, ["is a mask inverted"]),
    ],
)
def test_errors_name_the_value_and_the_way_out(
    arguments: dict[str, Any], parameter: str | None, values: list[str]
) -> None:
    options: dict[str, Any] = {"fn": lambda x: x, "example": np.ones((1, 8, 3)), **arguments}
    with refuses("invalid", parameter, *values):
        audit.model(options.pop("fn"), options.pop("example"), **options)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("at_most", -1),
        ("frame_ms", 0),
        ("frame_ms", math.inf),
        ("observed", -1),
        ("observed", 8),
        ("stride", 0),
        ("frame_samples", 0),
    ],
)
def test_numbers_beyond_their_limits_are_refused(parameter: str, value: float) -> None:
    with refuses("out_of_range", parameter, f"not {value}"):
        audit.model(lambda x: x, np.ones((1, 8, 3)), **{parameter: value})


@pytest.mark.parametrize(
    ("fn", "values"),
    [
        (lambda x: x[:0], ["the output has 0", "`output_layout`"]),
        (lambda x: 1 / 0, ["ZeroDivisionError: division by zero"]),
    ],
)
def test_what_the_model_raises_is_reported(fn: Any, values: list[str]) -> None:
    with refuses("unsupported", None, *values):
        audit.model(fn, np.ones((1, 8, 3)))


def test_a_file_that_does_not_exist_is_refused_by_name() -> None:
    with refuses("not_found", "fn", "missing.onnx"):
        audit.model("missing.onnx", np.ones((1, 8, 3)))


def test_lengths_for_a_model_that_accepts_none_are_refused() -> None:
    with refuses("invalid", "takes", "nothing", "mask", "`keyword`"):
        audit.model(nn.LSTM(3, 4, batch_first=True), example(), [24, 15])


def test_the_same_seed_gives_the_same_report() -> None:
    model = Net(nn.GroupNorm(1, 3))
    first, second = (audit.model(model, example(), seed=3, at_most=0) for _ in "ab")
    assert audit.render.to_json(first) == audit.render.to_json(second)


def test_assert_lookahead() -> None:
    audit.assert_lookahead(ahead(3), example(), at_most=3)
    with pytest.raises(AssertionError, match=r"at most 2\s+allowed"):
        audit.assert_lookahead(ahead(3), example(), at_most=2)


# Progress, and Ctrl-C


def test_what_begins_is_told_in_order() -> None:
    stages: list[str] = []
    audit.model(ahead(1), example(), progress=stages.append)
    assert stages[0] == "whether equal calls give equal results"
    assert stages.index("rows of a batch") < stages.index("which output depends on which input")


@pytest.mark.parametrize(
    ("stage", "lookahead"), [("rows of a batch", None), ("which operations look ahead", 1)]
)
def test_ctrl_c_leaves_what_is_known(stage: str, lookahead: float | None) -> None:
    def stop(begins: str) -> None:
        if begins == stage:
            raise KeyboardInterrupt

    with pytest.raises(audit.AuditInterrupted) as stopped:
        audit.model(ahead(1), example(), at_most=0, progress=stop)
    report = stopped.value.report
    assert report.verdict == "undecided"
    assert report.lookahead == lookahead
    assert f"interrupted while checking {stage}" in report.findings[-1].message
    assert "whether equal calls give equal results" in report.checked
