"""Deep Speech 2's row convolution: a fixed look at the future, channel by channel."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nearfuture.error import NearfutureError
from nearfuture.layers.ragged import align, mask, newest
from nearfuture.layers.state import State, flatten
from nearfuture.layers.validation import validated
from nearfuture.layers.windowed import Windowed


class Lookahead(Windowed):
    """Row convolution (Amodei et al. 2015, Deep Speech 2, eq. 11), for one budget or several.

    `r_{t,i} = Σ_{j=1..τ+1} W_{i,j} h_{t+j-1,i}`: output `t` waits for frame `t + τ` and no longer,
    and channels do not mix. With several budgets, each has weights of its own over the same input:
    `all` computes every one (training), `at(τ)` is the ordinary layer of one.

    Args:
        dim: channels `i`.
        frames: lookahead τ in frames, or several.

    Raises:
        NearfutureError: for a negative or repeated τ, for a τ that the layer does not carry, and
            where a layer of several budgets is run without choosing one.

    >>> layer = Lookahead(1, frames=2)
    >>> layer.weights[0].data = torch.tensor([[1.0, 10.0, 100.0]])
    >>> x = torch.arange(1.0, 6.0).reshape(1, 5, 1)
    >>> layer(x, torch.tensor([5]))[0].flatten().tolist()
    [321.0, 432.0, 543.0, 54.0, 5.0]
    >>> sum(w.numel() for w in Lookahead(2560, frames=19).weights)
    51200

    Evidence may come late. /t/ and /d/ differ by the onset of voicing, here three frames on:

    >>> evidence = torch.tensor([[[5.0, 3], [2, 1], [1, 1], [0, 9]]])  # (for t, for d) per frame
    >>> def recognised(tau):
    ...     layer = Lookahead(2, frames=tau)
    ...     _ = nn.init.ones_(layer.weights[0])
    ...     return "td"[int(layer(evidence, torch.tensor([4]))[0][0, 0].argmax())]
    >>> [recognised(tau) for tau in (0, 1, 2, 3)]
    ['t', 't', 't', 'd']
    """

    def __init__(self, dim: int, frames: int | Sequence[int]) -> None:
        budgets = (frames,) if isinstance(frames, int) else tuple(frames)
        if not budgets or min(budgets) < 0 or len(set(budgets)) < len(budgets):
            raise NearfutureError(
                f"`frames` must be one or several different numbers of frames from 0, not {frames}",
                code="out_of_range",
                parameter="frames",
            )
        super().__init__(dim, dim, right=max(budgets))
        self.frames = budgets
        self.weights = nn.ParameterList([torch.empty(dim, tau + 1) for tau in budgets])
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """The current frame passes unchanged and the future starts small: almost causal."""
        for weight in self.weights:
            nn.init.normal_(weight, std=0.5 / weight.shape[1])
            with torch.no_grad():
                weight[:, 0] += 1.0

    def at(self, tau: int) -> Lookahead:
        """The layer of one budget, sharing its weights with this one."""
        if tau not in self.frames:
            raise NearfutureError(
                f"this layer carries a lookahead of {', '.join(map(str, self.frames))} frames, "
                f"not {tau}",
                code="not_found",
                parameter="tau",
            )
        with torch.random.fork_rng(devices=()):  # its own weights are thrown away
            layer = Lookahead(self.input_size, tau)
        layer.weights = nn.ParameterList([self.weights[self.frames.index(tau)]])
        return layer

    @validated
    def all(self, x: Tensor, lengths: Tensor) -> list[Tensor]:
        """Every budget's output over whole sequences: a (B, T, D) for each τ in `frames`."""
        x = mask(x, lengths)
        return [
            mask(_row_convolution(F.pad(x, (0, 0, 0, tau)), weight), lengths)
            for tau, weight in zip(self.frames, self.weights, strict=True)
        ]

    @validated
    def step_all(
        self, x: Tensor, lengths: Tensor, state: State
    ) -> tuple[list[tuple[Tensor, Tensor]], State]:
        """`step` for every budget over one shared buffer: a (y, y_lengths) for each τ."""
        frames, before = flatten(state)
        frames = torch.cat([frames, mask(x, lengths)], dim=1)
        count = before + lengths
        outputs = []
        for tau, weight in zip(self.frames, self.weights, strict=True):
            # The buffer keeps the last max(τ) frames; this budget has read all but its last τ.
            waiting = before.clamp(max=tau)
            emitted = (waiting + lengths - tau).clamp(min=0)
            ahead = frames[:, self.right - tau :]
            if x.shape[1] > 1:  # one frame completes a window only where τ frames wait
                ahead = align(ahead, tau - waiting)
            outputs.append((mask(_row_convolution(ahead, weight), emitted), emitted))
        return outputs, (newest(frames, lengths, self.right), count.clamp(max=self.right))

    def finish_all(self, state: State) -> list[tuple[Tensor, Tensor]]:
        """`finish` for every budget: each τ's tail of at most τ frames."""
        frames, count = flatten(state)
        tails = []
        for tau, weight in zip(self.frames, self.weights, strict=True):
            emitted = count.clamp(max=tau)
            padded = F.pad(frames[:, self.right - tau :], (0, 0, 0, tau))
            waiting = align(padded, tau - emitted)
            tails.append((mask(_row_convolution(waiting, weight), emitted), emitted))
        return tails

    def slide(self, frames: Tensor) -> Tensor:
        if len(self.frames) > 1:
            raise NearfutureError(
                f"this lookahead carries {len(self.frames)} budgets {self.frames}: choose one with "
                f"at(τ), or compute them together with all(x, lengths)"
            )
        return _row_convolution(frames, self.weights[0])


def _row_convolution(frames: Tensor, weight: Tensor) -> Tensor:
    """(B, N, D) and (D, τ+1) → (B, N - τ, D)."""
    taps = weight.shape[1]
    outputs = frames.shape[1] - taps + 1
    if outputs == 1:
        return _pairwise_sum(frames * weight.t())
    if outputs < 1:
        return frames[:, :0]
    kernel = weight[:, None]
    return F.conv1d(frames.transpose(1, 2), kernel, groups=frames.shape[2]).transpose(1, 2)


def _pairwise_sum(x: Tensor) -> Tensor:
    """Sum over frames, (B, N, D) → (B, 1, D), as additions whose order no runtime rearranges.

    ONNX Runtime orders the additions of a ReduceSum by the shape of its input, so that a row's bits
    would depend on the batch; two numbers have only one sum.
    """
    while x.shape[1] > 1:
        half = x.shape[1] // 2
        pairs = x[:, : 2 * half].reshape(x.shape[0], 2, half, x.shape[2]).sum(dim=1)
        x = torch.cat([pairs, x[:, 2 * half :]], dim=1)
    return x
