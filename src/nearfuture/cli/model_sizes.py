"""The sizes that `nearfuture budget` lets a preset change."""

from dataclasses import dataclass, replace
from typing import Annotated, Any, TypedDict

from cyclopts import Parameter

from nearfuture.budget import Block, Cell, ConvolutionConfig, Merge, RecognizerConfig
from nearfuture.error import NearfutureError

Switch = Annotated[bool, Parameter(negative="")]


@Parameter(name="*")
class FeatureSizes(TypedDict, total=False):
    """Sizes of the features.

    Args:
        rate: Samples per second.
        window_ms: Length of a spectral window in ms.
        hop_ms: From one window to the next in ms.
        mel_bins: Mel bands per window; 0 for the power of every frequency.
    """

    rate: int
    window_ms: float
    hop_ms: float
    mel_bins: int


@Parameter(name="*")
class LayerSizes(TypedDict, total=False):
    """Sizes that layers of any kind have.

    Args:
        hidden: Width of each layer.
        layers: How many layers.
    """

    hidden: int
    layers: int


@Parameter(name="*")
class RecurrenceSizes(TypedDict, total=False):
    """Sizes of the recurrent layers.

    Args:
        cell: The recurrent cell.
        biases: Biases per gate: 2 as torch stores them, 1 in the textbooks, 0 to count weights.
        bidirectional: Each layer also runs from the end of the utterance to its start.
        merge: How the outputs of two directions are merged.
        share_input: Two directions share their input weights.
        layer_norm: A layer normalisation below each recurrent layer, and one above them all.
    """

    cell: Cell
    biases: int
    bidirectional: Switch
    merge: Merge
    share_input: Switch
    layer_norm: bool


@Parameter(name="*")
class AttentionSizes(TypedDict, total=False):
    """Sizes of attention layers, where the preset has them.

    Args:
        block: What a layer is; a transformer has no kernel.
        attention_heads: Parts of a frame that attend by themselves.
        chunk: Frames that are emitted together; 0 for the whole utterance.
        left_chunks: Chunks of the past that a layer sees.
        right_context: Frames after its chunk that a layer sees.
        expansion: Width of the feed-forward networks, as a multiple of `hidden`.
        kernel: Frames of the convolution in a conformer.
    """

    block: Block
    attention_heads: int
    chunk: int
    left_chunks: int
    right_context: int
    expansion: int
    kernel: int


@Parameter(name="*")
class OtherSizes(TypedDict, total=False):
    """Sizes of everything else.

    Args:
        stack: Consecutive spectra that are read as one frame.
        projection: A linear layer below the recurrent layers, to their width.
        batch_norm: A batch normalisation on each convolution and input projection; its shift is
            their one bias.
        mixing: Lookahead convolutions that mix channels, instead of depthwise ones.
        output_hidden: A hidden linear layer before the output layer.
    """

    stack: int
    projection: bool
    batch_norm: bool
    mixing: Switch
    output_hidden: bool


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Changes to the sizes of a preset.

    Args:
        heads: Lookahead in frames of each head: "0,4,8,19".
        conv: A convolution below the recurrent layers, "kernel,stride,channels" in frames;
            two more numbers, the kernel and stride over frequency bands, make it 2-D. Repeat it
            for more of them.
        causal_conv: Pad the convolutions on the left only, so that they are causal.
        outputs: Symbols, the blank included.
    """

    features: FeatureSizes | None = None
    layers: LayerSizes | None = None
    recurrence: RecurrenceSizes | None = None
    attention: AttentionSizes | None = None
    others: OtherSizes | None = None
    heads: str | None = None
    conv: Annotated[list[str] | None, Parameter(negative="")] = None
    causal_conv: Annotated[bool, Parameter(negative="", show_default=False)] = False
    outputs: int | None = None

    def applied(self, preset: RecognizerConfig) -> RecognizerConfig:
        """Change what is asked for."""
        changes: dict[str, Any] = {
            **(self.features or {}),
            **(self.layers or {}),
            **(self.recurrence or {}),
            **(self.attention or {}),
            **(self.others or {}),
        }
        if "mel_bins" in changes:
            changes["mel_bins"] = changes["mel_bins"] or None
        if changes.get("chunk") == 0:
            changes = {"left_chunks": 0, "right_context": 0, **changes, "chunk": None}
        if changes.get("block") == "transformer":
            changes.setdefault("kernel", None)
        if self.heads is not None:
            changes["heads"] = _numbers("heads", self.heads)
        elif changes.get("bidirectional") or changes.get("chunk", 1) is None:
            changes["heads"] = ()
        if self.outputs is not None:
            if self.outputs < 1:
                raise NearfutureError(
                    f"`outputs` must be 1 or more, not {self.outputs}",
                    code="out_of_range",
                    parameter="outputs",
                )
            changes["symbols"] = tuple(map(chr, range(1, self.outputs)))  # any: they are counted
        shapes = preset.convolutions if self.conv is None else tuple(map(_convolution, self.conv))
        if self.causal_conv and not shapes:
            raise NearfutureError(
                "`causal_conv` has no effect without `conv`",
                code="conflict",
                parameter="causal_conv",
            )
        changes["convolutions"] = tuple(replace(each, causal=self.causal_conv) for each in shapes)
        return preset.replace(**changes)


def _numbers(parameter: str, text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise NearfutureError(
            f"`{parameter}` takes whole numbers between commas, not {text!r}", parameter=parameter
        ) from None


def _convolution(text: str) -> ConvolutionConfig:
    numbers = _numbers("conv", text)
    if len(numbers) not in (3, 5):
        raise NearfutureError(
            f"`conv` takes kernel,stride,channels or kernel,stride,channels,band kernel,band "
            f"stride, not {text!r}",
            parameter="conv",
        )
    band_kernel, band_stride = numbers[3:] or (None, 1)
    return ConvolutionConfig(
        kernel=numbers[0],
        stride=numbers[1],
        channels=numbers[2],
        band_kernel=band_kernel,
        band_stride=band_stride,
    )
