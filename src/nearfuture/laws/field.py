"""Law 8: the declared receptive field is the measured one.

Shapes: `T` input frames, `U` output frames, `P` probes run together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from nearfuture.budget import ReceptiveField
from nearfuture.laws.law import law
from nearfuture.laws.stream import LayerOrFactory, inputs, variants
from nearfuture.laws.trial import Trial, enough_frames
from nearfuture.laws.violation import Violation
from nearfuture.layers import StreamingLayer

PROBES = (math.nan, 1e-2, -1e-2, 1.0, -1.0, 1e3, -1e3)
"""What is added to a frame, along a random direction of its features. NaN shows every path that
arithmetic takes, through weights of 0 too; the finite ones what passes."""

_BY_NAN = (
    "; only NaN shows it, which no weight of 0 keeps out: where values are weighed, as in "
    "attention, leave out those that may not be seen, by torch.where"
)

_TOGETHER = 64
"""Probes per batch: enough to be fast, few enough for long inputs."""


def dependency_matrix(
    layer: LayerOrFactory,
    frames: int = 16,
    *,
    seed: int = 0,
    initialisations: int = 3,
    probes: Sequence[float] = PROBES,
    dtype: torch.dtype = torch.float64,
) -> Tensor:
    """The dependency matrix: `matrix[t, s]` is true if output `t` changes with input frame `s`.

    The union over probes, initialisations, and the existence of a frame (a sequence that ends
    before it against one that ends with it). Compared bit for bit with an unchanged batch of the
    same shape.

    Args:
        layer: a layer, or a function that makes one.
        frames: T.
        seed: of weights (where they are made here) and inputs.
        initialisations: how many; a layer that exists is measured as it is first, then with
            `reset_parameters` of its modules.
        probes: what is added to a frame.
        dtype: of weights and inputs.

    Returns:
        (U, T) bool.

    >>> from nearfuture.layers import Lookahead
    >>> for row in dependency_matrix(Lookahead(2, frames=2), 4).int().tolist():
    ...     print(row)
    [1, 1, 1, 0]
    [0, 1, 1, 1]
    [0, 0, 1, 1]
    [0, 0, 0, 1]
    """
    together = min(frames, _TOGETHER)
    full = torch.full((together,), frames)
    changes = []
    for i, copy in enumerate(variants(layer, count=initialisations, seed=seed, dtype=dtype)):
        x = inputs(copy, 1, frames, seed=seed + i).expand(together, -1, -1)
        direction = inputs(copy, 1, 1, seed=seed + i + 1)[0, 0]
        base = _run(copy, x, full)
        for begin in range(0, frames, together):
            place = torch.arange(begin, min(begin + together, frames))
            row = place - begin
            changed = torch.zeros(len(place), base.shape[1], dtype=torch.bool)
            for probe in probes:
                probed = x.clone()
                probed[row, place] += probe * direction
                changed |= _differs(_run(copy, probed, full), base)[row]
            before, with_it = full.clone(), full.clone()
            before[row], with_it[row] = place, place + 1
            changed |= _differs(_run(copy, x, with_it), _run(copy, x, before))[row]
            changes.append(changed)
    blocks = math.ceil(frames / together)
    union = [torch.cat(changes[i : i + blocks]) for i in range(0, len(changes), blocks)]
    return torch.stack(union).any(dim=0).T.contiguous()


@law(8, "declared = measured", streaming=False)
def declared_is_measured(
    trial: Trial,
    *,
    examples: int = 3,
    frames: int | None = None,
) -> None:
    """Law 8: the frames an output depends on lie inside the declared field and reach its edges.

    A finite edge must be reached by finite probes: a window that ends in a weight of 0 promises
    too much. An infinite one must be reached by any. And a sequence that ends earlier may only
    change outputs that could not exist before its end.

    Options, beside the arguments of every `Law`:
        examples: initialisations to measure, each on inputs of its own.
        frames: length of the sequence; enough for every finite edge by default.

    Raises:
        LawBroken: naming the output, the frame and what the field declares.

    >>> from nearfuture.layers import Convolution
    >>> declared_is_measured(Convolution(2, 3, left=2, right=1, stride=2))
    """
    frames = enough_frames(trial.field) if frames is None else frames
    trial.check_once(lambda: _measure(trial, frames, examples))


def _measure(trial: Trial, frames: int, examples: int) -> None:
    finite, matrix = (
        dependency_matrix(
            trial.source,
            frames,
            seed=trial.seed,
            initialisations=examples,
            probes=probes,
            dtype=trial.dtype,
        )
        for probes in ([p for p in PROBES if math.isfinite(p)], PROBES)
    )
    _inside_and_to_the_edges(matrix, finite, trial.field, frames)
    if trial.field.chain:
        _sum_of_the_links(finite[: trial.field.total(frames)], trial.field)
    _only_the_end_changes(trial.layer, frames, trial.seed)


def _declared(field: ReceptiveField) -> str:
    return f"left={field.left}, right={field.right}, stride={field.stride}"


def _inside_and_to_the_edges(
    matrix: Tensor, finite: Tensor, field: ReceptiveField, frames: int
) -> None:
    end_of_use = _last_used(field, frames)
    for t, looks in enumerate(matrix[: field.total(frames)]):
        first, last = _window(field, t)
        seen = looks.nonzero()[:, 0].tolist()
        outside = [s for s in seen if not first <= s <= last]
        if outside:
            raise Violation(
                f"output {t} looks at input frame {outside[-1]}, but may look at "
                f"{max(0, first):.0f} … {last:.0f} only ({_declared(field)})"
                f"{'' if finite[t, outside].any() else _BY_NAN}"
            )
        for edge, end, name in ((first, 0, "left"), (last, end_of_use, "right")):
            frame = end if math.isinf(edge) else int(edge)
            reached = matrix if math.isinf(edge) else finite
            if 0 <= frame < frames and not reached[t, frame]:
                raise Violation(
                    f"output {t} does not look at input frame {frame}, the {name} edge that is "
                    f"declared ({_declared(field)})"
                )


def _sum_of_the_links(matrix: Tensor, field: ReceptiveField) -> None:
    """Check the field of a composition against the farthest dependencies of its outputs."""
    looks = [(t * field.stride, seen.nonzero()[:, 0]) for t, seen in enumerate(matrix)]
    farthest = {
        "left": max(now - int(seen[0]) for now, seen in looks if len(seen)),
        "right": max(int(seen[-1]) - now for now, seen in looks if len(seen)),
    }
    for name, reach in farthest.items():
        promised = getattr(field, name)
        if math.isfinite(promised) and reach != promised:
            raise Violation(
                f"outputs look {reach} input frames to the {name} of their own, but the "
                f"composition declares {promised} ({_declared(field)})"
            )


def _only_the_end_changes(layer: StreamingLayer, frames: int, seed: int) -> None:
    """A sequence cut to n frames has the `emitted(n)` first outputs of the whole one."""
    field = layer.field
    x = inputs(layer, 1, frames, seed=seed).expand(frames, -1, -1)
    cut = torch.arange(frames)
    base = _run(layer, x, torch.full_like(cut, frames))
    changed = _differs(_run(layer, x, cut), base)
    for n in range(frames):
        early = changed[n, : field.emitted(n)].nonzero()
        if len(early):
            raise Violation(
                f"output {int(early[0])} changes when the sequence ends after {n} frames instead "
                f"of {frames}, but it needs {field.needed(int(early[0]))} only"
            )


def _window(field: ReceptiveField, t: int) -> tuple[float, float]:
    """First and last input frame that output `t` may look at, through every link of the field."""
    first: float = t
    last: float = t
    for link in reversed(field.chain or (field,)):
        if math.isfinite(first):  # an infinite edge stays where it is
            first = first // link.block * link.block * link.stride - link.left
        if math.isfinite(last):
            last = (last // link.block * link.block + link.block - 1) * link.stride + link.right
    return first, last


def _last_used(field: ReceptiveField, frames: int) -> int:
    """The last input frame that any output looks at; complete windows may leave some unread."""
    counts = [frames]
    links = field.chain or (field,)
    for link in links:
        counts.append(link.total(counts[-1]))
    last: float = counts.pop() - 1
    for link, count in zip(reversed(links), reversed(counts), strict=True):
        last = (last // link.block * link.block + link.block - 1) * link.stride + link.right
        last = min(last, count - 1)
    return int(last)


def _run(layer: StreamingLayer, x: Tensor, lengths: Tensor) -> Tensor:
    with torch.no_grad():
        return layer(x, lengths.to(x.device))[0].cpu()


def _differs(got: Tensor, expected: Tensor) -> Tensor:
    """(B, U) where any feature differs in any bit; NaN equals NaN."""
    same = (got == expected) | (got.isnan() & expected.isnan())
    return ~same.all(dim=-1)
