"""`nearfuture budget`: what a model waits for and what it costs, from its sizes alone."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from cyclopts import Parameter
from rich.table import Table

from nearfuture.budget import PRESETS, Cost, Latency, Preset, RecognizerConfig, largest_lookahead
from nearfuture.cli.console import Console
from nearfuture.cli.model_sizes import Sizes


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
