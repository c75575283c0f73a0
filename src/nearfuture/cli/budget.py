"""`nearfuture budget`: what a model waits for and what it costs, from its sizes alone."""

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

from cyclopts import Parameter
from rich.table import Table

from nearfuture.budget import (
    Blueprint,
    Cell,
    ConvolutionShape,
    Cost,
    Latency,
    Merge,
    largest_lookahead,
)
from nearfuture.budget.presets import PRESETS, Preset
from nearfuture.cli.console import Console
from nearfuture.error import NearfutureError

Flag = Annotated[bool, Parameter(negative="", show_default=False)]
Heads = Mapping[int | None, Latency]
Costs = list[tuple[str, Cost]]


def budget(
    *,
    preset: Preset = "small",
    budget_ms: Annotated[float | None, Parameter(name="--budget")] = None,
    frames: str | None = None,
    rate: int | None = None,
    window_ms: float | None = None,
    hop_ms: float | None = None,
    mels: int | None = None,
    stack: int | None = None,
    conv: Annotated[list[str] | None, Parameter(negative="")] = None,
    causal_conv: Flag = False,
    project: bool | None = None,
    cell: Cell | None = None,
    hidden: int | None = None,
    layers: int | None = None,
    biases: int | None = None,
    bidirectional: Flag = False,
    merge: Merge | None = None,
    share_input: Flag = False,
    batch_norm: bool | None = None,
    layer_norm: bool | None = None,
    mixing: Flag = False,
    output_hidden: bool | None = None,
    outputs: int | None = None,
    resampler_ms: float = 0.0,
    quantum_wait_ms: float = 0.0,
    as_json: Annotated[bool, Parameter(name="--json", negative="", show_default=False)] = False,
) -> None:
    """Print what a model waits for and what it costs, from its sizes alone.

    Start from a preset and change any of its sizes.

    Args:
        preset: The sizes to start from.
        budget_ms: A promise in ms; picks the largest lookahead that keeps it.
        frames: Lookaheads in frames, a head each: "0,4,8,19".
        rate: Samples per second.
        window_ms: Length of a spectral window in ms.
        hop_ms: From one window to the next in ms.
        mels: Mel bands per window; 0 for the power spectrum itself.
        stack: Consecutive frames that are read as one.
        conv: A convolution below the recurrent layers, "kernel,stride,channels" in frames;
            two more numbers, the kernel and stride over frequency bands, make it 2-D. Repeat it
            for more of them.
        causal_conv: Pad the convolutions on the left only, so that they look at no future.
        project: A linear layer below the recurrent layers, to their width.
        cell: The recurrent cell.
        hidden: Width of each recurrent state.
        layers: Recurrent layers.
        biases: Biases per gate: 2 as torch stores them, 1 in the textbooks, 0 to count weights.
        bidirectional: Each layer also runs from the end of the utterance to its start.
        merge: How two directions meet; concat unless said otherwise.
        share_input: Two directions share their input weights.
        batch_norm: A batch normalisation on each convolution and input projection; its shift is
            their one bias.
        layer_norm: A layer normalisation below each recurrent layer, and one above them all.
        mixing: Lookaheads of whole matrices instead of one weight per channel.
        output_hidden: A linear layer more below the output.
        outputs: Symbols, the blank included.
        resampler_ms: Right context of a resampler in front, in ms.
        quantum_wait_ms: Longest wait for a quantum of audio to fill, in ms.
        as_json: Print one JSON object instead of tables.
    """
    start = PRESETS[preset]()
    if not (bidirectional or start.bidirectional) and (merge is not None or share_input):
        raise NearfutureError("--merge and --share-input have no effect without --bidirectional")
    sizes = {
        "rate": rate,
        "window_ms": window_ms,
        "hop_ms": hop_ms,
        "stack": stack,
        "project": project,
        "cell": cell,
        "hidden": hidden,
        "layers": layers,
        "biases": biases,
        "merge": merge,
        "batch_norm": batch_norm,
        "layer_norm": layer_norm,
        "output_hidden": output_hidden,
        "outputs": outputs,
    }
    changes: dict[str, Any] = {name: size for name, size in sizes.items() if size is not None}
    flags = {"bidirectional": bidirectional, "share_input": share_input, "mixing": mixing}
    changes |= {name: True for name, given in flags.items() if given}
    if mels is not None:
        changes["mels"] = mels or None
    if frames is not None:
        changes["heads"] = _numbers("--frames", frames)
    elif bidirectional:
        changes["heads"] = ()
    convolutions = start.convolutions if conv is None else tuple(map(_convolution, conv))
    if causal_conv and not convolutions:
        raise NearfutureError("--causal-conv has no effect without --conv")
    convolutions = tuple(replace(shape, causal=causal_conv) for shape in convolutions)
    plan = replace(start, convolutions=convolutions, **changes)

    heads = {
        head: plan.latency(head, resampler_ms=resampler_ms, quantum_wait_ms=quantum_wait_ms)
        for head in (plan.heads or (None,))
    }
    chosen = None
    if budget_ms is not None:
        chosen = largest_lookahead(budget_ms, {head or 0: lat for head, lat in heads.items()})
    running = chosen if chosen is not None else max(plan.heads, default=None)
    costs = list(plan.costs(running))
    if as_json:
        print(json.dumps(_report(plan, heads, costs, budget_ms, chosen), ensure_ascii=False))
        return
    console = Console(highlight=False)
    console.print(_headline(plan), _latency_table(heads, chosen), _cost_table(plan, costs, running))
    for note in _notes(plan, heads, budget_ms, chosen):
        console.print(f"• {note}")


