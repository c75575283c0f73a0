"""Models that people use, as their libraries make them, and what is true of each by construction.

Every verdict is worked out from the structure of the model (kernels, masks, directions), never
copied from an audit. Shapes: `N` rows, `T` frames, `C` features.
"""

import logging
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from onnxruntime.quantization import quantize_dynamic
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from nearfuture import audit
from nearfuture.audit import Kind, Report

inf = math.inf


@dataclass(frozen=True, kw_only=True)
class Case:
    """One model of the gallery.

    Attributes:
        name: of the model, for people.
        build: makes the model and an example.
        options: how it is audited.
        lookahead: frames that an output looks ahead, by construction.
        lookback: frames that it looks back; None where the sequence has one output only.
        breaks: the kinds of findings for which it must fail, and no others.
        tells: kinds of findings that are worth knowing, and no others.
        culprit: submodule and operation where it enters, and how far these look ahead by
            themselves; None where nothing enters.
        node: type of the ONNX node where it enters after an export, "" where nothing does; None
            where it is not exported.
    """

    name: str
    build: Callable[[], tuple[Any, Any]]
    options: Mapping[str, Any] = field(default_factory=dict)
    lookahead: float
    lookback: float | None
    breaks: tuple[Kind, ...] = ()
    tells: tuple[Kind, ...] = ()
    culprit: tuple[str, str, float] | None = None
    node: str | None = None

    def report(self, folder: Path) -> Report:
        """What the audit says; files that it needs are written to a folder."""
        model, example = self._made()
        if isinstance(model, onnx.ModelProto):
            onnx.save(model, folder / "made.onnx")
            model = folder / "made.onnx"
        return audit.model(model, example, name=self.name, **self.options)

    def graph_report(self, folder: Path) -> Report:
        """The report on the same model, exported to ONNX."""
        model, example = self._made()
        layout = self.options.get("layout", "NTC")
        path = export(model, example, folder / "model.onnx", layout)
        return audit.model(path, example.numpy(), name=self.name, **self.options)

    def faults(self, report: Report, *, graph: bool = False) -> list[str]:
        """What an audit got wrong."""
        culprit: tuple[Any, ...] | None = self.culprit
        if graph:
            culprit = (self.node, self.culprit[-1]) if self.node and self.culprit else None
        compared = {
            "lookahead": (report.lookahead, self.lookahead),
            "lookback": (report.lookback, self.lookback),
            "breaks": (_kinds(report, "broken"), sorted(self.breaks)),
            "tells": (_kinds(report, "notice"), sorted(self.tells)),
            "culprit": (_culprit(report, graph=graph), culprit),
        }
        if self.lookback is None:
            del compared["lookback"]
        return [
            f"{what}: {got}, but it is {right}"
            for what, (got, right) in compared.items()
            if got != right
        ]

    def _made(self) -> tuple[Any, Any]:
        torch.manual_seed(0)
        return self.build()


def _kinds(report: Report, severity: str) -> list[Kind]:
    return sorted({finding.kind for finding in report.findings if finding.severity == severity})


def _culprit(report: Report, *, graph: bool) -> tuple[Any, ...] | None:
    """Where the first finding enters, or where the model looks ahead on its own."""
    culprits = [finding.culprit for finding in report.findings if finding.culprit]
    for place in (*culprits, *report.lookahead_sources):
        name = (place.what,) if graph else (place.where, place.operation)
        return (*name, place.frames)
    return None


def export(model: nn.Module, example: Tensor, path: Path, layout: str) -> Path:
    """An ONNX file that takes any number of rows and frames."""
    free = {layout.index(axis): torch.export.Dim.AUTO for axis in "NT"}
    rows = torch.cat([example] * 2, dim=layout.index("N"))  # an axis of 1 would be taken as fixed
    logger = logging.getLogger("torch.onnx._internal.exporter._registration")
    level = logger.level
    logger.setLevel(logging.ERROR)  # optional libraries that are not installed
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what the exporter says about itself
            form = {"dynamic_shapes": (free,), "dynamo": True, "verbose": False}
            torch.onnx.export(model.eval(), (rows,), path, **form)
    finally:
        logger.setLevel(level)
    return path


