"""Self-attention: its state, its masks, positions after a million frames, torch's modules."""

import copy
import math
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from nearfuture import laws
from nearfuture.error import NearfutureError, NotStreamable
from nearfuture.layers import (
    GRU,
    AttentionMask,
    CausalMask,
    ChunkedMask,
    ConformerBlock,
    DynamicChunks,
    FullMask,
    LayerNorm,
    RelativePositions,
    RotaryPositions,
    SelfAttention,
    Serial,
    SlidingMask,
    StreamingLayer,
    TransformerBlock,
    from_torch,
    with_mask,
)
from nearfuture.layers.state import flatten
from tests.documents import run_python
from tests.errors import refuses


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


def in_chunks(layer: StreamingLayer, x: Tensor, size: int) -> Tensor:
    """The outputs of one row, fed `size` frames at a time."""
    state = layer.start(1, dtype=x.dtype)
    pieces = []
    for chunk in x.split(size, dim=1):
        y, n, state = layer.step(chunk, torch.tensor([chunk.shape[1]]), state)
        pieces.append(y[:, : int(n)])
    y, n = layer.finish(state)
    return torch.cat([*pieces, y[:, : int(n)]], dim=1)


MASKS = [
    SlidingMask(left=0),
    SlidingMask(left=5),
    SlidingMask(left=3, right=2),
    ChunkedMask(chunk=1, left_chunks=4),
    ChunkedMask(chunk=4, left_chunks=0),
    ChunkedMask(chunk=4, left_chunks=2),
    ChunkedMask(chunk=3, left_chunks=1, right=5),
]


