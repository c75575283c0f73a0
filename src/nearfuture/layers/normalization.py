"""Normalisation that reads no future: over a frame, over the past, or by fixed statistics.

Shapes: `B` batch, `T` frames, `D` features, `C` channels, `F` bands of a channel, `D = C · F`.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.autograd.function import Function, once_differentiable

from nearfuture.budget import ReceptiveField
from nearfuture.error import NearfutureError
from nearfuture.layers.contract import Framewise, Pointwise, StreamingLayer
from nearfuture.layers.ragged import mask
from nearfuture.layers.state import Device, DType, State, flatten


class LayerNorm(Pointwise):
    """Normalise each frame over its features: `y = (x - E[x]) / √(Var[x] + ε) · γ + β`.

    Ba et al. 2016. It looks at one frame only; a norm over time would read the future.

    Args:
        dim: features in and out.
        eps: ε.

    >>> y, n = LayerNorm(2)(torch.tensor([[[1.0, 3.0]]]), torch.tensor([1]))
    >>> y.flatten().round().tolist()
    [-1.0, 1.0]
    """

    def __init__(self, dim: int, *, eps: float = 1e-5) -> None:
        super().__init__(nn.LayerNorm(dim, eps=eps), dim)


class RMSNorm(Pointwise):
    """Scale each frame to a root mean square of one: `y = x / √(E[x²] + ε) · γ`.

    Zhang and Sennrich 2019, eq. 4. It looks at one frame only.

    Args:
        dim: features in and out.
        eps: ε.

    >>> y, n = RMSNorm(2)(torch.tensor([[[1.0, 7.0]]]), torch.tensor([1]))
    >>> [round(value, 3) for value in y.flatten().tolist()]
    [0.2, 1.4]
    """

    def __init__(self, dim: int, *, eps: float = 1e-6) -> None:
        super().__init__(nn.RMSNorm(dim, eps=eps), dim)


class SequenceBatchNorm(Framewise):
    """Batch normalisation over every valid frame of every row: `(x - μ) / √(σ² + ε) · γ + β`.

    Laurent et al. 2015; Deep Speech 2 (Amodei et al. 2015) §3.2, eq. 10. In training μ and σ² are
    those of the batch, over rows and time, and running averages learn them; padding counts for
    nothing. At inference they are the running averages, so that each frame stands by itself and the
    layer streams.

    Args:
        dim: D, features in and out.
        bands: F, neighbouring features that share their statistics, γ and β: the bands of one
            channel of a `Convolution2d`.
        momentum: weight of a new batch in the running averages, as in torch; they keep the unbiased
            variance.
        eps: ε.

    Attributes:
        shared: whether its batches are parts of one batch that all processes of torch.distributed
            have together: sums and counts are then added up over them, in each forward and backward
            pass, in which all of them have to take part.

    Raises:
        NearfutureError: where the features do not divide into bands; from `step` in train mode,
            since a chunk has other statistics than its sequence.

    >>> layer = SequenceBatchNorm(1)
    >>> x = torch.tensor([[[1.0], [3.0]], [[5.0], [float("nan")]]])
    >>> y, n = layer(x, torch.tensor([2, 1]))
    >>> [round(value, 3) for value in y.flatten().tolist()]
    [-1.225, 0.0, 1.225, 0.0]
    >>> [round(value.item(), 3) for value in (layer.running_mean, layer.running_var)]
    [0.3, 1.3]
    """

    running_mean: Tensor
    running_var: Tensor

    def __init__(
        self, dim: int, *, bands: int = 1, momentum: float = 0.1, eps: float = 1e-5
    ) -> None:
        super().__init__(dim, dim)
        if bands < 1 or dim % bands:
            raise NearfutureError(
                f"{dim} features are no whole number of channels of {bands} bands each",
                parameter="bands",
            )
        channels = dim // bands
        self.bands, self.momentum, self.eps = bands, momentum, eps
        self.shared = False
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.register_buffer("running_mean", torch.zeros(channels))
        self.register_buffer("running_var", torch.ones(channels))

    def reset_parameters(self) -> None:
        """γ = 1, β = 0, and running averages of a standard normal input."""
        for tensor in (self.weight, self.running_var):
            nn.init.ones_(tensor)
        for tensor in (self.bias, self.running_mean):
            nn.init.zeros_(tensor)

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        x = mask(x, lengths)
        scale, shift = self._of_batch(x, lengths) if self.training else self.affine()
        return mask(x * scale + shift, lengths), lengths

    def step(self, x: Tensor, lengths: Tensor, state: State) -> tuple[Tensor, Tensor, State]:
        self.refuse_chunks_in_training()
        return super().step(x, lengths, state)

    def refuse_chunks_in_training(self) -> None:
        """Raise in train mode: a chunk has other statistics than its sequence."""
        if self.training:
            raise NearfutureError(
                "the statistics of a chunk are not those of its sequence: call eval() before "
                "streaming, so that the running averages are used",
                code="unsupported",
            )

    def affine(self) -> tuple[Tensor, Tensor]:
        """The affine map at inference, `y = scale ∘ x + shift`: (D,) and (D,)."""
        return self._affine(self.running_mean, self.running_var)

    def _affine(self, mean: Tensor, var: Tensor) -> tuple[Tensor, Tensor]:
        scale = self.weight * torch.rsqrt(var + self.eps)
        shift = self.bias - mean * scale
        return scale.repeat_interleave(self.bands), shift.repeat_interleave(self.bands)

    def _of_batch(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Scale and shift by the statistics of a batch whose padding is 0; learns them."""
        count, mean, var = self._moments(x, lengths)
        with torch.no_grad():
            unbiased = var * count / (count - 1).clamp(min=1)
            for average, new in ((self.running_mean, mean), (self.running_var, unbiased)):
                # One value has no variance, and one bad batch must not stay in every later output.
                learns = (count > 1) & new.isfinite()
                moved = average.lerp(new.to(average.dtype), self.momentum)
                average.copy_(torch.where(learns, moved, average))
        return self._affine(mean.to(x.dtype), var.to(x.dtype))

    def _moments(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """How many values a channel has, their mean (C,) and their biased variance (C,)."""
        exact = torch.promote_types(x.dtype, torch.float32)  # bfloat16 cannot count to 300
        count = lengths.sum()[None] * self.bands
        channels = self.weight.shape[0]
        values = x.to(exact).reshape(*x.shape[:2], channels, self.bands)
        sums = self._everywhere(torch.cat([values.sum((0, 1, 3)), count.to(exact)]))
        count, divisor = sums[-1], sums[-1].clamp(min=1)
        mean = sums[:-1] / divisor
        distance = mask((values - mean[:, None]).flatten(2), lengths)
        squares = distance.square().sum((0, 1)).reshape(channels, self.bands).sum(1)
        return count, mean, self._everywhere(squares) / divisor

    def _everywhere(self, sums: Tensor) -> Tensor:
        """Sums over all processes that share a batch."""
        if not self.shared:
            return sums
        everywhere: Tensor = _Everywhere.apply(sums)  # type: ignore[no-untyped-call]
        return everywhere


class _Everywhere(Function):
    """`y = Σ x` over all processes; each loss depends on each x, so gradients add up as well."""

    @staticmethod
    def forward(ctx: Any, sums: Tensor) -> Tensor:
        total = sums.clone()
        distributed.all_reduce(total)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        total = gradient.clone()
        distributed.all_reduce(total)
        return total


class CumulativeLayerNorm(StreamingLayer):
    """Normalise each frame over all features of all frames so far (Luo and Mesgarani 2019, cLN).

    `y_t = (x_t - μ_t) / √(σ_t² + ε) · γ + β`, where μ_t and σ_t² are mean and variance of the
    `D · (t + 1)` values of `x_0 … x_t`: what streams in place of a norm over an utterance, which
    would read its future. The state is each row's two sums, in float64 whatever the dtype, and its
    count of frames.

    Args:
        dim: D, features in and out.
        eps: ε.

    >>> x = torch.tensor([[[0.0, 2.0], [4.0, 2.0]]])
    >>> y, n = CumulativeLayerNorm(2)(x, torch.tensor([2]))
    >>> [round(value, 2) for value in y.flatten().tolist()]
    [-1.0, 1.0, 1.41, 0.0]
    """

    def __init__(self, dim: int, *, eps: float = 1e-5) -> None:
        super().__init__()
        self.input_size = self.output_size = dim
        self.field = ReceptiveField(left=float("inf"))
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))

    def reset_parameters(self) -> None:
        """γ = 1, β = 0."""
        nn.init.ones_(self.weight)
        nn.init.zeros_(self.bias)

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        y, n, _ = self.step(x, lengths, self.start(x.shape[0], device=x.device, dtype=x.dtype))
        return y, n

    def start(self, batch_size: int, *, device: Device = None, dtype: DType = None) -> State:
        # They grow for hours, and σ² = E[x²] - μ² cancels where values lie far from 0.
        sums = self.new_zeros(batch_size, 2, device=device, dtype=torch.float64)
        return sums, torch.zeros(batch_size, dtype=torch.int64, device=sums.device)

    def step(self, x: Tensor, lengths: Tensor, state: State) -> tuple[Tensor, Tensor, State]:
        sums, count = flatten(state)
        x = mask(x, lengths)
        exact = x.to(sums.dtype)
        each = torch.stack([exact.sum(-1), exact.square().sum(-1)], dim=-1)
        history = torch.cat([sums[:, None], each], dim=1).cumsum(dim=1)  # padding adds 0
        frames = count[:, None] + 1 + torch.arange(x.shape[1], device=x.device)
        mean, square = (history[:, 1:] / (frames * self.input_size)[..., None]).unbind(-1)
        scale = torch.rsqrt((square - mean.square()).clamp(min=0) + self.eps)
        y = (exact - mean[..., None]) * scale[..., None]
        y = y.to(x.dtype) * self.weight + self.bias
        return mask(y, lengths), lengths, (history[:, -1], count + lengths)

    def finish(self, state: State) -> tuple[Tensor, Tensor]:
        sums, _ = flatten(state)
        return self.no_output(sums.to(self.weight.dtype))
