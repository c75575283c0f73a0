"""`nearfuture budget`: what a model waits for and what it costs, from its sizes alone."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, TypedDict

from cyclopts import Parameter
from rich.table import Table

from nearfuture.budget import (
    PRESETS,
    Block,
    Cell,
    ConvolutionConfig,
    Cost,
    Latency,
    Merge,
    Preset,
    RecognizerConfig,
    largest_lookahead,
)
from nearfuture.cli.console import Console
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


@dataclass(frozen=True, kw_only=True)
class Price:
    """The latencies and the cost of a model.

    Attributes:
        config: the model.
        heads: the latency of each head.
        costs: of each layer, while the head `running` runs.
        running: the lookahead of that head.
        budget_ms: the promise, if one is asked for.
        chosen: the largest lookahead that keeps it.
    """

    config: RecognizerConfig
    heads: Mapping[int | None, Latency]
    costs: list[tuple[str, Cost]]
    running: int | None
    budget_ms: float | None
    chosen: int | None

    @property
    def total(self) -> Cost:
        """The cost of the whole model."""
        return sum((cost for _, cost in self.costs), Cost())


def budget(
    *,
    preset: Preset = "small",
    budget_ms: Annotated[float | None, Parameter(name="--budget")] = None,
    sizes: Sizes | None = None,
    resampler_ms: float = 0.0,
    quantum_wait_ms: float = 0.0,
    as_json: Annotated[bool, Parameter(name="--json", negative="", show_default=False)] = False,
) -> None:
    """Print what a model waits for and what it costs, from its sizes alone.

    Start from a preset and change any of its sizes.

    Args:
        preset: The sizes to start from.
        budget_ms: Worst-case latency in ms; picks the largest lookahead within it.
        sizes: What to change.
        resampler_ms: Right context of a resampler in front, in ms.
        quantum_wait_ms: Longest time in ms until a quantum of audio is full.
        as_json: Print one JSON object instead of tables.
    """
    config = (sizes or Sizes()).applied(PRESETS[preset]())
    heads = {
        head: config.latency(head, resampler_ms=resampler_ms, quantum_wait_ms=quantum_wait_ms)
        for head in config.lookaheads
    }
    chosen = None
    if budget_ms is not None:
        chosen = largest_lookahead(budget_ms, {head or 0: lat for head, lat in heads.items()})
    running = chosen if chosen is not None else max(config.heads, default=None)
    price = Price(
        config=config,
        heads=heads,
        costs=list(config.costs(running)),
        running=running,
        budget_ms=budget_ms,
        chosen=chosen,
    )
    if as_json:
        print(json.dumps(_report(price), ensure_ascii=False))
        return
    console = Console(highlight=False)
    console.print(_headline(config), _latency_table(heads, chosen), _cost_table(price))
    for note in _notes(price):
        console.print(f"• {note}")


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


def _headline(config: RecognizerConfig) -> str:
    features = config.features
    bands = "power spectrum" if features.mel_bins is None else f"{features.mel_bins} mel bands"
    stacked = f", {config.stack} read as one" if config.stack > 1 else ""
    return (
        f"[bold]{_layers(config)}[/bold] on {features.rate / 1000:g} kHz audio, windows of "
        f"{features.window_ms:g} ms every {features.hop_ms:g} ms, {bands}{stacked}: a frame is "
        f"{config.frame_ms:g} ms\n"
    )


def _layers(config: RecognizerConfig) -> str:
    recurrence, attention = config.recurrence, config.attention
    if recurrence is not None:
        directions = "bidirectional " if recurrence.bidirectional else ""
        return f"{recurrence.layers} × {directions}{recurrence.cell.upper()}-{recurrence.hidden}"
    assert attention is not None
    seen = "over the whole utterance"
    if attention.chunk is not None:
        seen = f"in chunks of {attention.chunk * config.frame_ms:g} ms"
    return f"{attention.layers} × {attention.block}-{attention.hidden} {seen}"


def _latency_table(heads: Mapping[int | None, Latency], chosen: int | None) -> Table:
    table = Table(title="Algorithmic latency in ms", title_justify="left")
    table.add_column("waits for")
    for head in heads:
        mark = " ◀" if head is not None and head == chosen else ""
        table.add_column("ms" if head is None else f"τ = {head}{mark}", justify="right")
    # The head that waits for most has every item, in order.
    names = [item.name for item in max(heads.values(), key=lambda head: len(head.items)).items]
    rows = [{item.name: item.ms for item in latency.items} for latency in heads.values()]
    for name in names:
        table.add_row(name, *(_ms(row.get(name, 0.0)) for row in rows))
    table.add_section()
    worst = (_ms(latency.worst_ms) for latency in heads.values())
    table.add_row("worst case, from the start of a frame", *worst, style="bold")
    table.add_row(
        "mean, from the centre of a frame", *(_ms(latency.mean_ms) for latency in heads.values())
    )
    return table


def _cost_table(price: Price) -> Table:
    head = "" if price.running is None else f" (while the head τ = {price.running} runs)"
    table = Table(title=f"\nCost{head}", title_justify="left")
    table.add_column("layer")
    for column in ("parameters", "MFLOP / frame", "MFLOP / s"):
        table.add_column(column, justify="right")
    frame_ms = price.config.frame_ms
    for name, cost in price.costs:
        table.add_row(name, *_cells(cost, frame_ms))
    table.add_section()
    table.add_row("total", *_cells(price.total, frame_ms), style="bold")
    return table


def _cells(cost: Cost, frame_ms: float) -> tuple[str, str, str]:
    return (
        f"{cost.parameters:,}",
        f"{cost.flops_per_frame / 1e6:,.3f}",
        f"{cost.flops_per_second(frame_ms) / 1e6:,.1f}",
    )


def _ms(ms: float) -> str:
    if math.isinf(ms):
        return "end of utterance"
    return f"{ms:,.6g}" if ms else "–"


def _notes(price: Price) -> list[str]:
    config, heads = price.config, price.heads
    notes = []
    if price.chosen is not None:
        worst_ms = _ms(heads[price.chosen].worst_ms)
        notes.append(f"A budget of {price.budget_ms:g} ms: τ = {price.chosen}, {worst_ms} ms.")
    if config.bidirectional:
        lengths = [f"{s} s: {heads[None].within(s * 1000):,.0f} ms" for s in (1, 5, 20)]
        notes.append(f"The latency is the utterance's length ({', '.join(lengths)}).")
    if config.convolutions and config.frame_ms == 40 and 19 in config.heads:
        front_end_ms = sum(
            item.ms for item in heads[19].items if item.name.startswith(("window", "convolution"))
        )
        notes.append(
            f"The 760 ms that is often quoted for Deep Speech 2 is 19 × 40 ms of lookahead alone: "
            f"it leaves out {_ms(front_end_ms)} ms of window and convolutions. (The paper never "
            f"prints it; its own time strides of 2, 1 and 1 make frames of 20 ms.)"
        )
    if config.attention is not None and config.bidirectional:
        notes.append(
            "Attention to the whole utterance compares every frame with every other, which the "
            "table leaves out: it grows with the utterance."
        )
    notes.append("Latency is algorithmic: computing comes on top. A multiply-add is 2 FLOPs.")
    if len(heads) > 1:
        notes.append(
            "Parameters are those of all heads together; FLOPs those of the one that runs."
        )
    return notes


def _report(price: Price) -> dict[str, Any]:
    """Convert the tables to JSON; a wait for the end of the utterance is null."""
    frame_ms = price.config.frame_ms

    def finite(ms: float) -> float | None:
        return None if math.isinf(ms) else round(ms, 6)

    def amounts(cost: Cost) -> dict[str, float]:
        return {
            "parameters": cost.parameters,
            "flops_per_frame": cost.flops_per_frame,
            "flops_per_second": cost.flops_per_second(frame_ms),
        }

    return {
        "frame_ms": frame_ms,
        "heads": [
            {
                "frames": head,
                "worst_ms": finite(latency.worst_ms),
                "mean_ms": finite(latency.mean_ms),
                "items": [
                    {"name": item.name, "ms": finite(item.ms), "mean_ms": finite(item.mean_ms)}
                    for item in latency.items
                ],
            }
            for head, latency in price.heads.items()
        ],
        "layers": [{"name": name, **amounts(cost)} for name, cost in price.costs],
        "total": amounts(price.total),
        "budget_ms": price.budget_ms,
        "chosen_frames": price.chosen,
    }
