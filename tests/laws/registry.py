"""Every layer kind and option, each by name: a new layer is covered by adding one line."""

from collections.abc import Callable

from torch import nn

from nearfuture.layers import (
    GRU,
    LSTM,
    RNN,
    Bidirectional,
    Convolution,
    LayerNorm,
    Lookahead,
    Pointwise,
    Residual,
    Serial,
    Stack,
    StreamingLayer,
)

STREAMING: dict[str, Callable[[], StreamingLayer]] = {
    # recurrent
    "rnn tanh": lambda: RNN(3, 4),
    "rnn relu": lambda: RNN(3, 4, nonlinearity="relu"),
    "rnn clipped relu": lambda: RNN(3, 4, nonlinearity="clipped_relu"),
    "rnn no bias": lambda: RNN(3, 4, bias=False),
    "gru": lambda: GRU(3, 4),
    "gru no bias": lambda: GRU(3, 4, bias=False),
    "lstm": lambda: LSTM(3, 4),
    "lstm no bias": lambda: LSTM(3, 4, bias=False),
    # lookahead
    "lookahead 0": lambda: Lookahead(3, 0),
    "lookahead 1": lambda: Lookahead(3, 1),
    "lookahead 3": lambda: Lookahead(3, 3),
    "lookahead 19": lambda: Lookahead(2, 19),
    "lookahead of several at 0": lambda: Lookahead(3, (0, 2, 5)).at(0),
    "lookahead of several at 2": lambda: Lookahead(3, (0, 2, 5)).at(2),
    "lookahead of several at 5": lambda: Lookahead(3, (0, 2, 5)).at(5),
    # convolution
    "convolution of one frame": lambda: Convolution(3, 2),
    "convolution causal": lambda: Convolution(3, 2, left=4),
    "convolution same": lambda: Convolution(3, 2, left=2, right=2),
    "convolution right only": lambda: Convolution(3, 2, right=3),
    "convolution no bias": lambda: Convolution(3, 2, left=1, right=1, bias=False),
    "convolution stride 2": lambda: Convolution(3, 2, left=1, right=1, stride=2),
    "convolution stride 2 causal": lambda: Convolution(3, 2, left=4, stride=2),
    "convolution stride 3": lambda: Convolution(3, 2, left=2, right=3, stride=3),
    "convolution stride 3 right only": lambda: Convolution(3, 2, right=2, stride=3),
    "convolution complete": lambda: Convolution(3, 2, right=2, padded=False),
    "convolution complete stride 2": lambda: Convolution(3, 2, right=2, stride=2, padded=False),
    "convolution complete stride 3": lambda: Convolution(3, 2, right=6, stride=3, padded=False),
    "stack of 1": lambda: Stack(3, 1),
    "stack of 2": lambda: Stack(3, 2),
    "stack of 4": lambda: Stack(2, 4),
    # frame by frame
    "layer norm": lambda: LayerNorm(3),
    "linear": lambda: Pointwise(nn.Linear(3, 2), 3, 2),
    "linear and relu": lambda: Pointwise(nn.Sequential(nn.Linear(3, 4), nn.ReLU()), 3, 4),
    # shortcuts
    "residual gru": lambda: Residual(GRU(3, 3)),
    "residual lookahead": lambda: Residual(Lookahead(3, 2)),
    "residual same convolution": lambda: Residual(Convolution(3, 3, left=2, right=2)),
    "residual serial": lambda: Residual(Serial(LayerNorm(3), GRU(3, 3), Lookahead(3, 2))),
    "residual two lookaheads": lambda: Residual(Serial(Lookahead(3, 2), Lookahead(3, 3))),
    "residual nested": lambda: Residual(
        Serial(Residual(Serial(LSTM(3, 3), Lookahead(3, 1))), Lookahead(3, 2))
    ),
    # compositions
    "serial of one": lambda: Serial(GRU(3, 4)),
    "two grus": lambda: Serial(GRU(3, 4), GRU(4, 3)),
    "serial nested": lambda: Serial(Serial(GRU(3, 4), Lookahead(4, 1)), Serial(Lookahead(4, 2))),
    "two strides": lambda: Serial(
        Convolution(3, 4, left=1, right=1, stride=2), Convolution(4, 3, left=5, stride=2)
    ),
    "two complete strides": lambda: Serial(
        Convolution(2, 3, right=2, stride=2, padded=False),
        Convolution(3, 2, right=2, stride=2, padded=False),
    ),
    "stack then gru then lookahead": lambda: Serial(Stack(2, 3), GRU(6, 4), Lookahead(4, 2)),
    "complete then padded": lambda: Serial(
        Convolution(3, 4, right=3, stride=2, padded=False), Lookahead(4, 2), LSTM(4, 3)
    ),
    "padded then complete": lambda: Serial(Lookahead(2, 3), Stack(2, 2)),
    "recogniser": lambda: Serial(
        Convolution(3, 4, left=1, right=1, stride=2),
        GRU(4, 4),
        Lookahead(4, 2),
        GRU(4, 4),
        Lookahead(4, 3),
    ),
    "residual recogniser": lambda: Serial(
        Stack(2, 2),
        Pointwise(nn.Linear(4, 3), 4, 3),
        Residual(Serial(LayerNorm(3), GRU(3, 3))),
        Residual(Serial(LayerNorm(3), LSTM(3, 3), Lookahead(3, 1))),
        Lookahead(3, (0, 4)).at(4),
        Pointwise(nn.Linear(3, 5), 3, 5),
    ),
}

OFFLINE: dict[str, Callable[[], StreamingLayer]] = {
    "bidirectional rnn": lambda: Bidirectional(RNN(3, 4)),
    "bidirectional relu": lambda: Bidirectional(RNN(3, 4, nonlinearity="relu")),
    "bidirectional clipped": lambda: Bidirectional(RNN(3, 4, nonlinearity="clipped_relu")),
    "bidirectional gru": lambda: Bidirectional(GRU(3, 4)),
    "bidirectional lstm": lambda: Bidirectional(LSTM(3, 4, bias=False)),
    "bidirectional sum": lambda: Bidirectional(GRU(3, 4), merge="sum"),
    "bidirectional shared": lambda: Bidirectional(GRU(3, 4), share_input=True),
    "bidirectional sum shared": lambda: Bidirectional(LSTM(3, 4), merge="sum", share_input=True),
    "residual bidirectional": lambda: Residual(Bidirectional(GRU(3, 3), merge="sum")),
    "two bidirectional": lambda: Serial(Bidirectional(GRU(3, 2)), Bidirectional(GRU(4, 2))),
    "bidirectional after stride": lambda: Serial(
        Convolution(3, 4, left=1, right=1, stride=2), Bidirectional(GRU(4, 3)), Lookahead(6, 2)
    ),
}

ALL = STREAMING | OFFLINE
