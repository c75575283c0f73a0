"""Law 10: a stream that starts knows nothing of the streams before it or beside it."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from nearfuture.laws.law import law
from nearfuture.laws.strategies import interrupted
from nearfuture.laws.stream import (
    Partition,
    advance,
    described,
    lengths_of,
    rows,
    single_frames,
    started,
    streamed,
    until,
)
from nearfuture.laws.trial import EXAMPLES, Trial
from nearfuture.laws.violation import same
from nearfuture.layers import StreamingLayer
from nearfuture.layers.state import flatten, put_rows


class _RestartCase(NamedTuple):
    """Two streams of the same chunks, one of which starts before its chunk `at`."""

    cut: Partition
    at: int

    def __str__(self) -> str:
        return f"{described(self.cut)}, and again from before chunk {self.at}"


@law(10, "reset = new stream")
def reset_equals_new_stream(trial: Trial, *, examples: int = EXAMPLES) -> None:
    """Law 10: rows reset with `put_rows(state, rows, start(…))` equal a stream that is the first.

    After use, after `finish`, and while another stream is open, a stream of the same layer gives
    bit for bit what a copy gives that has never run: the layer remembers nothing, `start` hands
    out no tensor twice, and no buffer changes in eval mode.

    Options, beside the arguments of every `Law`:
        examples: cuts and moments to draw.

    Raises:
        LawBroken: naming what came before, and the first difference.

    >>> from nearfuture.layers import GRU, Lookahead, Serial
    >>> reset_equals_new_stream(Serial(GRU(2, 3), Lookahead(3, frames=2)))
    """
    trial.check(
        lambda case: _forgets(trial, case),
        explicit=[
            _RestartCase(single_frames([3, 1]), 2),
            _RestartCase(((5, 0), (trial.frames, 2)), 1),
        ],
        drawn=interrupted(trial.frames).map(lambda case: _RestartCase(*case)),
        examples=examples,
        describe=str,
    )


def _forgets(trial: Trial, case: _RestartCase) -> None:
    cut, at = case
    lengths = lengths_of(cut)
    batch = len(lengths)
    first = trial.inputs(batch, max(lengths))
    second = trial.inputs(batch, max(lengths), other=1)
    fresh = streamed(trial.fresh(), second, cut)
    layer = trial.fresh()
    buffers = {name: buffer.clone() for name, buffer in layer.named_buffers()}

    state = until(layer, first, cut[:at])[1]
    everyone = torch.arange(batch, device=first.device)
    again = put_rows(state, everyone, started(layer, first))
    _equal(streamed(layer, second, cut, again), fresh, "reset in mid-stream")
    _equal(streamed(layer, second, cut), fresh, "after finish")
    _equal(_beside(layer, first, second, cut), fresh, "while another stream is open")
    for name, buffer in layer.named_buffers():
        names = ("after some streams", "before")
        same(buffer, buffers[name], names=names, where=f"buffer {name}, ", words=(), tolerance=0)

    for leaf in flatten(started(layer, first)):
        leaf.fill_(77)
    untouched = flatten(started(trial.fresh(), first))
    for i, (leaf, was) in enumerate(zip(flatten(started(layer, first)), untouched, strict=True)):
        where = f"two starts share memory: tensor {i}, "
        same(leaf, was, names=("from the second", "untouched"), where=where, words=(), tolerance=0)


def _equal(got: list[Tensor], fresh: list[Tensor], when: str) -> None:
    for b, (here, alone) in enumerate(zip(got, fresh, strict=True)):
        same(here, alone, names=(when, "new stream"), where=f"row {b}, ", tolerance=0)


def _beside(layer: StreamingLayer, first: Tensor, second: Tensor, cut: Partition) -> list[Tensor]:
    """The outputs of a second stream whose steps alternate with those of a first."""
    pieces: list[list[Tensor]] = []
    others = advance(layer, first, cut, started(layer, first))
    mine = advance(layer, second, cut, started(layer, second))
    for (_, other), (new, state) in zip(others, mine, strict=True):
        pieces.append(new)
        open_still, ends = other, state
    with torch.no_grad():
        layer.finish(open_still)
        pieces.append(rows(layer, *layer.finish(ends)))
    return [torch.cat(parts) for parts in zip(*pieces, strict=True)]
