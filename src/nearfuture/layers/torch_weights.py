"""Weights to and from torch's own recurrent modules, and from its convolution and attention."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Literal, TypeAlias, overload

import torch
from torch import nn

from nearfuture.error import NearfutureError
from nearfuture.layers.attention import AttentionMask, FullMask, SelfAttention
from nearfuture.layers.bidirectional import Bidirectional
from nearfuture.layers.cell import GRU, LSTM, RNN
from nearfuture.layers.container import Serial
from nearfuture.layers.contract import StreamingLayer
from nearfuture.layers.convolution import Convolution
from nearfuture.layers.recurrent import Recurrent
from nearfuture.layers.torch_attention import attention_from_torch, encoder_layer_from_torch

_Layers: TypeAlias = Sequence[Recurrent | Bidirectional]

_NAMES = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
_MODULES: dict[type[Recurrent], Callable[..., nn.RNNBase]] = {
    RNN: nn.RNN,
    GRU: nn.GRU,
    LSTM: nn.LSTM,
}


@overload
def from_torch(module: nn.RNNBase) -> Serial: ...


@overload
def from_torch(module: nn.Conv1d) -> Convolution: ...


@overload
def from_torch(
    module: nn.MultiheadAttention, *, mask: AttentionMask | None = None
) -> SelfAttention: ...


@overload
def from_torch(
    module: nn.TransformerEncoderLayer, *, mask: AttentionMask | None = None
) -> Serial: ...


def from_torch(module: nn.Module, *, mask: AttentionMask | None = None) -> StreamingLayer:
    """Convert a recurrent, convolution or attention module of torch; weights are copied.

    `nn.RNN`, `nn.GRU` and `nn.LSTM` may have any depth and direction. The values agree on both
    layouts; ours is always batch-first, so a time-first input is transposed by the caller.

    A `nn.Conv1d` may have any stride, dilation and groups. Without padding it becomes one of
    complete windows; with "same" padding, zeros on both sides of each sequence, one that reads as
    many frames of the future. torch's is channels-first, `(B, C, T)`: the caller transposes.

    A `nn.MultiheadAttention` becomes a `SelfAttention`, a `nn.TransformerEncoderLayer` a `Serial`
    around one, with the mask that torch would be given at each call.

    Args:
        module: of torch, with its weights.
        mask: of attention; `FullMask()` by default, as in torch.

    Raises:
        NearfutureError: for dropout between recurrent layers (put a `Pointwise(nn.Dropout)` there
            instead), for LSTM projections, for a convolution whose padding is neither nothing nor
            "same", nor of zeros, for attention with dropout of its weights or keys of other widths
            or besides the sequence, for a mask where there is no attention, and for other modules.

    >>> theirs = nn.GRU(3, 4, num_layers=2, bidirectional=True, batch_first=True)
    >>> ours = from_torch(theirs)
    >>> x = torch.randn(2, 5, 3)
    >>> torch.allclose(ours(x, torch.tensor([5, 5]))[0], theirs(x)[0], atol=1e-6)
    True
    >>> theirs = nn.Conv1d(3, 6, 3, padding=2, dilation=2, groups=3)
    >>> ours = from_torch(theirs)
    >>> ours.field.left, ours.field.right
    (2, 2)
    >>> y = theirs(x.transpose(1, 2)).transpose(1, 2)
    >>> torch.allclose(ours(x, torch.tensor([5, 5]))[0], y, atol=1e-6)
    True
    >>> from nearfuture.layers import ChunkedMask
    >>> theirs = nn.MultiheadAttention(4, num_heads=2, batch_first=True)
    >>> from_torch(theirs, mask=ChunkedMask(chunk=8, left_chunks=2)).field.left
    16
    """
    if isinstance(module, nn.MultiheadAttention):
        return attention_from_torch(module, mask or FullMask())
    if isinstance(module, nn.TransformerEncoderLayer):
        return encoder_layer_from_torch(module, mask or FullMask())
    if mask is not None:
        raise NearfutureError(
            f"`mask` has no effect on {type(module).__name__}, which has no attention; leave it "
            f"out",
            code="conflict",
            parameter="mask",
        )
    if isinstance(module, nn.Conv1d):
        return _convolution(module)
    if not isinstance(module, nn.RNNBase):
        raise NearfutureError(
            f"{type(module).__name__} has no conversion: nn.RNN, nn.GRU, nn.LSTM, nn.Conv1d, "
            f"nn.MultiheadAttention and nn.TransformerEncoderLayer have; one that treats each "
            f"frame by itself is a layer as Pointwise(module, …)",
            code="unsupported",
            parameter="module",
        )
    layers = _layers(module)
    # The dtype first: copying into narrower weights would round.
    stack = Serial(*layers).to(next(module.parameters()))
    with torch.no_grad():
        for name, cell, attribute in _parameters(layers):
            getattr(cell, attribute).copy_(getattr(module, name))
    return stack


def sharing_torch(module: nn.RNNBase) -> Serial:
    """As `from_torch`, but with the module's own parameters, so that gradients reach them."""
    layers = _layers(module)
    for name, cell, attribute in _parameters(layers):
        setattr(cell, attribute, getattr(module, name))
    return Serial(*layers)


