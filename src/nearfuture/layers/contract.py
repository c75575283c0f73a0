"""The contract of every layer: one currency, `(x, lengths)`, online and offline.

`x` is `(B, T, D)`, left-aligned; `lengths` is `(B,)` int64; every value past a row's length is
exactly 0 in every output, whatever it was in the input. A chunk is just a short batch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from nearfuture.budget import ReceptiveField
from nearfuture.layers.ragged import mask
from nearfuture.layers.state import Device, DType, State
from nearfuture.layers.validation import validated


class StreamingLayer(nn.Module, ABC):
    """A layer of a declared receptive field, with the same outputs whole and in chunks.

    `field` declares what an output looks at; the laws prove it. `forward` reads whole sequences;
    `start`, `step` and `finish` read the same sequences in chunks of any size and return the same
    outputs, each as soon as it is final. The caller never pads, buffers, crops or guesses a tail.

    `forward` and `step` check their arguments and name the row that is wrong: see
    `nearfuture.layers.validation`.

    >>> from nearfuture.layers import Lookahead
    >>> layer = Lookahead(1, frames=2)
    >>> state = layer.start(1)
    >>> y, n, state = layer.step(torch.ones(1, 5, 1), torch.tensor([5]), state)
    >>> tail, m = layer.finish(state)
    >>> n.item(), m.item()
    (3, 2)
    """

    field: ReceptiveField
    input_size: int
    output_size: int

    def __init_subclass__(cls, **named: Any) -> None:
        super().__init_subclass__(**named)
        for name in ("forward", "step"):
            if name in cls.__dict__:
                setattr(cls, name, validated(cls.__dict__[name]))

    @abstractmethod
    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Offline: (B, T, D) and (B,) in, (B, T', E) and (B,) out."""

    @abstractmethod
    def start(self, batch_size: int, *, device: Device = None, dtype: DType = None) -> State:
        """The state before the first frame; device and dtype default to the weights'."""

    @abstractmethod
    def step(self, x: Tensor, lengths: Tensor, state: State) -> tuple[Tensor, Tensor, State]:
        """Read a chunk (B, C, D) of `lengths` (B,) frames, 0 included, and emit what is final."""

    @abstractmethod
    def finish(self, state: State) -> tuple[Tensor, Tensor]:
        """Emit the outputs that were waiting for future frames; the state ends here."""

    @property
    def dtype(self) -> DType:
        """The dtype of states, unless `start` is given one: that of the first weight.

        None without weights. A layer whose first weight has another dtype overrides it.
        """
        weight = self._first_weight()
        return None if weight is None else weight.dtype

    def new_zeros(self, *shape: int, device: Device = None, dtype: DType = None) -> Tensor:
        """Zeros of the layer's own dtype and on the device of its weights by default."""
        weight = self._first_weight()
        if device is None and weight is not None:
            device = weight.device
        return torch.zeros(*shape, device=device, dtype=dtype or self.dtype)

    def no_output(self, state: Tensor) -> tuple[Tensor, Tensor]:
        """Zero frames for each row of a state: (B, 0, E) and (B,)."""
        rows = state.shape[0]
        y = torch.zeros(rows, 0, self.output_size, dtype=state.dtype, device=state.device)
        return y, torch.zeros(rows, dtype=torch.int64, device=state.device)

    def _first_weight(self) -> Tensor | None:
        tensors = (*self.parameters(), *self.buffers())
        return next((tensor for tensor in tensors if tensor.is_floating_point()), None)

    if TYPE_CHECKING:

        def __call__(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]: ...


class Framewise(StreamingLayer):
    """A layer without memory: a subclass defines `forward`, one output for each frame."""

    def __init__(self, input_size: int, output_size: int) -> None:
        super().__init__()
        self.input_size = input_size
        self.output_size = output_size
        self.field = ReceptiveField()

    def start(self, batch_size: int, *, device: Device = None, dtype: DType = None) -> State:
        return self.new_zeros(batch_size, 0, self.input_size, device=device, dtype=dtype)

    def step(self, x: Tensor, lengths: Tensor, state: State) -> tuple[Tensor, Tensor, State]:
        return *self(x, lengths), state

    def finish(self, state: State) -> tuple[Tensor, Tensor]:
        assert isinstance(state, Tensor)
        return self.no_output(state)


class Pointwise(Framewise):
    """Any module that treats each frame by itself: `y[b, t] = module(x[b, t])`.

    Args:
        module: maps (B, T, input_size) to (B, T, output_size), frame by frame, which the laws
            test.
        input_size: features in.
        output_size: features out; `input_size` by default.

    >>> layer = Pointwise(nn.Linear(4, 2), 4, 2)
    >>> y, n = layer(torch.zeros(1, 3, 4), torch.tensor([3]))
    >>> tuple(y.shape), layer.field.right
    ((1, 3, 2), 0)
    """

    def __init__(self, module: nn.Module, input_size: int, output_size: int | None = None) -> None:
        super().__init__(input_size, input_size if output_size is None else output_size)
        self.module = module

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        return mask(self.module(mask(x, lengths)), lengths), lengths
