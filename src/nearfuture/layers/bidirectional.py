"""Two recurrent layers side by side, one of which reads backwards."""

from __future__ import annotations

import copy
from typing import Any, Literal, NoReturn

import torch
from torch import Tensor, nn

from nearfuture.budget import ReceptiveField
from nearfuture.error import NearfutureError, NotStreamable
from nearfuture.layers.contract import StreamingLayer
from nearfuture.layers.ragged import mask, reverse
from nearfuture.layers.recurrent import Recurrent
from nearfuture.layers.state import Device, DType, State
from nearfuture.layers.validation import validated


class Bidirectional(StreamingLayer):
    """Two independent recurrent layers that meet only where their outputs merge.

    `y_t = f(x_1 … x_t) ⊕ b(x_T … x_t)` (Schuster and Paliwal 1997). Each row is reversed by its own
    length, so the backward direction starts on a row's last frame and never on padding.

    Args:
        layer: the forward direction; the backward one is its twin with weights of its own.
        merge: `concat` keeps both directions apart, (B, T, 2H); `sum` keeps the width, (B, T, H).
        share_input: both directions use the same `W_x` and its bias or batch norm (Deep Speech 2
            §3.1), each its own `U`; `W_x x` is then computed once for both.

    Raises:
        NotStreamable: from `start`, `step` and `finish`.

    >>> from nearfuture.layers import GRU
    >>> layer = Bidirectional(GRU(4, 8), merge="concat")
    >>> y, n = layer(torch.zeros(2, 3, 4), torch.tensor([3, 2]))
    >>> tuple(y.shape), layer.field.right
    ((2, 3, 16), inf)
    """

    def __init__(
        self,
        layer: Recurrent,
        *,
        merge: Literal["concat", "sum"] = "concat",
        share_input: bool = False,
    ) -> None:
        super().__init__()
        if merge not in ("concat", "sum"):
            raise NearfutureError(
                f"`merge` must be concat or sum, not {merge!r}", parameter="merge"
            )
        self.ahead = layer
        self.back = copy.deepcopy(layer)
        self.back.reset_parameters()
        if share_input:
            self._share()
            # What is shared is saved once.
            self.register_state_dict_post_hook(_leave_out_shared)  # type: ignore[no-untyped-call]
            self.register_load_state_dict_pre_hook(_fill_in_shared)  # type: ignore[no-untyped-call]
            # Loading with assign=True gives each direction a parameter of its own.
            self.register_load_state_dict_post_hook(_share_again)  # type: ignore[no-untyped-call]
        self.merge = merge
        self.share_input = share_input
        self.input_size = layer.input_size
        self.output_size = layer.output_size * (2 if merge == "concat" else 1)
        self.field = ReceptiveField(left=float("inf"), right=float("inf"))

    def _share(self) -> None:
        self.back.weight_ih = self.ahead.weight_ih
        self.back.bias_ih = self.ahead.bias_ih
        self.back.norm = self.ahead.norm

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        ahead, back = self.directions(x, lengths)
        back = reverse(back, lengths)
        if self.merge == "sum":
            return ahead + back, lengths
        return torch.cat([ahead, back], dim=-1), lengths

    @validated
    def directions(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Each direction's outputs (B, T, H), in the order in which it reads the frames."""
        if not self.share_input or x.shape[1] == 0:
            return self.ahead(x, lengths)[0], self.back(reverse(x, lengths), lengths)[0]
        projected = self.ahead.project(mask(x, lengths), lengths)
        start = self.ahead.start(x.shape[0], device=x.device, dtype=x.dtype)
        ahead = self.ahead.run(projected, start)
        back = self.back.run(reverse(projected, lengths), start)
        return mask(ahead, lengths), mask(back, lengths)

    def start(self, batch_size: int, *, device: Device = None, dtype: DType = None) -> State:
        self._refuse()

    def step(self, x: Tensor, lengths: Tensor, state: State) -> tuple[Tensor, Tensor, State]:
        self._refuse()

    def finish(self, state: State) -> tuple[Tensor, Tensor]:
        self._refuse()

    def _refuse(self) -> NoReturn:
        cell = type(self.ahead).__name__
        raise NotStreamable(
            f"Bidirectional({cell}({self.input_size}, {self.ahead.output_size})) cannot stream: "
            f"its backward direction starts at the last frame, so its first output needs the whole "
            f"sequence. Use {cell} alone, {cell} followed by Lookahead for a fixed look at the "
            f"future, or forward() on a window that has been observed completely"
        )


def _shared(state: dict[str, Any], prefix: str) -> list[tuple[str, str]]:
    """The names of the shared parameters in the forward direction and in the backward one."""
    own, other = f"{prefix}ahead.", f"{prefix}back."
    parts = ("weight_ih", "bias_ih", "norm.")
    names = [name.removeprefix(own) for name in state if name.startswith(own)]
    return [(own + name, other + name) for name in names if name.startswith(parts)]


def _leave_out_shared(module: nn.Module, state: dict[str, Any], prefix: str, *_: Any) -> None:
    for _own, other in _shared(state, prefix):
        del state[other]


def _fill_in_shared(module: nn.Module, state: dict[str, Any], prefix: str, *_: Any) -> None:
    for own, other in _shared(state, prefix):
        state.setdefault(other, state[own])


def _share_again(module: Bidirectional, _: object) -> None:
    module._share()
