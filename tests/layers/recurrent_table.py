"""torch's recurrent modules in every configuration, and packed sequences as the reference."""

import itertools
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

KINDS = ("tanh", "relu", "gru", "lstm")
LENGTHS = torch.tensor([7, 3, 5, 1])


def module(
    kind: str, *, layers: int = 1, both: bool = False, batch_first: bool = True, bias: bool = True
) -> nn.RNNBase:
    """A float64 torch module, 3 features in, 4 units."""
    torch.manual_seed(0)
    options = {"nonlinearity": kind} if kind in ("tanh", "relu") else {}
    cls = {"gru": nn.GRU, "lstm": nn.LSTM}.get(kind, nn.RNN)
    made: nn.RNNBase = cls(
        3,
        4,
        num_layers=layers,
        bidirectional=both,
        batch_first=batch_first,
        bias=bias,
        dtype=torch.float64,
        **options,
    )
    return made


def configurations() -> Iterator[dict[str, object]]:
    for kind, layers, both, bias in itertools.product(KINDS, (1, 3), (False, True), (True, False)):
        yield {"kind": kind, "layers": layers, "both": both, "bias": bias}


def name(options: dict[str, object]) -> str:
    """A readable test id."""
    return " ".join(f"{key}={value}" for key, value in options.items())


def batch() -> Tensor:
    """(4, 7, 3), with rubbish past the lengths."""
    torch.manual_seed(1)
    return torch.randn(4, 7, 3, dtype=torch.float64)


def packed(theirs: nn.RNNBase, x: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
    """Outputs (batch first), h_n and c_n over packed rows of `LENGTHS`."""
    x = x if theirs.batch_first else x.transpose(0, 1)
    rows = pack_padded_sequence(x, LENGTHS, batch_first=theirs.batch_first, enforce_sorted=False)
    y, state = theirs(rows)
    y, _ = pad_packed_sequence(y, batch_first=True)
    h, c = state if isinstance(state, tuple) else (state, None)
    return y, h, c