def features(frames: int = 12, width: int = 4, rows: int = 1) -> Tensor:
    """(N, T, C)"""
    return torch.randn(rows, frames, width)


def tokens(frames: int = 12, rows: int = 1) -> Tensor:
    """(N, T), of 32 words."""
    return torch.randint(0, 32, (rows, frames))


# Recurrent layers ---------------------------------------------------------------------------------


class Tagger(nn.Module):
    """A label for every frame."""

    def __init__(self, rnn: nn.Module) -> None:
        super().__init__()
        self.rnn = rnn
        self.head = nn.LazyLinear(3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.rnn(x)[0])


class PackedTagger(nn.Module):
    """The same for sequences of several lengths, packed."""

    def __init__(self, *, batch_first: bool = True) -> None:
        super().__init__()
        self.batch_first = batch_first
        self.rnn = nn.LSTM(4, 6, bidirectional=True, batch_first=batch_first)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        form = {"batch_first": self.batch_first}
        packed = pack_padded_sequence(x, lengths, enforce_sorted=False, **form)
        frames = x.shape[1 if self.batch_first else 0]
        return pad_packed_sequence(self.rnn(packed)[0], total_length=frames, **form)[0]


class Summary(nn.Module):
    """One answer for a sequence, from the last state of each direction."""

    def __init__(self, *, bidirectional: bool = False, outputs: int = 3) -> None:
        super().__init__()
        self.rnn = nn.GRU(4, 6, batch_first=True, bidirectional=bidirectional)
        self.head = nn.Linear(12 if bidirectional else 6, outputs)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.rnn(x)[1].transpose(0, 1).flatten(1))


class Remembering(nn.Module):
    """Begins where the last call ended."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.GRU(4, 6, batch_first=True)
        self.h: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        y, self.h = self.rnn(x, self.h)
        return y


class Forecaster(nn.Module):
    """Reads 8 observed frames both ways, and answers to the rest one after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.GRU(4, 3, batch_first=True, bidirectional=True)
        self.decoder = nn.GRU(4, 6, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        h = self.encoder(x[:, :8])[1].transpose(0, 1).flatten(1)[None]
        return self.decoder(x[:, 8:], h.contiguous())[0]


def backwards(kind: str, gates: int, **form: Any) -> onnx.ModelProto:
    """One recurrent node that reads from the end."""
    rng = np.random.default_rng(0)
    weights = [
        onnx.numpy_helper.from_array(rng.normal(size=shape).astype(np.float32), name)
        for name, shape in {"W": (1, 6 * gates, 4), "R": (1, 6 * gates, 6)}.items()
    ]
    form |= {"hidden_size": 6, "direction": "reverse"}
    node = onnx.helper.make_node
    nodes = [
        node("Transpose", ["x"], ["time_first"], perm=[1, 0, 2]),
        node(kind, ["time_first", "W", "R"], ["h"], "backwards", **form),
        node("Transpose", ["h"], ["rows"], perm=[2, 0, 1, 3]),
        node("Squeeze", ["rows", "axis"], ["y"]),
    ]
    weights.append(onnx.numpy_helper.from_array(np.array([2]), "axis"))
    return _model(onnx.helper.make_graph(nodes, "reverse", *_ends(), weights))


def _ends() -> list[list[onnx.ValueInfoProto]]:
    """An input x of 4 features and an output y of 6."""
    return [
        [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["N", "T", width])]
        for name, width in (("x", 4), ("y", 6))
    ]


def _model(graph: onnx.GraphProto) -> onnx.ModelProto:
    opset = onnx.helper.make_opsetid("", 18)
    return onnx.helper.make_model(graph, opset_imports=[opset], ir_version=10)


def relu_rnn_backwards() -> onnx.ModelProto:
    """NaN does not come out of it in ONNX Runtime."""
    return backwards("RNN", 1, activations=["Relu"])


def lstm(**form: Any) -> nn.Module:
    return nn.LSTM(4, 6, bidirectional=True, **form)


