"""Norms against torch's own and against their equations."""

import math

import pytest
import torch
from torch import Tensor, nn

from nearfuture.error import NearfutureError
from nearfuture.layers import CumulativeLayerNorm, RMSNorm, SequenceBatchNorm

LENGTHS = torch.tensor([7, 3, 0, 5])


def batch(dim: int, *, fill: float = math.nan, dtype: torch.dtype = torch.float64) -> Tensor:
    """(4, 9, dim), far from standard normal, with `fill` past the lengths."""
    torch.manual_seed(1)
    x = 3 * torch.randn(4, 9, dim, dtype=dtype) + torch.arange(dim, dtype=dtype)
    x[torch.arange(9) >= LENGTHS[:, None]] = fill
    return x


def valid(x: Tensor) -> Tensor:
    """The frames of all rows, one after another (N, dim)."""
    return torch.cat([row[:n] for row, n in zip(x, LENGTHS.tolist(), strict=True)])


def randomise(theirs: nn.Module, ours: nn.Module) -> None:
    for (name, p), q in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        nn.init.normal_(p, mean=float(name == "weight"))
        q.data.copy_(p.data)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_batch_norm_is_torchs_over_the_valid_frames(dtype: torch.dtype) -> None:
    ours, theirs = SequenceBatchNorm(5).to(dtype), nn.BatchNorm1d(5).to(dtype)
    randomise(theirs, ours)
    tolerance = {torch.float64: 1e-12, torch.float32: 2e-5}[dtype]
    for training in (True, True, False):
        ours.train(training), theirs.train(training)
        x = batch(5, dtype=dtype).requires_grad_()
        y, n = ours(x, LENGTHS)
        frames = valid(x.detach()).requires_grad_()
        expected = theirs(frames)
        assert torch.equal(n, LENGTHS)
        assert not y[torch.arange(9) >= LENGTHS[:, None]].any()
        got = valid(y)
        torch.testing.assert_close(got, expected, rtol=tolerance, atol=tolerance)
        weights = torch.randn_like(expected)
        found = torch.autograd.grad((got * weights).sum(), [x, *ours.parameters()])
        wanted = torch.autograd.grad((expected * weights).sum(), [frames, *theirs.parameters()])
        assert not found[0][torch.arange(9) >= LENGTHS[:, None]].any()
        for a, b in zip((valid(found[0]), *found[1:]), wanted, strict=True):
            torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)
        for name in ("running_mean", "running_var"):
            a, b = getattr(ours, name), getattr(theirs, name)
            torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)


def test_bands_of_a_channel_share_their_statistics() -> None:
    ours, theirs = SequenceBatchNorm(6, bands=3).double(), nn.BatchNorm2d(2).double()
    randomise(theirs, ours)
    for training in (True, False):
        ours.train(training), theirs.train(training)
        x = batch(6)
        # One "image" of 1 × frames × bands per channel.
        image = valid(x).unflatten(1, (2, 3)).permute(1, 0, 2)[None]
        expected = theirs(image)[0].permute(1, 0, 2).flatten(1)
        torch.testing.assert_close(valid(ours(x, LENGTHS)[0]), expected, rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(ours.running_mean, theirs.running_mean)
        torch.testing.assert_close(ours.running_var, theirs.running_var)
    assert [tuple(p.shape) for p in ours.parameters()] == [(2,), (2,)]


def test_processes_that_share_a_batch_normalise_it_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Another process that has just the same part of the batch: every sum is twice as large.
    monkeypatch.setattr(torch.distributed, "all_reduce", lambda sums: sums.mul_(2))
    alone, shared = (SequenceBatchNorm(6, bands=3).double() for _ in range(2))
    shared.shared = True
    part = batch(6)
    whole = torch.cat([part, part]).requires_grad_()
    part.requires_grad_()
    expected, _ = alone(whole, LENGTHS.repeat(2))
    y, _ = shared(part, LENGTHS)
    torch.testing.assert_close(y, expected[:4], rtol=0, atol=1e-12)
    weights = torch.randn_like(y)
    (expected * weights.repeat(2, 1, 1)).sum().backward()
    (y * weights).sum().backward()
    torch.testing.assert_close(part.grad, whole.grad[:4], rtol=0, atol=1e-12)
    for name in ("running_mean", "running_var"):
        torch.testing.assert_close(getattr(shared, name), getattr(alone, name))
    shared.eval()  # running averages are everybody's: there is nothing to sum
    monkeypatch.setattr(torch.distributed, "all_reduce", lambda sums: pytest.fail("at inference"))
    shared(part, LENGTHS)


def test_gradients_in_train_mode_are_the_true_ones() -> None:
    layer = SequenceBatchNorm(4, bands=2).double()
    x = batch(4, fill=1e3).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: layer(x, LENGTHS)[0], (x,))


