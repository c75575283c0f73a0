"""What the literature and FACTS say, measured on the layers."""

import copy

import pytest
import torch
from torch import nn

from nearfuture.budget import recurrent_cost
from nearfuture.layers import (
    GRU,
    LSTM,
    RNN,
    Bidirectional,
    Convolution,
    Lookahead,
    Recurrent,
    Serial,
    StreamingLayer,
    final_state,
    from_torch,
)

cells = pytest.mark.parametrize("cell", [RNN, GRU, LSTM])


def parameters(layer: nn.Module) -> int:
    return sum(p.numel() for p in layer.parameters())


def weights(layer: nn.Module) -> int:
    """Without biases, which the ratios of A13 leave out."""
    return sum(p.numel() for p in layer.parameters() if p.dim() > 1)


def test_a1_the_cell_is_its_equation() -> None:
    layer = RNN(3, 4).double()
    x = torch.randn(1, 5, 3, dtype=torch.float64)
    h = torch.zeros(4, dtype=torch.float64)
    y, _ = layer(x, torch.tensor([5]))
    for t in range(5):
        a = layer.weight_ih @ x[0, t] + layer.weight_hh @ h + layer.bias_ih + layer.bias_hh
        h = torch.tanh(a)
        torch.testing.assert_close(y[0, t], h, rtol=1e-12, atol=1e-12)
    assert layer.weight_ih.shape == (4, 3)
    assert layer.weight_hh.shape == (4, 4)


def test_a2_parameters_do_not_grow_with_time() -> None:
    layer = GRU(3, 4)
    for frames in (1, 10, 100):
        y, _ = layer(torch.zeros(1, frames, 3), torch.tensor([frames]))
        assert y.shape == (1, frames, 4)
    assert parameters(layer) == 3 * 4 * (3 + 4 + 2)


def test_a3_parameter_counts() -> None:
    assert parameters(RNN(4, 8)) == 112
    assert parameters(RNN(4, 8, bias=False)) + 8 == 104
    assert parameters(GRU(4, 8)) == 3 * 112
    assert parameters(LSTM(4, 8)) == 4 * 112


@pytest.mark.parametrize(
    ("layers", "both", "y_shape", "h_shape"),
    [(1, False, (2, 3, 8), (1, 2, 8)), (2, True, (2, 3, 16), (4, 2, 8))],
)
def test_a4_shapes(layers: int, both: bool, y_shape: tuple, h_shape: tuple) -> None:
    theirs = nn.RNN(4, 8, num_layers=layers, bidirectional=both, batch_first=True)
    x = torch.randn(2, 3, 4)
    y, h = theirs(x)
    ours, _ = from_torch(theirs)(x, torch.tensor([3, 3]))
    assert y.shape == ours.shape == y_shape
    assert h.shape == h_shape
    torch.testing.assert_close(ours, y)


def test_a6_the_last_output_is_the_last_state_for_one_direction_only() -> None:
    x, full = torch.randn(2, 5, 3), torch.tensor([5, 5])
    one, both = GRU(3, 4), Bidirectional(GRU(3, 4))
    torch.testing.assert_close(final_state(one, x, full), one(x, full)[0][:, -1])
    y = both(x, full)[0]
    expected = torch.cat([y[:, -1, :4], y[:, 0, 4:]], dim=-1)
    torch.testing.assert_close(final_state(both, x, full), expected)
    assert not torch.allclose(final_state(both, x, full), y[:, -1])


def test_a6_the_summary_of_a_sum_is_a_sum() -> None:
    x, n = torch.randn(2, 5, 3), torch.tensor([5, 2])
    layer = Bidirectional(GRU(3, 4), merge="sum")
    both = Bidirectional(GRU(3, 4))
    both.load_state_dict(layer.state_dict())
    ahead, back = final_state(both, x, n).chunk(2, dim=-1)
    torch.testing.assert_close(final_state(layer, x, n), ahead + back)


def test_a_row_without_frames_has_the_initial_state() -> None:
    x, n = torch.randn(2, 5, 3), torch.tensor([5, 0])
    assert not final_state(Bidirectional(GRU(3, 4)), x, n)[1].any()
    assert not final_state(GRU(3, 4), x[:, :0], torch.tensor([0, 0])).any()


