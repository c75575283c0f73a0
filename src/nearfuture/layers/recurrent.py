"""The base of all recurrent layers: the projection of their input, chunks, state, batch norm.

Shapes: `B` batch, `T` frames, `D` features in, `H` hidden, `G` gates.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nearfuture.budget import ReceptiveField
from nearfuture.error import NearfutureError
from nearfuture.layers.contract import StreamingLayer
from nearfuture.layers.normalization import SequenceBatchNorm
from nearfuture.layers.ragged import mask
from nearfuture.layers.state import Device, DType, State, flatten

_KERNEL_FROM_FRAMES = 4
"""Chunks at least this long go through the whole-sequence kernel where it can carry the state."""


class Recurrent(StreamingLayer):
    """One unidirectional recurrent layer over input that was projected once for all frames.

    A subclass defines `cell`, one step over pre-projected input; `run`, all steps over it; and
    `sequence`, all steps of the input itself. Weights carry torch's names, shapes and gate order,
    without the `_l0` suffix.

    Args:
        input_size: D, features in.
        hidden_size: H, width of the state; not a number of words remembered.
        bias: carry `bias_ih` and `bias_hh`, two vectors as in torch.
        batch_norm: `f(B(W x_t) + U h_{t-1})` instead (Laurent et al. 2015; Deep Speech 2 §3.2,
            eq. 9): the input projection is normalised over all valid frames of a batch, and the
            norm's β is the only bias.

    Raises:
        NearfutureError: for a batch norm without a bias.
    """

    gates: ClassVar[int]

    def __init__(
        self, input_size: int, hidden_size: int, *, bias: bool = True, batch_norm: bool = False
    ) -> None:
        super().__init__()
        if batch_norm and not bias:
            raise NearfutureError(
                "`batch_norm=True` replaces the two biases by its own shift: `bias=False` would "
                "have no effect; leave it out",
                code="conflict",
                parameter="bias",
            )
        self.input_size = input_size
        self.output_size = hidden_size
        self.field = ReceptiveField(left=float("inf"))
        width = self.gates * hidden_size
        biases = bias and not batch_norm
        self.weight_ih = nn.Parameter(torch.empty(width, input_size))
        self.weight_hh = nn.Parameter(torch.empty(width, hidden_size))
        self.bias_ih = nn.Parameter(torch.empty(width)) if biases else None
        self.bias_hh = nn.Parameter(torch.empty(width)) if biases else None
        self.norm = SequenceBatchNorm(width) if batch_norm else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform within ±1/√H, as in torch; a norm as its own `reset_parameters` has it."""
        bound = self.output_size**-0.5
        for parameter in self.parameters(recurse=False):
            nn.init.uniform_(parameter, -bound, bound)
        if self.norm is not None:
            self.norm.reset_parameters()

    @abstractmethod
    def cell(self, projected: Tensor, state: State) -> tuple[Tensor, State]:
        """One frame: `W x + b` (B, G·H) and the state → h (B, H) and the state."""

    @abstractmethod
    def run(self, projected: Tensor, state: State) -> Tensor:
        """All frames of `project`'s (B, T, G·H) → every h (B, T, H)."""

    @abstractmethod
    def sequence(self, x: Tensor, state: State) -> tuple[Tensor, State | None]:
        """All frames of (B, T, D) → every h (B, T, H), and the last state."""

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        x = mask(x, lengths)
        if x.shape[1] == 0:
            return x.new_zeros(x.shape[0], 0, self.output_size), lengths
        start = self.start(x.shape[0], device=x.device, dtype=x.dtype)
        if self.training and (self.norm is not None or self._own_kernel(x)):
            return mask(self.run(self.project(x, lengths), start), lengths), lengths
        return mask(self.sequence(x, start)[0], lengths), lengths

    def _own_kernel(self, x: Tensor) -> bool:
        """Whether to train through `recurrence`: torch's kernels for CPUs are slower there.

        They multiply and add up the gradient of `U` frame by frame.
        """
        return x.device.type == "cpu" and not torch.is_autocast_enabled("cpu")

    def project(self, x: Tensor, lengths: Tensor) -> Tensor:
        """`W x + b_ih`, or `B(W x)`: (B, T, D) → (B, T, G·H), one matrix product for all frames."""
        projected = F.linear(x, self.weight_ih, self.bias_ih)
        return projected if self.norm is None else self.norm(projected, lengths)[0]

    def folded(self) -> Recurrent:
        """Fold the batch norm into the layer, for inference: `W' = scale ∘ W`, `b' = shift`.

        >>> from nearfuture.layers import GRU
        >>> layer = GRU(2, 3, batch_norm=True).eval()
        >>> x, n = torch.randn(1, 4, 2), torch.tensor([4])
        >>> torch.allclose(layer.folded()(x, n)[0], layer(x, n)[0], atol=1e-6)
        True
        """
        if self.norm is None:
            return self
        weight, _, bias_ih, bias_hh = self._weights()
        plain = copy.deepcopy(self)
        plain.norm = None
        plain.weight_ih = nn.Parameter(weight.detach())
        plain.bias_ih = nn.Parameter(bias_ih.detach())
        plain.bias_hh = nn.Parameter(bias_hh.detach())
        return plain

    def start(self, batch_size: int, *, device: Device = None, dtype: DType = None) -> State:
        return self.new_zeros(batch_size, self.output_size, device=device, dtype=dtype)

    def step(self, x: Tensor, lengths: Tensor, state: State) -> tuple[Tensor, Tensor, State]:
        if self.norm is not None:
            self.norm.refuse_chunks_in_training()
        x = mask(x, lengths)
        if x.shape[1] >= _KERNEL_FROM_FRAMES and not torch.compiler.is_exporting():
            y, last = self.sequence(x, state)
            after = self._state_after(y, lengths, state, last)
            if after is not None:
                return mask(y, lengths), lengths, after
        projected = self.project(x, lengths)
        outputs = []
        for t in range(x.shape[1]):
            h, moved = self.cell(projected[:, t], state)
            state = _hold(t < lengths, moved, state)
            outputs.append(h)
        if not outputs:
            return x.new_zeros(x.shape[0], 0, self.output_size), lengths, state
        return mask(torch.stack(outputs, dim=1), lengths), lengths, state

    def _state_after(
        self, y: Tensor, lengths: Tensor, before: State, last: State | None
    ) -> State | None:
        """Each row's state after its own last frame; None where the kernel does not return it."""
        assert isinstance(before, Tensor)
        history = torch.cat([before[:, None], y], dim=1)
        index = lengths[:, None, None].expand(-1, 1, y.shape[2])
        return history.gather(1, index)[:, 0]

    def finish(self, state: State) -> tuple[Tensor, Tensor]:
        return self.no_output(flatten(state)[0])

    def _weights(self) -> list[Tensor]:
        """The weights for torch's kernels; the batch norm at inference is folded in."""
        if self.norm is not None:
            scale, shift = self.norm.affine()
            return [scale[:, None] * self.weight_ih, self.weight_hh, shift, torch.zeros_like(shift)]
        weights: list[Tensor] = [self.weight_ih, self.weight_hh]
        if self.bias_ih is not None and self.bias_hh is not None:
            weights += [self.bias_ih, self.bias_hh]
        return weights


def _hold(active: Tensor, moved: State, state: State) -> State:
    """The new state for rows that have this frame, the old one for those that do not."""
    if isinstance(moved, Tensor):
        assert isinstance(state, Tensor)
        return torch.where(active[:, None], moved, state)
    return tuple(_hold(active, m, s) for m, s in zip(moved, state, strict=True))