def _numbers(flag: str, text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise NearfutureError(f"{flag} takes whole numbers between commas, not {text!r}") from None


def _convolution(text: str) -> ConvolutionShape:
    numbers = _numbers("--conv", text)
    if len(numbers) not in (3, 5):
        raise NearfutureError(
            f"--conv takes kernel,stride,channels or kernel,stride,channels,band kernel,band "
            f"stride, not {text!r}"
        )
    band_kernel, band_stride = numbers[3:] or (None, 1)
    return ConvolutionShape(
        kernel=numbers[0],
        stride=numbers[1],
        channels=numbers[2],
        band_kernel=band_kernel,
        band_stride=band_stride,
    )


def _headline(plan: Blueprint) -> str:
    bands = "power spectrum" if plan.mels is None else f"{plan.mels} mel bands"
    directions = "bidirectional " if plan.bidirectional else ""
    stacked = f", {plan.stack} read as one" if plan.stack > 1 else ""
    return (
        f"[bold]{plan.layers} × {directions}{plan.cell.upper()}-{plan.hidden}[/bold] on "
        f"{plan.rate / 1000:g} kHz audio, windows of {plan.window_ms:g} ms every "
        f"{plan.hop_ms:g} ms, {bands}{stacked}: a frame is {plan.frame_ms:g} ms\n"
    )


def _latency_table(heads: Heads, chosen: int | None) -> Table:
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


def _cost_table(plan: Blueprint, costs: Costs, running: int | None) -> Table:
    head = "" if running is None else f" (while the head τ = {running} runs)"
    table = Table(title=f"\nCost{head}", title_justify="left")
    table.add_column("layer")
    for column in ("parameters", "MFLOP / frame", "MFLOP / s"):
        table.add_column(column, justify="right")
    for name, cost in costs:
        table.add_row(name, *_cells(cost, plan.frame_ms))
    table.add_section()
    total = sum((cost for _, cost in costs), Cost())
    table.add_row("total", *_cells(total, plan.frame_ms), style="bold")
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


def _notes(plan: Blueprint, heads: Heads, budget_ms: float | None, chosen: int | None) -> list[str]:
    notes = []
    if chosen is not None:
        notes.append(
            f"A budget of {budget_ms:g} ms: τ = {chosen}, {_ms(heads[chosen].worst_ms)} ms."
        )
    if plan.bidirectional:
        lengths = [f"{s} s: {heads[None].within(s * 1000):,.0f} ms" for s in (1, 5, 20)]
        notes.append(f"The latency is the utterance's length ({', '.join(lengths)}).")
    if plan.convolutions and plan.frame_ms == 40 and 19 in plan.heads:
        front_end_ms = sum(
            item.ms for item in heads[19].items if item.name.startswith(("window", "convolution"))
        )
        notes.append(
            f"The 760 ms that is often quoted for Deep Speech 2 is 19 × 40 ms of lookahead alone: "
            f"it leaves out {_ms(front_end_ms)} ms of window and convolutions. (The paper never "
            f"prints it; its own time strides of 2, 1 and 1 make frames of 20 ms.)"
        )
    notes.append("Latency is algorithmic: computing comes on top. A multiply-add is 2 FLOPs.")
    if len(plan.heads) > 1:
        notes.append(
            "Parameters are those of all heads together; FLOPs those of the one that runs."
        )
    return notes


def _report(
    plan: Blueprint, heads: Heads, costs: Costs, budget_ms: float | None, chosen: int | None
) -> dict[str, Any]:
    """Everything the tables say; a wait for the end of the utterance is null."""

    def finite(ms: float) -> float | None:
        return None if math.isinf(ms) else round(ms, 6)

    def amounts(cost: Cost) -> dict[str, float]:
        return {
            "parameters": cost.parameters,
            "flops_per_frame": cost.flops_per_frame,
            "flops_per_second": cost.flops_per_second(plan.frame_ms),
        }

    return {
        "frame_ms": plan.frame_ms,
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
            for head, latency in heads.items()
        ],
        "layers": [{"name": name, **amounts(cost)} for name, cost in costs],
        "total": amounts(sum((cost for _, cost in costs), Cost())),
        "budget_ms": budget_ms,
        "chosen_frames": chosen,
    }
