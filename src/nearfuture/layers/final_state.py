"""The final state of recurrent layers, as a many-to-one output layer reads it."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nearfuture.error import NearfutureError
from nearfuture.layers.bidirectional import Bidirectional
from nearfuture.layers.container import Serial
from nearfuture.layers.contract import StreamingLayer
from nearfuture.layers.recurrent import Recurrent
from nearfuture.layers.torch_weights import sharing_torch


def final_state(layer: StreamingLayer | nn.RNNBase, x: Tensor, lengths: Tensor) -> Tensor:
    """Return the state after the whole sequence, in each direction, of the last recurrent layer.

    One direction: the output at each row's last frame. Two: the forward direction's at its last
    frame and the backward one's at the first, which has read everything; merged as the layer
    merges (torch: concatenated, `h_n[-2] ⊕ h_n[-1]`). `outputs[:, -1]` is neither, where rows are
    padded or read both ways. A row of no frames has the initial state, zeros.

    Args:
        layer: a recurrent layer, a `Bidirectional`, a `Serial` that ends in one of them, or a torch
            `nn.RNN`, `nn.GRU` or `nn.LSTM` of any depth, direction and layout.
        x: (B, T, D), or (T, B, D) for a torch module with `batch_first=False`.
        lengths: (B,).

    Returns:
        (B, H), or (B, 2H) for two directions that are concatenated.

    Raises:
        NearfutureError: where the layer does not end in a recurrence.

    >>> from nearfuture.layers import GRU
    >>> x, n = torch.randn(2, 5, 3), torch.tensor([5, 2])
    >>> layer = Bidirectional(GRU(3, 4))
    >>> y, _ = layer(x, n)
    >>> torch.equal(final_state(layer, x, n)[1], torch.cat([y[1, 1, :4], y[1, 0, 4:]]))
    True
    """
    if isinstance(layer, nn.RNNBase):
        batch_first = layer.batch_first
        layer = sharing_torch(layer)
        x = x if batch_first else x.transpose(0, 1)
    while isinstance(layer, Serial):
        *below, last = layer
        if below:
            x, lengths = Serial(*below)(x, lengths)
        layer = last
    if isinstance(layer, Recurrent):
        return _last(layer(x, lengths)[0], lengths)
    if isinstance(layer, Bidirectional):
        both = [_last(y, lengths) for y in layer.directions(x, lengths)]
        return both[0] + both[1] if layer.merge == "sum" else torch.cat(both, dim=-1)
    raise NearfutureError(
        f"{type(layer).__name__} has no final state: it is read from a recurrent layer, a "
        f"Bidirectional, or a Serial that ends in one",
        code="unsupported",
        parameter="layer",
    )


def _last(y: Tensor, lengths: Tensor) -> Tensor:
    """Each row's last valid frame (B, H); zeros for a row that has none."""
    if y.shape[1] == 0:
        return y.new_zeros(y.shape[0], y.shape[2])
    index = (lengths - 1).clamp(min=0)[:, None, None].expand(-1, 1, y.shape[2])
    return y.gather(1, index)[:, 0]
