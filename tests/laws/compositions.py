"""Random compositions, drawn as Python source, so that a failing one can be read and run."""

from collections.abc import Callable

from hypothesis import strategies as st
from torch import nn

from nearfuture import layers
from nearfuture.layers import StreamingLayer
from tests.laws.registry import settled

__all__ = ["build", "compositions", "hybrids"]

_WIDTHS = st.integers(1, 3)
_BIASES = st.sampled_from(["", ", bias=False", ", batch_norm=True"])


def build(source: str) -> Callable[[], StreamingLayer]:
    """A function that makes the layer, its batch norms settled."""
    return lambda: settled(eval(source, {**vars(layers), "nn": nn}))


@st.composite
def compositions(draw: st.DrawFn, *, streaming: bool = True) -> str:
    """`Serial(…)` of one to four layers, each possibly a residual of more."""
    width = draw(_WIDTHS)
    return draw(_serial(width, same=False, depth=2, streaming=streaming))


@st.composite
def hybrids(draw: st.DrawFn) -> str:
    """A convolution, a recurrence, attention and a lookahead, in any order."""
    width = 2
    few = st.integers(0, 2)
    parts = [
        f"Convolution({width}, {width}, left={draw(few)}, right={draw(few)})",
        f"{draw(st.sampled_from(['RNN', 'GRU', 'LSTM']))}({width}, {width})",
        draw(_attention(width)),
        f"Lookahead({width}, {draw(few)})",
    ]
    return f"Serial({', '.join(draw(st.permutations(parts)))})"


@st.composite
def _attention(draw: st.DrawFn, width: int) -> str:
    """Self-attention that streams."""
    few = st.integers(0, 2)
    right = f"right={draw(few)}"
    mask = draw(
        st.sampled_from(
            [
                f"SlidingMask(left={draw(few)}, {right})",
                f"ChunkedMask(chunk={draw(st.integers(1, 3))}, left_chunks={draw(few)}, {right})",
            ]
        )
    )
    turned = ["RotaryPositions()"] if width % 2 == 0 else []
    positions = draw(st.sampled_from(["None", "RelativePositions(distance=2)", *turned]))
    return f"SelfAttention({width}, 1, mask={mask}, positions={positions})"


@st.composite
def _serial(draw: st.DrawFn, width: int, *, same: bool, depth: int, streaming: bool) -> str:
    """A chain from `width` features; `same` keeps the frame rate and ends as wide as it began."""
    links = []
    now = width
    for _ in range(draw(st.integers(1, 4 if depth == 2 else 2))):
        source, now = draw(_link(now, same=same, depth=depth, streaming=streaming))
        links.append(source)
    if same and now != width:
        links.append(f"Pointwise(nn.Linear({now}, {width}), {now}, {width})")
    return f"Serial({', '.join(links)})"


@st.composite
def _link(
    draw: st.DrawFn, width: int, *, same: bool, depth: int, streaming: bool
) -> tuple[str, int]:
    kinds = ["RNN", "GRU", "LSTM", "Lookahead", "at", "Linear", "Convolution", "Convolution2d"]
    kinds += ["SequenceBatchNorm", "depthwise", "SelfAttention"]
    kinds += (
        ["LayerNorm", "RMSNorm", "CumulativeLayerNorm"] if width > 1 else []
    )  # of one feature it is constant
    kinds += [] if streaming else ["Bidirectional"] * 3 + ["unbounded"]
    kinds += ["Residual"] * 2 if depth else []
    kinds += [] if same else ["Stack", "strided", "complete"]
    kind = draw(st.sampled_from(kinds))
    out = draw(_WIDTHS)
    few = st.integers(0, 3)
    if kind == "RNN":
        f = draw(st.sampled_from(["tanh", "relu", "clipped_relu"]))
        return f"RNN({width}, {out}, nonlinearity={f!r}{draw(_BIASES)})", out
    if kind in ("GRU", "LSTM"):
        return f"{kind}({width}, {out}{draw(_BIASES)})", out
    if kind == "Lookahead":
        return f"Lookahead({width}, {draw(st.integers(0, 5))})", width
    if kind == "at":
        return f"Lookahead({width}, (0, 2, 4)).at({draw(st.sampled_from([0, 2, 4]))})", width
    if kind.endswith("Norm"):
        return f"{kind}({width})", width
    if kind == "Linear":
        return f"Pointwise(nn.Linear({width}, {out}), {width}, {out})", out
    if kind == "Convolution":
        return f"Convolution({width}, {out}, left={draw(few)}, right={draw(few)})", out
    if kind == "depthwise":
        dilation = draw(st.integers(1, 3))
        window = f"left={dilation * draw(st.integers(1, 2))}, dilation={dilation}"
        return f"Convolution({width}, {width}, {window}, groups={width})", width
    if kind == "SelfAttention":
        return draw(_attention(width)), width
    if kind == "unbounded":
        mask = draw(st.sampled_from(["FullMask()", "CausalMask()"]))
        return f"SelfAttention({width}, 1, mask={mask})", width
    if kind == "Convolution2d":
        sizes = f"({width}, {out}), bands=1, band_kernel={draw(st.integers(1, 3))}"
        return f"Convolution2d({sizes}, left={draw(few)}, right={draw(few)})", out
    if kind == "Bidirectional":
        cell = draw(st.sampled_from(["RNN", "GRU", "LSTM"]))
        merge = draw(st.sampled_from(["concat", "sum"]))
        shared = draw(st.booleans())
        cell = f"{cell}({width}, {out}{draw(_BIASES)})"
        source = f"Bidirectional({cell}, merge={merge!r}, share_input={shared})"
        return source, out * 2 if merge == "concat" else out
    if kind == "Residual":
        inner = draw(_serial(width, same=True, depth=depth - 1, streaming=streaming))
        return f"Residual({inner})", width
    if kind == "Stack":
        frames = draw(st.integers(1, 3))
        return f"Stack({width}, {frames})", width * frames
    left, right, stride = draw(few), draw(few), draw(st.integers(1, 3))
    if kind == "strided":
        right = max(right, stride - 1 - left)
        return f"Convolution({width}, {out}, left={left}, right={right}, stride={stride})", out
    right = max(right, stride - 1)
    return f"Convolution({width}, {out}, right={right}, stride={stride}, padded=False)", out