@pytest.mark.parametrize("mask", MASKS, ids=str)
@torch.no_grad()
def test_the_state_is_just_large_enough_for_every_chunk(mask: AttentionMask) -> None:
    """Chunks of one frame, up to three times the window, and all at once."""
    layer = SelfAttention(4, 2, mask=mask, positions=RotaryPositions()).double()
    window = int(mask.field.left) + mask.field.block - 1 + int(mask.field.right)
    _, _, keys, values, _ = flatten(layer.start(1))
    assert keys.shape[1] == values.shape[1] == window
    frames = 3 * window + 7
    x = torch.randn(1, frames, 4, dtype=torch.float64)
    expected, _ = layer(x, torch.tensor([frames]))
    for size in (*range(1, window + 4), 2 * window + 3, frames):
        torch.testing.assert_close(in_chunks(layer, x, size), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("mask", MASKS, ids=str)
def test_the_matrix_is_that_of_the_mask(mask: AttentionMask) -> None:
    t = torch.arange(14)
    layer = SelfAttention(4, 2, mask=mask)
    matrix = laws.dependency_matrix(layer, 14, initialisations=1)
    assert torch.equal(matrix, mask.allows(t[:, None], t))


def test_a_chunk_sees_itself_its_left_chunks_and_its_right_context() -> None:
    t = torch.arange(8)
    allowed = ChunkedMask(chunk=2, left_chunks=1, right=1).allows(t[:, None], t)
    assert ["".join(".x"[int(seen)] for seen in row) for row in allowed] == [
        "xxx.....",
        "xxx.....",
        "xxxxx...",
        "xxxxx...",
        "..xxxxx.",
        "..xxxxx.",
        "....xxxx",
        "....xxxx",
    ]


@pytest.mark.parametrize("positions", [RotaryPositions(), RelativePositions(distance=4)], ids=str)
@torch.no_grad()
def test_a_million_frames_later_nothing_is_less_exact(
    positions: RotaryPositions | RelativePositions,
) -> None:
    """In float32, where the angle of frame 10^6 itself would be off by 0.06.

    Where a step with the same frames leaves the state as it was, bit for bit, a million of them do.
    """
    layer = SelfAttention(4, 2, mask=SlidingMask(left=6, right=1), positions=positions)
    x, n = torch.randn(1, 20, 4), torch.tensor([20])
    _, _, before = layer.step(x, n, layer.start(1))
    y, _, after = layer.step(x, n, before)
    assert all(map(torch.equal, flatten(after), flatten(before)))
    exact, _ = layer.double()(torch.cat([x, x], dim=1).double(), 2 * n)
    torch.testing.assert_close(y.double(), exact[:, 19:39], rtol=0, atol=1e-6)


@torch.no_grad()
def test_positions_tell_an_order_and_only_distances_matter() -> None:
    x = torch.randn(1, 6, 4, dtype=torch.float64)
    n = torch.tensor([6])
    turned = x.flip(1)
    for positions, ordered in ((None, False), (RotaryPositions(), True)):
        layer = SelfAttention(4, 2, mask=FullMask(), positions=positions).double()
        same = torch.allclose(layer(x, n)[0], layer(turned, n)[0].flip(1), atol=1e-12)
        assert same is not ordered
    # Silence before the window moves it to other places, not to other distances.
    layer = SelfAttention(4, 2, mask=SlidingMask(left=2), positions=RotaryPositions()).double()
    later = torch.cat([torch.randn(1, 5, 4, dtype=torch.float64), x], dim=1)
    moved = layer(later, torch.tensor([11]))[0][:, 7:]
    torch.testing.assert_close(moved, layer(x, n)[0][:, 2:], rtol=0, atol=1e-12)


@torch.no_grad()
def test_long_sequences_are_computed_in_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    mask = ChunkedMask(chunk=3, left_chunks=2, right=2)
    layer = SelfAttention(4, 2, mask=mask, positions=RotaryPositions()).double()
    x, n = torch.randn(2, 50, 4, dtype=torch.float64), torch.tensor([50, 23])
    expected, _ = layer(x, n)
    monkeypatch.setattr("nearfuture.layers.attention.self_attention._SEGMENT", 4)
    assert len(layer._segments(x)) == 9
    torch.testing.assert_close(layer(x, n)[0], expected, rtol=0, atol=1e-12)


def test_a_key_of_nan_reaches_those_who_may_see_it_alone() -> None:
    layer = SelfAttention(4, 2, mask=SlidingMask(left=1))
    x = torch.zeros(1, 5, 4)
    x[0, 2] = math.nan
    y, _ = layer(x, torch.tensor([5]))
    assert y[0].isnan().any(-1).tolist() == [False, False, True, True, False]


@pytest.mark.parametrize("mask", [FullMask(), SlidingMask(left=2)], ids=str)
def test_rows_without_a_frame_have_no_nan_in_their_gradients(mask: AttentionMask) -> None:
    layer = SelfAttention(4, 2, mask=mask)
    x = torch.full((2, 3, 4), math.nan, requires_grad=True)
    y, n = layer(x, torch.tensor([0, 0]))
    y.sum().backward()
    assert not y.any()
    assert n.tolist() == [0, 0]
    assert all(bool(p.grad.isfinite().all()) for p in layer.parameters() if p.grad is not None)


@pytest.mark.parametrize(
    ("mask", "says"),
    [
        (FullMask(), "its first output needs the whole sequence. Use ChunkedMask or SlidingMask"),
        (CausalMask(), "every frame of the past would have to be kept"),
        (ChunkedMask(chunk=4, left_chunks=math.inf), "the state of a stream is bounded"),
    ],
)
def test_a_mask_without_bound_does_not_stream_and_says_what_does(
    mask: AttentionMask, says: str
) -> None:
    layer = SelfAttention(4, 2, mask=mask)
    with pytest.raises(NotStreamable) as caught:
        layer.start(1)
    assert says in str(caught.value)
    x = torch.zeros(1, 2, 4)
    assert layer(x, torch.tensor([2]))[1].tolist() == [2]


def test_one_set_of_weights_has_many_masks() -> None:
    masks = [ChunkedMask(chunk=c, left_chunks=1) for c in (4, 1, 8)]
    attention = SelfAttention(4, 2, mask=FullMask())
    block = TransformerBlock(attention, hidden=4)
    dynamic = DynamicChunks(Serial(block, LayerNorm(4)), masks)
    assert [dynamic.at(mask).field.block for mask in masks] == [1, 1, 1]  # compositions
    assert [dynamic.at(mask).field.emitted(9) for mask in masks] == [8, 9, 8]
    parameters = {id(p) for p in dynamic.parameters()}
    assert {id(p) for p in dynamic.at(masks[2]).parameters()} == parameters
    assert attention.mask == FullMask()
    assert set(dynamic.state_dict()) == {f"layer.{name}" for name in dynamic.layer.state_dict()}


@torch.no_grad()
def test_training_draws_a_mask_for_all_layers_and_evaluation_takes_the_first() -> None:
    masks = [SlidingMask(left=2), FullMask(), CausalMask()]
    block = Serial(*(SelfAttention(4, 2, mask=masks[0]) for _ in range(2)))
    dynamic = DynamicChunks(block, masks)
    x, n = torch.randn(1, 9, 4), torch.tensor([9])
    of_masks = [dynamic.at(mask)(x, n)[0] for mask in masks]
    drawn = [dynamic.train()(x, n)[0] for _ in range(40)]
    which = [[torch.equal(y, expected) for expected in of_masks] for y in drawn]
    assert all(sum(row) == 1 for row in which)  # never a mixture
    assert all(any(row[i] for row in which) for i in range(3))
    assert torch.equal(dynamic.eval()(x, n)[0], of_masks[0])


@pytest.mark.parametrize("norm", ["layer", "batch"])
@pytest.mark.parametrize("training", [True, False])
def test_a_conformer_masks_before_its_convolution(norm: str, training: bool) -> None:
    """Biases would otherwise turn padding into frames that the convolution reads."""
    attention = SelfAttention(4, 2, mask=SlidingMask(left=3))
    block = ConformerBlock(attention, left=2, right=2, norm=norm).double().train(training)
    with torch.no_grad():
        for parameter in block.parameters():
            parameter.uniform_(0.5, 1.5)
    x = torch.randn(2, 9, 4, dtype=torch.float64)
    alone = copy.deepcopy(block)(x[:, :5], torch.tensor([5, 5]))[0]
    beside = block(torch.cat([x[:, :5], x[:, 5:] * math.nan], dim=1), torch.tensor([5, 5]))[0]
    torch.testing.assert_close(beside[:, :5], alone, rtol=0, atol=1e-10)
    assert not beside[:, 5:].any()


@pytest.mark.parametrize("bias", [True, False])
@torch.no_grad()
def test_attention_of_torch_gives_the_same(bias: bool) -> None:
    theirs = nn.MultiheadAttention(6, 3, bias=bias, batch_first=True).double().eval()
    for parameter in theirs.parameters():
        parameter.uniform_(-1, 1)
    x, n = torch.randn(2, 9, 6, dtype=torch.float64), torch.tensor([9, 4])
    padding = torch.arange(9) >= n[:, None]
    t = torch.arange(9)
    for mask in (FullMask(), CausalMask(), ChunkedMask(chunk=4, left_chunks=1, right=1)):
        hidden = ~mask.allows(t[:, None], t)
        y, _ = theirs(x, x, x, attn_mask=hidden, key_padding_mask=padding)
        ours, _ = from_torch(theirs, mask=mask)(x, n)
        torch.testing.assert_close(ours[~padding], y[~padding], rtol=0, atol=1e-12)


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu", nn.SiLU()], ids=str)
@torch.no_grad()
def test_an_encoder_layer_of_torch_gives_the_same(
    norm_first: bool, activation: str | nn.Module
) -> None:
    theirs = nn.TransformerEncoderLayer(
        6, 2, 10, dropout=0.0, activation=activation, norm_first=norm_first, batch_first=True
    )
    x, n = torch.randn(2, 9, 6), torch.tensor([9, 4])
    t = torch.arange(9)
    mask = SlidingMask(left=3)
    padding = t >= n[:, None]
    y = theirs(x, src_mask=~mask.allows(t[:, None], t), src_key_padding_mask=padding)
    ours = from_torch(theirs, mask=mask)
    torch.testing.assert_close(ours(x, n)[0][~padding], y[~padding], rtol=0, atol=1e-6)
    one = x[:1]
    torch.testing.assert_close(in_chunks(ours, one, 4), ours(one, n[:1])[0], rtol=0, atol=1e-6)


def test_dropout_of_an_encoder_layer_is_carried_over_but_that_of_its_weights() -> None:
    theirs = nn.TransformerEncoderLayer(6, 2, 10, dropout=0.25)
    with refuses("unsupported", "module", "dropout=0.25", "to 0.0"):
        from_torch(theirs)
    theirs.self_attn.dropout = 0.0
    shares = [m.p for m in from_torch(theirs).modules() if isinstance(m, nn.Dropout)]
    assert shares == [0.25, 0.25]


@pytest.mark.parametrize(
    ("make", "code", "parameter", "value"),
    [
        (lambda: SelfAttention(4, 3, mask=FullMask()), "invalid", "heads", "3"),
        (lambda: SelfAttention(4, 0, mask=FullMask()), "invalid", "heads", "0"),
        (
            lambda: SelfAttention(6, 2, mask=FullMask(), positions=RotaryPositions()),
            "invalid",
            "positions",
            "a head has 3",
        ),
        (lambda: SelfAttention(4, 2, mask="causal"), "invalid", "mask", "'causal'"),
        (lambda: _attention().at(FullMask), "invalid", "mask", "FullMask"),
        (
            lambda: SelfAttention(4, 2, mask=FullMask(), positions="rotary"),
            "invalid",
            "positions",
            "'rotary'",
        ),
        (lambda: SlidingMask(left=-1), "out_of_range", "left", "-1"),
        (lambda: SlidingMask(left=math.inf), "out_of_range", "left", "CausalMask"),
        (lambda: SlidingMask(left=1, right=0.5), "out_of_range", "right", "0.5"),
        (lambda: ChunkedMask(chunk=0, left_chunks=1), "out_of_range", "chunk", "0"),
        (lambda: ChunkedMask(chunk=4.0, left_chunks=1), "out_of_range", "chunk", "4.0"),
        (lambda: ChunkedMask(chunk="4", left_chunks=1), "out_of_range", "chunk", "'4'"),
        (lambda: ChunkedMask(chunk=2, left_chunks=1.5), "out_of_range", "left_chunks", "1.5"),
        (lambda: ChunkedMask(chunk=2, left_chunks=-math.inf), "out_of_range", "left_chunks", "inf"),
        (lambda: RotaryPositions(base=1), "out_of_range", "base", "1"),
        (lambda: RotaryPositions(base=math.inf), "out_of_range", "base", "inf"),
        (lambda: RelativePositions(distance=0), "out_of_range", "distance", "0"),
        (lambda: RelativePositions(distance=1.5), "out_of_range", "distance", "1.5"),  # type: ignore[arg-type]
        (lambda: with_mask(GRU(2, 3), FullMask()), "invalid", "layer", "GRU has no SelfAttention"),
        (lambda: DynamicChunks(_attention(), []), "invalid", "masks", "[]"),
        (lambda: DynamicChunks(_attention(), [FullMask()] * 2), "invalid", "masks", "different"),
        (
            lambda: DynamicChunks(_attention(), [FullMask()]).at(CausalMask()),
            "not_found",
            "mask",
            "CausalMask()",
        ),
        (lambda: TransformerBlock(_attention(), hidden=0), "out_of_range", "hidden", "0"),
        (lambda: TransformerBlock(_attention(), dropout=1.0), "out_of_range", "dropout", "1.0"),
        (lambda: ConformerBlock(_attention(), left=1, norm="rms"), "invalid", "norm", "'rms'"),
        (lambda: from_torch(nn.GRU(2, 3), mask=FullMask()), "conflict", "mask", "GRU"),
        (lambda: from_torch(nn.Linear(2, 3)), "unsupported", "module", "nn.MultiheadAttention"),
        (
            lambda: from_torch(nn.MultiheadAttention(4, 2, kdim=3)),
            "unsupported",
            "module",
            "`kdim`",
        ),
        (
            lambda: from_torch(nn.MultiheadAttention(4, 2, add_bias_kv=True)),
            "unsupported",
            "module",
            "`add_bias_kv`",
        ),
        (
            lambda: from_torch(
                nn.TransformerEncoderLayer(4, 2, dropout=0.0, activation=torch.sigmoid)
            ),
            "unsupported",
            "module",
            "nn.SiLU()",
        ),
    ],
)
def test_what_cannot_be_is_refused(make: object, code: str, parameter: str, value: str) -> None:
    with refuses(code, parameter, value):
        make()


def _attention() -> SelfAttention:
    return SelfAttention(4, 2, mask=FullMask())


def test_the_error_that_a_stream_cannot_be_names_the_layer() -> None:
    with pytest.raises(
        NearfutureError, match=r"SelfAttention\(4, heads=2, mask=FullMask\(\)\) can"
    ):
        TransformerBlock(_attention()).start(1)


def test_the_page_about_attention_shows_what_runs() -> None:
    page = Path(__file__).parents[2] / "docs" / "attention.md"
    assert len(run_python(page.read_text(encoding="utf-8"), page.name)) == 6
