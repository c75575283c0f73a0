"""Training for several masks at once: one of them a batch, drawn anew."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from nearfuture.error import NearfutureError
from nearfuture.layers.attention.mask import AttentionMask
from nearfuture.layers.attention.self_attention import SelfAttention
from nearfuture.layers.container import Residual, Serial
from nearfuture.layers.contract import StreamingLayer
from nearfuture.layers.state import Device, DType, State


def with_mask(layer: StreamingLayer, mask: AttentionMask) -> StreamingLayer:
    """The layer with another mask in every `SelfAttention` inside, sharing all its weights.

    Args:
        layer: a `SelfAttention`, or `Serial`, `Residual` and blocks made of them.
        mask: what a frame looks at.

    Raises:
        NearfutureError: where there is no self-attention to be found.

    >>> from nearfuture.layers import ChunkedMask, CausalMask, LayerNorm
    >>> layer = Serial(LayerNorm(4), SelfAttention(4, heads=2, mask=CausalMask()))
    >>> with_mask(layer, ChunkedMask(chunk=8, left_chunks=1)).field.emitted(9)
    8
    """
    other = _with_mask(layer, mask)
    if other is layer:
        raise NearfutureError(
            f"{type(layer).__name__} has no SelfAttention that could have another mask: with_mask "
            f"looks into Serial, Residual and what is made of them",
            parameter="layer",
        )
    return other


def _with_mask(layer: StreamingLayer, mask: AttentionMask) -> StreamingLayer:
    """The same layer, itself, where nothing changes."""
    if isinstance(layer, SelfAttention):
        return layer.at(mask)
    if isinstance(layer, Residual):
        inner = _with_mask(layer.inner, mask)
        return layer if inner is layer.inner else layer.with_inner(inner)
    if isinstance(layer, Serial):
        parts = [_with_mask(part, mask) for part in layer]
        same = all(new is old for new, old in zip(parts, layer, strict=True))
        return layer if same else layer.with_layers(parts)
    return layer


class DynamicChunks(StreamingLayer):
    """Layers trained for several masks at once (Zhang et al. 2020, U2, arXiv 2012.05481, §2.3).

    In train mode `forward` draws one of the masks for each batch, the same for every self-attention
    inside. In eval mode the layer is that of the first mask, and `at(mask)` is the ordinary layer
    of any: one set of weights, chunks to choose when it runs.

    Args:
        layer: one or more `SelfAttention` in `Serial`, `Residual` and blocks made of them.
        masks: those to draw from; the first also runs and streams, and declares the field.

    Raises:
        NearfutureError: for no mask or one that comes twice, for a layer without self-attention,
            and for a mask that is not carried.

    >>> from nearfuture.layers import ChunkedMask, FullMask
    >>> masks = [ChunkedMask(chunk=c, left_chunks=2) for c in (4, 1, 8)] + [FullMask()]
    >>> layer = DynamicChunks(SelfAttention(4, heads=2, mask=masks[0]), masks)
    >>> layer.field.emitted(9), layer.at(masks[2]).field.emitted(9), layer.at(masks[3]).field.right
    (8, 8, inf)
    """

    def __init__(self, layer: StreamingLayer, masks: Sequence[AttentionMask]) -> None:
        super().__init__()
        if not masks or len(set(masks)) < len(masks):
            raise NearfutureError(
                f"`masks` must be one or several different masks, not {list(masks)}",
                parameter="masks",
            )
        self.masks = tuple(masks)
        self.layer = with_mask(layer, self.masks[0])
        self.input_size, self.output_size = layer.input_size, layer.output_size
        self.field = self.layer.field

    @property
    def dtype(self) -> DType:
        return self.layer.dtype

    def at(self, mask: AttentionMask) -> StreamingLayer:
        """The layers with one mask, sharing their weights with these."""
        if mask not in self.masks:
            raise NearfutureError(
                f"these layers were made for {list(self.masks)}, not for {mask}: with_mask() gives "
                f"them any",
                code="not_found",
                parameter="mask",
            )
        return with_mask(self.layer, mask)

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        if not self.training:
            return self.layer(x, lengths)
        drawn = int(torch.randint(len(self.masks), ()))
        return self.at(self.masks[drawn])(x, lengths)

    def start(self, batch_size: int, *, device: Device = None, dtype: DType = None) -> State:
        return self.layer.start(batch_size, device=device, dtype=dtype)

    def step(self, x: Tensor, lengths: Tensor, state: State) -> tuple[Tensor, Tensor, State]:
        return self.layer.step(x, lengths, state)

    def finish(self, state: State) -> tuple[Tensor, Tensor]:
        return self.layer.finish(state)