RECURRENT = [
    Case(
        name="nn.GRU, 2 layers",
        build=lambda: (nn.GRU(4, 6, 2, batch_first=True), features()),
        options={"at_most": 0},
        lookahead=0,
        lookback=inf,
        node="",
    ),
    Case(
        name="nn.LSTM, both ways",
        build=lambda: (tagger(lstm(batch_first=True)), features()),
        options={"at_most": 4},
        lookahead=inf,
        lookback=inf,
        breaks=("future",),
        culprit=("rnn", "lstm", inf),
        node="LSTM",
    ),
    Case(
        name="nn.LSTM, both ways, padded",
        build=lambda: (tagger(lstm(batch_first=True)), features(rows=2)),
        options={"lengths": [12, 8], "takes": "nothing"},
        lookahead=inf,
        lookback=inf,
        breaks=("padding",),
        culprit=("rnn", "lstm", inf),
        node="LSTM",
    ),
    Case(
        name="nn.LSTM, both ways, packed",
        build=lambda: (PackedTagger(), features(rows=2)),
        options={"lengths": [12, 8]},
        lookahead=inf,
        lookback=inf,
        culprit=("rnn", "lstm", inf),
    ),
    Case(
        name="nn.LSTM, both ways, packed, time first",
        build=lambda: (PackedTagger(batch_first=False), features(rows=2).transpose(0, 1)),
        options={"lengths": [12, 8], "layout": "TNC"},
        lookahead=inf,
        lookback=inf,
        culprit=("rnn", "lstm", inf),
    ),
    Case(
        name="nn.LSTM, both ways, padded, time first as nn.LSTM is",
        build=lambda: (lstm(), features(rows=2).transpose(0, 1)),
        options={"lengths": [12, 8], "takes": "nothing"},
        lookahead=inf,
        lookback=inf,
        breaks=("padding",),
        culprit=("", "lstm", inf),
    ),
    Case(
        name="nn.GRU, time first as nn.GRU is",
        build=lambda: (nn.GRU(4, 6), features(rows=2).transpose(0, 1)),
        options={"at_most": 0},
        lookahead=0,
        lookback=inf,
    ),
    Case(
        name="last state of nn.GRU, padded",
        build=lambda: (Summary(), features(rows=2)),
        options={"lengths": [12, 8], "takes": "nothing"},
        lookahead=0,
        lookback=None,
        breaks=("padding",),
        culprit=("rnn", "gru", inf),
        node="GRU",
    ),
    Case(
        name="an observed window, read both ways → a forecast",
        build=lambda: (Summary(bidirectional=True, outputs=5), features()),
        options={"at_most": 0},
        lookahead=0,
        lookback=None,
        node="",
    ),
    Case(
        name="8 observed frames read both ways, the rest forwards",
        build=lambda: (Forecaster(), features(20)),
        options={"at_most": 0, "observed": 8},
        lookahead=0,
        lookback=inf,
    ),
    Case(
        name="the same, reading the frames to be forecast too",
        build=lambda: (tagger(nn.GRU(4, 6, batch_first=True, bidirectional=True)), features(20)),
        options={"at_most": 0, "observed": 8},
        lookahead=inf,
        lookback=inf,
        breaks=("future",),
        culprit=("rnn", "gru", inf),
        node="GRU",
    ),
    *(
        Case(
            name=f"ONNX {name}, direction reverse",
            build=build,
            options={"at_most": 0},
            lookahead=inf,
            lookback=0,
            breaks=("future",),
            culprit=("backwards", kind, inf),
        )
        for name, kind, build in [
            ("GRU", "GRU", lambda: (backwards("GRU", 3), features().numpy())),
            ("RNN with ReLU", "RNN", lambda: (relu_rnn_backwards(), features().numpy())),
        ]
    ),
    Case(
        name="nn.GRU that begins where the last call ended",
        build=lambda: (Remembering(), features()),
        options={"at_most": 0},
        lookahead=0,
        lookback=inf,
        breaks=("state",),
        culprit=("rnn", "gru", inf),
    ),
]


def tagger(rnn: nn.Module) -> nn.Module:
    model = Tagger(rnn)
    model(features())  # the head learns its width
    return model


# Attention ----------------------------------------------------------------------------------------


