"""Draw docs/attention.svg: who looks at whom under each mask, measured on the layer itself.

    python tools/draw_attention_masks.py

Each cell is a finding of `nearfuture.laws.dependency_matrix`: an input frame is changed, and the
output frames that change in any bit are marked.
"""

from pathlib import Path

import matplotlib
import torch
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from torch import Tensor

from nearfuture import laws
from nearfuture.layers import (
    AttentionMask,
    CausalMask,
    ChunkedMask,
    FullMask,
    SelfAttention,
    SlidingMask,
)

PATH = Path(__file__).parents[1] / "docs" / "attention.svg"
FRAMES = 16
MASKS: dict[str, AttentionMask] = {
    "FullMask()": FullMask(),
    "CausalMask()": CausalMask(),
    "SlidingMask(left=4)": SlidingMask(left=4),
    "SlidingMask(left=4, right=2)": SlidingMask(left=4, right=2),
    "ChunkedMask(chunk=4,\nleft_chunks=1)": ChunkedMask(chunk=4, left_chunks=1),
    "ChunkedMask(chunk=4,\nleft_chunks=1, right=2)": ChunkedMask(chunk=4, left_chunks=1, right=2),
}
NOTHING, PAST, NOW, FUTURE = range(4)
COLOURS = ("#f3f5f7", "#8fb8de", "#1f2328", "#e69f00")
"""Blue for the past, black for a frame itself, orange for the future: apart for all eyes."""
INK, RULE = "#1f2328", "#ffffff"


def cells(mask: AttentionMask) -> Tensor:
    """(T, T): nothing, past, now or future for each output and input."""
    layer = SelfAttention(4, 2, mask=mask)
    seen = laws.dependency_matrix(layer, FRAMES, initialisations=1)
    t = torch.arange(FRAMES)
    assert torch.equal(seen, mask.allows(t[:, None], t)), mask
    kind = 2 + (t[None] - t[:, None]).sign()
    return torch.where(seen, kind, NOTHING)


def draw(axes: Axes, name: str, mask: AttentionMask) -> None:
    """Draw one mask, with the time of its first output below."""
    axes.imshow(cells(mask), cmap=ListedColormap(COLOURS), vmin=0, vmax=3, interpolation="none")
    axes.set_title(name, fontsize=8.5, family="monospace", color=INK, pad=6)
    edges = torch.arange(FRAMES + 1) - 0.5
    axes.hlines(edges, -0.5, FRAMES - 0.5, color=RULE, linewidth=0.8)
    axes.vlines(edges, -0.5, FRAMES - 0.5, color=RULE, linewidth=0.8)
    ticks = range(0, FRAMES, 4)
    axes.set_xticks(ticks, [str(t) for t in ticks], fontsize=8, color=INK)
    axes.set_yticks(ticks, [str(t) for t in ticks], fontsize=8, color=INK)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    field = mask.field
    waits = field.needed(0) - 1
    first = "at the end of the sequence" if waits == float("inf") else f"after frame {waits:.0f}"
    axes.set_xlabel(f"first output: {first}", fontsize=8, color=INK, labelpad=5)


def main() -> None:
    """Measure all masks and write the figure."""
    torch.manual_seed(0)
    matplotlib.rcParams["svg.hashsalt"] = "attention"
    matplotlib.rcParams["svg.fonttype"] = "none"
    figure = Figure(figsize=(8.2, 6.8), layout="constrained", facecolor="white")
    engine = figure.get_layout_engine()
    assert engine is not None
    engine.set(h_pad=0.14, w_pad=0.06)
    panels = figure.subplots(2, 3)
    for axes, (name, mask) in zip(panels.flat, MASKS.items(), strict=True):
        draw(axes, name, mask)
    panels[0, 0].set_ylabel("output frame t", fontsize=8.5, color=INK)
    panels[1, 0].set_ylabel("output frame t", fontsize=8.5, color=INK)
    figure.supxlabel("input frame s", fontsize=8.5, color=INK)
    names = ("not seen", "past", "the frame itself", "future")
    handles = [
        Patch(facecolor=c, edgecolor="#c9ced4", linewidth=0.5, label=n)
        for c, n in zip(COLOURS, names, strict=True)
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=4, frameon=False, fontsize=8.5)
    figure.savefig(PATH, metadata={"Date": None})


if __name__ == "__main__":
    main()