def to_torch(layer: Serial | Recurrent | Bidirectional, *, batch_first: bool = True) -> nn.RNNBase:
    """Convert a recurrent layer, a concatenating `Bidirectional` or a stack of them to torch.

    Raises:
        NearfutureError: for what torch's modules cannot express: summed directions, shared input
            weights, batch norm, clipped ReLU, layers of different kinds or widths.

    >>> type(to_torch(GRU(3, 4))).__name__
    'GRU'
    """
    layers: list[Recurrent | Bidirectional] = []
    for part in layer if isinstance(layer, Serial) else (layer,):
        if not isinstance(part, Recurrent | Bidirectional):
            raise NearfutureError(
                f"torch stacks recurrent layers only, and {type(part).__name__} is not one"
            )
        layers.append(part)
    cells = [part.ahead if isinstance(part, Bidirectional) else part for part in layers]
    first = cells[0]
    both = isinstance(layers[0], Bidirectional)
    if type(first) not in _MODULES:
        raise NearfutureError(f"torch has no module for {type(first).__name__}")
    for part, cell in zip(layers, cells, strict=True):
        if cell.norm is not None:
            raise NearfutureError(
                "torch has no batch norm inside a recurrence: a cell's folded() is the same layer "
                "at inference, without one"
            )
        if type(cell) is not type(first):
            raise NearfutureError("torch stacks layers of one kind: all RNN, all GRU or all LSTM")
        if isinstance(part, Bidirectional) != both or cell.output_size != first.output_size:
            raise NearfutureError("torch stacks layers of one width and one number of directions")
        if isinstance(part, Bidirectional) and (part.merge != "concat" or part.share_input):
            raise NearfutureError(
                "torch concatenates its directions and shares no weights: use "
                "Bidirectional(merge='concat', share_input=False)"
            )
        if (cell.bias_ih is None) != (first.bias_ih is None):
            raise NearfutureError("torch has biases in every layer or in none")
        if getattr(cell, "nonlinearity", None) != getattr(first, "nonlinearity", None):
            raise NearfutureError("torch has one nonlinearity for all layers of an nn.RNN")
    options = {}
    if isinstance(first, RNN):
        if first.nonlinearity == "clipped_relu":
            raise NearfutureError("torch has no clipped ReLU: use nonlinearity='relu'")
        options["nonlinearity"] = first.nonlinearity
    module = _MODULES[type(first)](
        first.input_size,
        first.output_size,
        num_layers=len(layers),
        bias=first.bias_ih is not None,
        batch_first=batch_first,
        bidirectional=both,
        device=first.weight_hh.device,
        dtype=first.weight_hh.dtype,
        **options,
    )
    with torch.no_grad():
        for name, cell, attribute in _parameters(layers):
            getattr(module, name).copy_(getattr(cell, attribute))
    return module


def _layers(module: nn.RNNBase) -> _Layers:
    """The module's structure in our layers, with weights of their own."""
    if module.dropout or module.proj_size:
        raise NearfutureError(
            f"dropout between layers and projections are not carried over "
            f"(dropout={module.dropout}, proj_size={module.proj_size}); set them to 0"
        )
    width = module.hidden_size * (2 if module.bidirectional else 1)
    inputs = [module.input_size] + [width] * (module.num_layers - 1)
    cells = [_single(module, input_size) for input_size in inputs]
    return [Bidirectional(cell) for cell in cells] if module.bidirectional else cells


def _single(module: nn.RNNBase, input_size: int) -> Recurrent:
    if isinstance(module, nn.GRU):
        return GRU(input_size, module.hidden_size, bias=module.bias)
    if isinstance(module, nn.LSTM):
        return LSTM(input_size, module.hidden_size, bias=module.bias)
    nonlinearity: Literal["tanh", "relu"] = "relu" if module.mode == "RNN_RELU" else "tanh"
    return RNN(input_size, module.hidden_size, nonlinearity=nonlinearity, bias=module.bias)


def _parameters(layers: _Layers) -> Iterator[tuple[str, Recurrent, str]]:
    """For every parameter torch's name (`weight_ih_l1_reverse`), our cell and its attribute."""
    for depth, layer in enumerate(layers):
        directions: dict[str, Recurrent] = {"": layer} if isinstance(layer, Recurrent) else {}
        if isinstance(layer, Bidirectional):
            directions = {"": layer.ahead, "_reverse": layer.back}
        for (suffix, cell), attribute in product(directions.items(), _NAMES):
            if getattr(cell, attribute) is not None:
                yield f"{attribute}_l{depth}{suffix}", cell, attribute


def _convolution(module: nn.Conv1d) -> Convolution:
    """A torch convolution with its weights, of complete windows or with "same" padding."""
    (kernel,), (stride,), (dilation,) = module.kernel_size, module.stride, module.dilation
    span = dilation * (kernel - 1)
    if module.padding == "same":  # torch puts the odd frame on the right
        left = span // 2
    else:
        left = 0 if module.padding == "valid" else int(module.padding[0])
        if left and 2 * left != span:
            raise NearfutureError(
                f"a padding of {left} is neither nothing nor the {span / 2:g} frames on each side "
                f"that give as many windows as frames: use padding=0 and pad by `left` and "
                f"`right` of a Convolution instead",
                code="unsupported",
                parameter="padding",
            )
    if left and module.padding_mode != "zeros":
        raise NearfutureError(
            f"padding_mode={module.padding_mode!r} reads frames of the other end or what no stream "
            f"has seen yet: a Convolution pads with zeros",
            code="unsupported",
            parameter="padding_mode",
        )
    padded = module.padding == "same" or left > 0
    layer = Convolution(
        module.in_channels,
        module.out_channels,
        left=left,
        right=span - left,
        stride=stride,
        # Of one tap it says nothing.
        dilation=dilation if kernel > 1 else 1,
        groups=module.groups,
        padded=padded,
        bias=module.bias is not None,
    ).to(module.weight)
    with torch.no_grad():
        layer.weight.copy_(module.weight)
        if layer.bias is not None and module.bias is not None:
            layer.bias.copy_(module.bias)
    return layer