class Encoder(nn.Module):
    """nn.TransformerEncoder of two layers under a mask of (T, T): True must not look."""

    def __init__(self, mask: Callable[[int], Tensor | None], *, batch_first: bool = True) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=batch_first)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.mask = mask

    def forward(self, x: Tensor, padding: Tensor | None = None) -> Tensor:
        mask = self.mask(x.shape[1])
        # With is_causal=None the encoder looks into the mask, which cannot be exported.
        return self.encoder(x, mask=mask, src_key_padding_mask=padding, is_causal=False)


def unmasked(frames: int) -> None:
    return None


def causal(frames: int) -> Tensor:
    return nn.Transformer.generate_square_subsequent_mask(frames)


def transposed(frames: int) -> Tensor:
    return nn.Transformer.generate_square_subsequent_mask(frames).T


def chunks(frames: int) -> Tensor:
    """Frames look at their own chunk of 4 and the one before."""
    chunk = torch.arange(frames) // 4
    return (chunk[None] > chunk[:, None]) | (chunk[None] < chunk[:, None] - 1)


ATTENTION = [
    Case(
        name="nn.TransformerEncoder, causal mask",
        build=lambda: (Encoder(causal), features()),
        options={"at_most": 0},
        lookahead=0,
        lookback=inf,
        node="",
    ),
    Case(
        name="nn.TransformerEncoder, no mask",
        build=lambda: (Encoder(unmasked), features()),
        options={"at_most": 0},
        lookahead=inf,
        lookback=inf,
        breaks=("future",),
        culprit=("encoder.layers.0.self_attn", "multi_head_attention_forward", inf),
        node="MatMul",
    ),
    Case(
        name="nn.TransformerEncoder, causal mask transposed",
        build=lambda: (Encoder(transposed), features()),
        options={"at_most": 0},
        lookahead=inf,
        lookback=0,
        breaks=("future",),
        culprit=("encoder.layers.0.self_attn", "multi_head_attention_forward", inf),
        node="MatMul",
    ),
    Case(
        name="nn.TransformerEncoder, chunks of 4 and the one before",
        build=lambda: (Encoder(chunks), features(24)),
        options={"at_most": 3},
        lookahead=3,
        lookback=3 + 2 * 4,
        culprit=("encoder.layers.0.self_attn", "multi_head_attention_forward", 3),
        node="MatMul",
    ),
    Case(
        name="nn.TransformerEncoder, padding mask",
        build=lambda: (Encoder(unmasked), features(rows=2)),
        options={"lengths": [12, 8], "takes": "padding_mask"},
        lookahead=inf,
        lookback=inf,
        culprit=("encoder.layers.0.self_attn", "multi_head_attention_forward", inf),
    ),
    Case(
        name="nn.TransformerEncoder, padding unmasked",
        build=lambda: (Encoder(unmasked), features(rows=2)),
        options={"lengths": [12, 8], "takes": "nothing"},
        lookahead=inf,
        lookback=inf,
        breaks=("padding",),
        culprit=("encoder.layers.0.self_attn", "multi_head_attention_forward", inf),
        node="Softmax",  # the first to sum over padded keys
    ),
    Case(
        name="nn.TransformerEncoder, batch_first forgotten",
        build=lambda: (Encoder(unmasked, batch_first=False), features()),
        options={"at_most": 0},
        lookahead=0,
        lookback=0,
        breaks=("batch",),
        culprit=("encoder.layers.0.self_attn", "multi_head_attention_forward", inf),
        node="MatMul",
    ),
]


# Convolution --------------------------------------------------------------------------------------


class Tcn(nn.Module):
    """Dilated convolutions of kernel 3, with residuals: (N, C, T)."""

    def __init__(self, padded: str) -> None:
        super().__init__()
        self.padded = padded
        self.convs = nn.ModuleList(nn.Conv1d(4, 4, 3, dilation=d) for d in (1, 2, 4))

    def forward(self, x: Tensor) -> Tensor:
        for conv in self.convs:
            d = conv.dilation[0]
            if self.padded == "left":
                y = conv(F.pad(x, (2 * d, 0)))
            elif self.padded == "same":
                y = conv(F.pad(x, (d, d)))
            else:  # on both sides, and then the first 2·d are dropped instead of the last
                y = conv(F.pad(x, (2 * d, 2 * d)))[..., 2 * d :]
            x = x + torch.relu(y)
        return x