def test_a8_the_directions_never_meet_before_they_merge() -> None:
    x, n = torch.randn(1, 6, 3), torch.tensor([6])
    layer = Bidirectional(GRU(3, 4))
    before = layer(x, n)[0]
    with torch.no_grad():
        for p in layer.back.parameters():
            p.zero_()
    after = layer(x, n)[0]
    assert torch.equal(before[..., :4], after[..., :4])
    assert not after[..., 4:].any()


def test_a11_late_evidence_flips_the_decision_at_three_frames() -> None:
    late = [(5.0, 3.0), (2.0, 1.0), (1.0, 1.0), (0.0, 9.0)]
    assert [heard(late, tau) for tau in range(4)] == ["t", "t", "t", "d"]


def test_a11_more_lookahead_is_not_always_better() -> None:
    scattered = [(5.0, 6.0), (6.0, 1.0), (1.0, 10.0)]
    assert [heard(scattered, tau) for tau in range(3)] == ["d", "t", "d"]


def heard(evidence: list[tuple[float, float]], tau: int) -> str:
    """What a lookahead with weights of one decides at the first frame, where /d/ was said."""
    layer = Lookahead(2, tau)
    nn.init.ones_(layer.weights[0])
    y, _ = layer(torch.tensor([evidence]), torch.tensor([len(evidence)]))
    return "td"[int(y[0, 0].argmax())]


@cells
@pytest.mark.parametrize(("width", "ratio"), [(16, 2.0), (32, 3.0)])
def test_a13_concatenation_doubles_and_then_triples(
    cell: type[Recurrent], width: int, ratio: float
) -> None:
    # The next layer reads 2H; against one direction, which reads H.
    assert weights(Bidirectional(cell(width, 16))) / weights(cell(16, 16)) == ratio


@cells
def test_a13_a_sum_doubles_and_shared_input_weights_make_it_one_and_a_half(
    cell: type[Recurrent],
) -> None:
    assert weights(Bidirectional(cell(16, 16), merge="sum")) / weights(cell(16, 16)) == 2
    shared = Bidirectional(cell(16, 16), merge="sum", share_input=True)
    assert weights(shared) / weights(cell(16, 16)) == 1.5


def test_a13_at_the_width_of_deep_speech_2() -> None:
    with torch.device("meta"):
        one, shared = GRU(160, 2560), Bidirectional(GRU(160, 2560), merge="sum", share_input=True)
    assert weights(shared) / weights(one) == pytest.approx(1.94, abs=0.005)


