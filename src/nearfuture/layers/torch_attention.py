"""Weights from torch's own attention modules."""

from __future__ import annotations

import copy
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nearfuture.error import NearfutureError
from nearfuture.layers.attention import AttentionMask, SelfAttention
from nearfuture.layers.container import Residual, Serial
from nearfuture.layers.contract import Pointwise, StreamingLayer
from nearfuture.layers.normalization import LayerNorm
from nearfuture.layers.transformer import FeedForward, dropped

_ACTIVATIONS: dict[Callable[..., Tensor], type[nn.Module]] = {F.relu: nn.ReLU, F.gelu: nn.GELU}


def attention_from_torch(module: nn.MultiheadAttention, mask: AttentionMask) -> SelfAttention:
    """A copy of the module for queries, keys and values of one sequence."""
    if module.in_proj_weight is None or module.bias_k is not None or module.add_zero_attn:
        raise NearfutureError(
            "self-attention has keys and values as wide as its queries and none besides those of "
            "the sequence: `kdim` and `vdim` are None, `add_bias_kv` and `add_zero_attn` False",
            code="unsupported",
            parameter="module",
        )
    if module.dropout:
        raise NearfutureError(
            f"dropout of attention weights is not carried over (dropout={module.dropout}); set it "
            f"to 0.0 at the nn.MultiheadAttention, which changes nothing in eval mode",
            code="unsupported",
            parameter="module",
        )
    bias = module.in_proj_bias is not None
    ours = SelfAttention(module.embed_dim, module.num_heads, mask=mask, bias=bias)
    # The dtype first: copying into narrower weights would round.
    ours = ours.to(module.in_proj_weight)
    with torch.no_grad():
        ours.projection.weight.copy_(module.in_proj_weight)
        ours.output.weight.copy_(module.out_proj.weight)
        if bias:
            ours.projection.bias.copy_(module.in_proj_bias)
            ours.output.bias.copy_(module.out_proj.bias)
    return ours


def encoder_layer_from_torch(module: nn.TransformerEncoderLayer, mask: AttentionMask) -> Serial:
    """A copy of the module; its norms stand where `norm_first` says."""
    attention = attention_from_torch(module.self_attn, mask)
    dim = attention.input_size
    network = FeedForward(dim, module.linear1.out_features, activation=_activation(module))
    network.up, network.down = copy.deepcopy(module.linear1), copy.deepcopy(module.linear2)
    network.dropout = copy.deepcopy(module.dropout)
    wide = Pointwise(network, dim)
    first, second = LayerNorm(dim), LayerNorm(dim)
    first.module, second.module = copy.deepcopy(module.norm1), copy.deepcopy(module.norm2)
    dropout = module.dropout1.p
    layers: list[StreamingLayer] = [
        Residual(dropped(attention, dropout=dropout)),
        first,
        Residual(wide),
        second,
    ]
    if module.norm_first:
        layers = [
            Residual(dropped(first, attention, dropout=dropout)),
            Residual(Serial(second, wide)),
        ]
    return Serial(*layers)


def _activation(module: nn.TransformerEncoderLayer) -> nn.Module:
    activation = module.activation
    if isinstance(activation, nn.Module):
        return copy.deepcopy(activation)
    if activation not in _ACTIVATIONS:
        raise NearfutureError(
            f"the activation {activation!r} is neither relu nor gelu nor a module: give "
            f"nn.TransformerEncoderLayer one as a module, such as nn.SiLU()",
            code="unsupported",
            parameter="module",
        )
    return _ACTIVATIONS[activation]()