class FrontEnd(nn.Module):
    """Two strided convolutions, then a GRU at a quarter of the rate."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(4, 6, 3, stride=2, padding=1),
            nn.SiLU(),
            nn.Conv1d(6, 6, 3, stride=2, padding=1),
        )
        self.rnn = nn.GRU(6, 6, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.rnn(self.conv(x.transpose(1, 2)).transpose(1, 2))[0]


class SqueezeExcite(nn.Module):
    """Channels weighed by their mean over time, as in ContextNet: (N, C, T)."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = nn.AdaptiveAvgPool1d(1)
        self.weigh = nn.Sequential(nn.Conv1d(4, 4, 1), nn.Sigmoid())

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weigh(self.pool(x))


class LongConvolution(nn.Module):
    """A causal kernel as long as the sequence, by FFT, as in Hyena and S4: (N, C, T).

    An FFT sums all its inputs, so the future changes the rounding, and nothing else.
    """

    def __init__(self) -> None:
        super().__init__()
        self.kernel = nn.Parameter(torch.randn(4, 64))

    def forward(self, x: Tensor) -> Tensor:
        frames = x.shape[-1]
        y = torch.fft.rfft(x, n=2 * frames) * torch.fft.rfft(self.kernel[:, :frames], n=2 * frames)
        return torch.fft.irfft(y, n=2 * frames)[..., :frames]


CONVOLUTION = [
    Case(
        name="TCN, padded on the left",
        build=lambda: (Tcn("left"), features(40).transpose(1, 2)),
        options={"layout": "NCT", "at_most": 0},
        lookahead=0,
        lookback=2 * (1 + 2 + 4),
        node="",
    ),
    Case(
        name="TCN, same padding",
        build=lambda: (Tcn("same"), features(40).transpose(1, 2)),
        options={"layout": "NCT", "at_most": 0},
        lookahead=1 + 2 + 4,
        lookback=1 + 2 + 4,
        breaks=("future",),
        culprit=("convs.2", "conv1d", 4),
        node="Conv",
    ),
    Case(
        name="TCN, cropped at the wrong end",
        build=lambda: (Tcn("wrong"), features(40).transpose(1, 2)),
        options={"layout": "NCT", "at_most": 0},
        lookahead=2 * (1 + 2 + 4),
        lookback=0,
        breaks=("future",),
        culprit=("", "getitem", 2 * 4),
        node="Slice",
    ),
    Case(
        name="front-end at a quarter of the rate, then nn.GRU",
        build=lambda: (FrontEnd(), features(40)),
        options={"at_most": 3},
        lookahead=1 + 2 * 1,
        lookback=inf,
        culprit=("conv.2", "conv1d", 2),
    ),
    Case(
        name="nn.ConvTranspose1d, kernel 4, stride 2",
        build=lambda: (
            nn.ConvTranspose1d(4, 4, 4, stride=2, padding=1),
            features(20).transpose(1, 2),
        ),
        options={"layout": "NCT", "at_most": 1},
        lookahead=1,
        lookback=1,
        culprit=("", "conv_transpose1d", 1),
        node="ConvTranspose",
    ),
    Case(
        name="causal convolution by torch.fft",
        build=lambda: (LongConvolution(), features(24).transpose(1, 2)),
        options={"layout": "NCT", "at_most": 0},
        lookahead=0,
        lookback=inf,
    ),
    Case(
        name="squeeze and excite, as in ContextNet",
        build=lambda: (SqueezeExcite(), features(20).transpose(1, 2)),
        options={"layout": "NCT", "at_most": 0},
        lookahead=inf,
        lookback=inf,
        breaks=("future",),
        culprit=("pool", "adaptive_avg_pool1d", inf),
        node="ReduceMean",
    ),
]


# Normalisation, dropout, positions, int8 ----------------------------------------------------------


class Normalised(nn.Module):
    """A normalisation of (N, C, T) between two layers that look at one frame."""

    def __init__(self, norm: nn.Module) -> None:
        super().__init__()
        self.norm = norm
        self.head = nn.Conv1d(4, 3, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.norm(x))