@cells
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("merge", ["concat", "sum"])
@pytest.mark.parametrize("share", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_the_budget_counts_what_the_layers_have(
    cell: type[Recurrent], both: bool, merge: str, share: bool, bias: bool
) -> None:
    layer: StreamingLayer = cell(5, 7, bias=bias)
    options: dict = {}
    if both:
        layer = Bidirectional(layer, merge=merge, share_input=share)
        options = {"bidirectional": True, "merge": merge, "share_input": share}
    cost = recurrent_cost(cell.__name__.lower(), 5, 7, biases=2 if bias else 0, **options)
    assert parameters(layer) == cost.parameters


def test_a14_shared_input_weights_stay_shared() -> None:
    def shared(layer: Bidirectional) -> bool:
        same = layer.ahead.weight_ih is layer.back.weight_ih
        return same and layer.ahead.bias_ih is layer.back.bias_ih

    layer = Bidirectional(GRU(3, 4), share_input=True)
    assert shared(layer)
    assert layer.ahead.weight_hh is not layer.back.weight_hh
    assert shared(copy.deepcopy(layer))
    other = Bidirectional(GRU(3, 4), share_input=True)
    other.load_state_dict(layer.state_dict())
    assert shared(other)
    x, n = torch.randn(2, 5, 3), torch.tensor([5, 3])
    assert torch.equal(other(x, n)[0], layer(x, n)[0])
    assert shared(layer.to(torch.float64))
    layer(x.double(), n)[0].sum().backward()
    torch.optim.SGD(layer.parameters(), lr=0.1).step()
    assert shared(layer)


def test_a14_separate_input_weights_are_separate() -> None:
    layer = Bidirectional(GRU(3, 4))
    assert not torch.equal(layer.ahead.weight_ih, layer.back.weight_ih)


@pytest.mark.parametrize(("dim", "tau", "count"), [(2560, 19, 51200), (4, 3, 16)])
def test_a18_row_convolution_has_one_weight_per_channel_and_frame(
    dim: int, tau: int, count: int
) -> None:
    assert parameters(Lookahead(dim, tau)) == count


def test_a18_row_convolution_is_its_equation() -> None:
    layer = Lookahead(3, 2).double()
    h = torch.randn(1, 6, 3, dtype=torch.float64)
    y, _ = layer(h, torch.tensor([6]))
    padded = torch.cat([h[0], torch.zeros(2, 3, dtype=torch.float64)])
    for t in range(6):
        r = sum(layer.weights[0][:, j] * padded[t + j] for j in range(3))
        torch.testing.assert_close(y[0, t], r, rtol=1e-12, atol=1e-12)


def test_a24_beside_a_longer_sentence_torch_says_something_else_and_we_do_not() -> None:
    torch.manual_seed(0)
    theirs = nn.GRU(3, 4, bidirectional=True, batch_first=True)
    ours = from_torch(theirs)
    sentence = torch.randn(1, 4, 3)
    beside = torch.zeros(2, 9, 3)
    beside[0, :4], beside[1] = sentence[0], torch.randn(9, 3)
    alone = theirs(sentence)[0][0]
    padded = theirs(beside)[0][0, :4]
    assert torch.allclose(padded[:, :4], alone[:, :4], atol=1e-6)
    assert not torch.allclose(padded[:, 4:], alone[:, 4:], atol=1e-2)
    exact = ours(beside, torch.tensor([4, 9]))[0][0, :4]
    torch.testing.assert_close(exact, alone, rtol=1e-6, atol=1e-6)


def test_a33_padding_spoils_the_last_state_of_one_direction_too() -> None:
    torch.manual_seed(0)
    theirs = nn.GRU(3, 4, batch_first=True)
    sentence = torch.randn(1, 4, 3)
    beside = torch.zeros(1, 9, 3)
    beside[:, :4] = sentence
    alone = theirs(sentence)[1][-1]
    assert not torch.allclose(theirs(beside)[1][-1], alone, atol=1e-2)
    torch.testing.assert_close(final_state(theirs, beside, torch.tensor([4])), alone)


def test_a32_time_first_keeps_the_directions_in_halves() -> None:
    theirs = nn.LSTM(3, 4, bidirectional=True)
    x = torch.randn(5, 2, 3)
    y, (h, c) = theirs(x)
    assert y.shape == (5, 2, 8)
    assert h.shape == c.shape == (2, 2, 4)
    layer = next(iter(from_torch(theirs)))
    n = torch.tensor([5, 5])
    ahead, _ = layer.ahead(x.transpose(0, 1), n)
    torch.testing.assert_close(y[..., :4].transpose(0, 1), ahead)
    torch.testing.assert_close(final_state(theirs, x, n), torch.cat([h[0], h[1]], dim=-1))


def test_clipped_relu_stops_at_twenty() -> None:
    layer = RNN(1, 1, nonlinearity="clipped_relu", bias=False)
    nn.init.ones_(layer.weight_ih)
    nn.init.zeros_(layer.weight_hh)
    x = torch.tensor([-5.0, 5.0, 19.0, 21.0, 1e6]).reshape(1, 5, 1)
    y, _ = layer(x, torch.tensor([5]))
    assert y.flatten().tolist() == [0.0, 5.0, 19.0, 20.0, 20.0]


def test_complete_windows_have_the_lengths_everybody_expects() -> None:
    layer = Serial(*(Convolution(1, 1, right=2, stride=2, padded=False) for _ in range(2)))
    n = torch.tensor([24, 40, 60, 100])
    assert layer(torch.zeros(4, 100, 1), n)[1].tolist() == [5, 9, 14, 24]