@pytest.mark.parametrize("frames", [0, 1])
def test_less_than_two_frames_teach_nothing_and_break_nothing(frames: int) -> None:
    layer = SequenceBatchNorm(3).double()
    before = {name: value.clone() for name, value in layer.state_dict().items()}
    nn.init.normal_(layer.bias)
    x = torch.full((2, 4, 3), math.nan, dtype=torch.float64)
    x[0, :frames] = 5.0
    x.requires_grad_()
    y, _ = layer(x, torch.tensor([frames, 0]))
    torch.testing.assert_close(y[0, :frames], layer.bias.expand(frames, 3))
    assert not y[0, frames:].any()
    assert not y[1].any()
    y.sum().backward()
    assert bool(x.grad.isfinite().all())
    for name in ("running_mean", "running_var"):
        assert torch.equal(getattr(layer, name), before[name])
    y, _ = layer(x[:, :0], torch.tensor([0, 0]))
    assert y.shape == (2, 0, 3)


def test_a_batch_that_is_not_finite_stays_out_of_the_running_averages() -> None:
    layer = SequenceBatchNorm(2)
    x = torch.randn(1, 5, 2)
    x[0, 3, 1] = math.inf
    layer(x, torch.tensor([5]))
    assert bool(layer.running_mean.isfinite().all() & layer.running_var.isfinite().all())
    assert layer.running_mean[0] != 0


def test_a_chunk_in_train_mode_is_refused() -> None:
    layer = SequenceBatchNorm(2)
    x, n = torch.zeros(1, 2, 2), torch.tensor([2])
    with pytest.raises(NearfutureError, match=r"call eval\(\)"):
        layer.step(x, n, layer.start(1))
    layer.eval()
    layer.step(x, n, layer.start(1))


def test_bands_divide_the_features() -> None:
    with pytest.raises(NearfutureError, match="7 features are no whole number of channels of 3"):
        SequenceBatchNorm(7, bands=3)


def test_bfloat16_keeps_count() -> None:
    # 300 ones and 300 threes: a sum in bfloat16 would stop growing.
    x = torch.cat([torch.ones(1, 300, 1), 3 * torch.ones(1, 300, 1)], dim=1)
    layer = SequenceBatchNorm(1).to(torch.bfloat16)
    y, _ = layer(x.to(torch.bfloat16), torch.tensor([600]))
    torch.testing.assert_close(y.float(), x - 2, rtol=0, atol=0.02)


def test_rms_norm_is_torchs() -> None:
    ours, theirs = RMSNorm(5).double(), nn.RMSNorm(5, eps=1e-6).double()
    randomise(theirs, ours)
    x = batch(5)
    torch.testing.assert_close(valid(ours(x, LENGTHS)[0]), theirs(valid(x)))


def test_cumulative_norm_is_a_layer_norm_over_everything_so_far() -> None:
    layer = CumulativeLayerNorm(5).double()
    randomise(nn.LayerNorm(5), layer)
    x = batch(5)
    y, n = layer(x, LENGTHS)
    assert torch.equal(n, LENGTHS)
    for b, frames in enumerate(LENGTHS.tolist()):
        for t in range(frames):
            so_far = nn.functional.layer_norm(x[b, : t + 1], (t + 1, 5))
            expected = so_far[-1] * layer.weight + layer.bias
            torch.testing.assert_close(y[b, t], expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("offset", [10, 100, 1000, -1000])
def test_cumulative_norm_keeps_its_digits_far_from_zero(offset: int) -> None:
    layer = CumulativeLayerNorm(4)
    x = torch.randn(2, 200, 4, generator=torch.Generator().manual_seed(0)) + offset
    n = torch.tensor([200, 150])
    exact = CumulativeLayerNorm(4).double()(x.double(), n)[0]
    y = layer(x, n)[0]
    assert y.dtype == torch.float32
    torch.testing.assert_close(y.double(), exact, rtol=0, atol=2e-6)
    state, pieces = layer.start(2), []
    for begin in range(0, 200, 7):
        chunk = x[:, begin : begin + 7]
        new, _, state = layer.step(chunk, (n - begin).clamp(0, chunk.shape[1]), state)
        pieces.append(new)
    assert torch.equal(torch.cat(pieces, dim=1), y)


def test_the_sums_of_a_cumulative_norm_are_float64_whatever_the_dtype() -> None:
    for dtype in (torch.bfloat16, torch.float32, torch.float64):
        sums, count = CumulativeLayerNorm(4).to(dtype).start(2, dtype=dtype)
        assert (sums.dtype, count.dtype) == (torch.float64, torch.int64)


def test_cumulative_norm_holds_for_an_hour() -> None:
    layer = CumulativeLayerNorm(4)
    x = torch.randn(1, 90_000, 4, generator=torch.Generator().manual_seed(0)) + 3
    n = torch.tensor([90_000])
    exact = CumulativeLayerNorm(4).double()(x.double(), n)[0]
    torch.testing.assert_close(layer(x, n)[0].double(), exact, rtol=0, atol=1e-3)