class Dropping(nn.Module):
    """F.dropout drops in eval mode too, unless training=False."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.GRU(4, 6, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return F.dropout(self.rnn(x)[0], 0.1)


def with_relative_position(x: Tensor) -> Tensor:
    """Where in the sequence a frame is, from 0 to 1, as one more feature."""
    place = torch.linspace(0, 1, x.shape[1])[None, :, None].expand(len(x), -1, 1)
    return torch.cat([x, place], dim=-1)


def standardised(x: np.ndarray) -> np.ndarray:
    """Mean 0 and variance 1 over each utterance."""
    return (x - x.mean(axis=1, keepdims=True)) / (x.std(axis=1, keepdims=True) + 1e-5)


def less_the_mean_so_far(x: np.ndarray) -> np.ndarray:
    return x - np.cumsum(x, axis=1) / np.arange(1, x.shape[1] + 1)[:, None]


def quantised() -> onnx.ModelProto:
    """A Linear in int8, whose activations are scaled by the extremes of the whole input."""
    rng = np.random.default_rng(0)
    weight = onnx.numpy_helper.from_array(rng.normal(size=(4, 6)).astype(np.float32), "W")
    node = onnx.helper.make_node("MatMul", ["x", "W"], ["y"])
    graph = onnx.helper.make_graph([node], "linear", *_ends(), [weight])
    with TemporaryDirectory() as folder:
        path = Path(folder) / "int8.onnx"
        quantize_dynamic(_model(graph), path)
        return onnx.load(path)


def normalised(norm: nn.Module) -> tuple[nn.Module, Tensor]:
    return Normalised(norm), features(20).transpose(1, 2)


NORMALISATION = [
    *(
        Case(
            name=name,
            build=build,
            options={"layout": "NCT", "at_most": 0},
            lookahead=inf,
            lookback=inf,
            breaks=("normalisation",),
            culprit=("norm", operation, inf),
            node="InstanceNormalization",
        )
        for name, build, operation in [
            ("nn.GroupNorm", lambda: normalised(nn.GroupNorm(2, 4)), "group_norm"),
            ("nn.InstanceNorm1d", lambda: normalised(nn.InstanceNorm1d(4)), "instance_norm"),
        ]
    ),
    Case(
        name="nn.BatchNorm1d while it trains",
        build=lambda: normalised(nn.BatchNorm1d(4)),
        options={"layout": "NCT", "at_most": 0, "train": True},
        lookahead=inf,
        lookback=inf,
        breaks=("batch", "normalisation"),
        tells=("state",),
        culprit=("norm", "batch_norm", inf),
    ),
    Case(
        name="nn.BatchNorm1d in use",
        build=lambda: normalised(nn.BatchNorm1d(4)),
        options={"layout": "NCT", "at_most": 0},
        lookahead=0,
        lookback=0,
        node="",
    ),
    Case(
        name="nn.LayerNorm",
        build=lambda: (nn.LayerNorm(4), features(20)),
        options={"at_most": 0},
        lookahead=0,
        lookback=0,
        node="",
    ),
    Case(
        name="mean and variance of the utterance, numpy",
        build=lambda: (standardised, features(20).numpy()),
        options={"at_most": 0},
        lookahead=inf,
        lookback=inf,
        breaks=("future",),
    ),
    Case(
        name="mean so far, numpy",
        build=lambda: (less_the_mean_so_far, features(20).numpy()),
        options={"at_most": 0},
        lookahead=0,
        lookback=inf,
    ),
    Case(
        name="position relative to the length, torch.linspace(0, 1, T)",
        build=lambda: (with_relative_position, features(20)),
        options={"at_most": 0},
        lookahead=0,
        lookback=0,
        breaks=("length",),
    ),
    Case(
        name="F.dropout in eval mode",
        build=lambda: (Dropping(), features()),
        options={"at_most": 0},
        lookahead=0,
        lookback=inf,
        breaks=("nondeterminism",),
        culprit=("", "dropout", inf),
    ),
    Case(
        name="a Linear in int8, by quantize_dynamic of ONNX Runtime",
        build=lambda: (quantised(), features().numpy()),
        options={"at_most": 0},
        lookahead=inf,
        lookback=inf,
        breaks=("batch", "future"),
        culprit=("x_QuantizeLinear", "DynamicQuantizeLinear", inf),
    ),
]


# Waveforms ----------------------------------------------------------------------------------------


def spectrogram(*, center: bool) -> Callable[[Tensor], Tensor]:
    """Windows of 400 samples, 160 apart. A periodic Hann window is 0 at its first sample."""

    def stft(waveform: Tensor) -> Tensor:
        window = torch.hann_window(400)
        return torch.stft(waveform, 400, 160, window=window, center=center, return_complex=True)

    return stft


WAVEFORM = [
    Case(
        name="torch.stft, center=False",
        build=lambda: (spectrogram(center=False), torch.randn(1, 1600)),
        options={"at_most": 399},
        lookahead=399,
        lookback=0,
        culprit=("", "stft", 399),
    ),
    Case(
        name="torch.stft, center=True",
        build=lambda: (spectrogram(center=True), torch.randn(1, 1600)),
        options={"layout": "NT", "output_layout": "NCT", "at_most": 199},
        lookahead=199,
        # The last output stands for sample 1600, sees 1401 … 1799 and finds 1399 mirrored in 1799.
        lookback=1600 - 1399,
        culprit=("", "stft", 199),
    ),
]


# Transformers of Hugging Face, with random weights ------------------------------------------------


def _tiny(**more: Any) -> dict[str, Any]:
    small = {"vocab_size": 32, "hidden_size": 8, "intermediate_size": 16}
    small |= {"num_hidden_layers": 2, "num_attention_heads": 2, "max_position_embeddings": 64}
    return small | {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0} | more


def gpt2() -> tuple[nn.Module, Tensor]:
    from transformers import GPT2Config, GPT2LMHeadModel

    size = {"n_embd": 8, "n_layer": 2, "n_head": 2, "n_positions": 64, "vocab_size": 32}
    return GPT2LMHeadModel(GPT2Config(**size, bos_token_id=1, eos_token_id=2)), tokens(rows=2)


def llama() -> tuple[nn.Module, Tensor]:
    from transformers import LlamaConfig, LlamaForCausalLM

    return LlamaForCausalLM(LlamaConfig(**_tiny())), tokens(rows=2)


def mistral() -> tuple[nn.Module, Tensor]:
    from transformers import MistralConfig, MistralForCausalLM

    config = MistralConfig(**_tiny(num_key_value_heads=1, sliding_window=4))
    return MistralForCausalLM(config), tokens(20)


def bert() -> tuple[nn.Module, Tensor]:
    from transformers import BertConfig, BertModel

    return BertModel(BertConfig(**_tiny())), tokens(rows=2)


def wav2vec2(norm: str) -> tuple[nn.Module, Tensor]:
    """At a tenth of the rate."""
    from transformers import Wav2Vec2Config, Wav2Vec2Model

    convs = {"conv_dim": (4, 4), "conv_kernel": (10, 3), "conv_stride": (5, 2)}
    place = {"num_conv_pos_embeddings": 4, "num_conv_pos_embedding_groups": 2}
    size = {"hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 1}
    config = Wav2Vec2Config(
        **convs, **place, **size, num_attention_heads=2, feat_extract_norm=norm, vocab_size=32
    )
    return Wav2Vec2Model(config), torch.randn(2, 200)


def whisper() -> tuple[nn.Module, Tensor]:
    """40 frames in, 20 out, and no other length."""
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    heads = {"encoder_layers": 1, "encoder_attention_heads": 2, "encoder_ffn_dim": 16}
    size = {"d_model": 8, "num_mel_bins": 4, "max_source_positions": 20, "vocab_size": 32}
    special = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
    config = WhisperConfig(**heads, **size, **special, decoder_start_token_id=1)
    return WhisperEncoder(config), features(40).transpose(1, 2)


def encodec_convolution(pad_mode: str) -> tuple[nn.Module, Tensor]:
    """What all of EnCodec is made of, causal, of kernel 7."""
    from transformers import EncodecConfig
    from transformers.models.encodec.modeling_encodec import EncodecConv1d

    config = EncodecConfig(pad_mode=pad_mode, use_causal_conv=True)
    return EncodecConv1d(config, 4, 4, 7), features(24).transpose(1, 2)


def encodec() -> tuple[nn.Module, Tensor]:
    """Causal convolutions, one of kernel 4 and stride 2, and an LSTM."""
    from transformers import EncodecConfig
    from transformers.models.encodec.modeling_encodec import EncodecEncoder

    size = {"num_filters": 4, "hidden_size": 8, "num_lstm_layers": 1, "upsampling_ratios": [2]}
    config = EncodecConfig(pad_mode="constant", use_causal_conv=True, **size)
    return EncodecEncoder(config), features(64, 1).transpose(1, 2)


MASKED: dict[str, Any] = {"lengths": [12, 8], "takes": "mask", "keyword": "attention_mask"}
SOUND: dict[str, Any] = {"lengths": [200, 140], "takes": "mask", "keyword": "attention_mask"}

TRANSFORMERS = [
    Case(
        name="GPT2LMHeadModel",
        build=gpt2,
        options={"at_most": 0, "output": "logits", **MASKED},
        lookahead=0,
        lookback=inf,
    ),
    Case(
        name="LlamaForCausalLM",
        build=llama,
        options={"at_most": 0, "output": "logits", **MASKED},
        lookahead=0,
        lookback=inf,
    ),
    Case(
        name="MistralForCausalLM, sliding window of 4",
        build=mistral,
        options={"at_most": 0, "output": "logits"},
        lookahead=0,
        lookback=2 * (4 - 1),
    ),
    Case(
        name="BertModel, attention_mask",
        build=bert,
        options=MASKED,
        lookahead=inf,
        lookback=inf,
        culprit=("encoder.layer.0.attention.self", "scaled_dot_product_attention", inf),
    ),
    Case(
        name="BertModel, attention_mask forgotten",
        build=bert,
        options={"lengths": [12, 8], "takes": "nothing"},
        lookahead=inf,
        lookback=inf,
        breaks=("padding",),
        culprit=("encoder.layer.0.attention.self", "scaled_dot_product_attention", inf),
        node="Softmax",  # the first to sum over padded keys
    ),
    Case(
        name="Wav2Vec2Model with group norm, attention_mask",
        build=lambda: wav2vec2("group"),
        options=SOUND,
        lookahead=inf,
        lookback=inf,
        breaks=("padding",),
        tells=("normalisation",),
        culprit=("feature_extractor.conv_layers.0.layer_norm", "group_norm", inf),
    ),
    Case(
        name="Wav2Vec2Model with layer norm, attention_mask",
        build=lambda: wav2vec2("layer"),
        options=SOUND,
        lookahead=inf,
        lookback=inf,
        culprit=("encoder.layers.0.attention", "scaled_dot_product_attention", inf),
    ),
    Case(
        name="WhisperEncoder",
        build=whisper,
        options={"layout": "NCT", "output_layout": "NTC"},
        lookahead=inf,
        lookback=inf,
        culprit=("layers.0.self_attn", "scaled_dot_product_attention", inf),
    ),
    Case(
        name="EncodecEncoder, causal",
        build=encodec,
        options={"layout": "NCT", "at_most": 1},
        lookahead=2 - 1,  # an output stands for two samples and hears the second
        lookback=inf,
        culprit=("layers.3.conv", "conv1d", 1),
    ),
    Case(
        name="causal convolution of EnCodec, beginning filled with zeros",
        build=lambda: encodec_convolution("constant"),
        options={"layout": "NCT", "at_most": 0},
        lookahead=0,
        lookback=6,
    ),
    Case(
        name="causal convolution of EnCodec, beginning mirrored",
        build=lambda: encodec_convolution("reflect"),
        options={"layout": "NCT", "at_most": 0},
        lookahead=6,  # of output 0: the 6 frames before it are those after it, mirrored
        lookback=6,
        breaks=("future",),
        culprit=("", "pad", 6),
    ),
]

GALLERY: Sequence[Case] = [
    *RECURRENT,
    *ATTENTION,
    *CONVOLUTION,
    *NORMALISATION,
    *WAVEFORM,
    *TRANSFORMERS,
]
