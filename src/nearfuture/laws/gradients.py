"""Law 9: learning from chunks is learning from the whole sequence."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from nearfuture.laws.law import law
from nearfuture.laws.strategies import partitions
from nearfuture.laws.stream import (
    Partition,
    at_once,
    described,
    lengths_of,
    single_frames,
    streamed,
    whole,
)
from nearfuture.laws.trial import EXAMPLES, Trial
from nearfuture.laws.violation import same
from nearfuture.layers import StreamingLayer


@law(9, "gradients agree")
def gradients_agree(trial: Trial, *, examples: int = EXAMPLES) -> None:
    """Law 9: `∂L/∂x` and `∂L/∂w` in chunks equal those of the whole sequence.

    `L = Σ cos(i) · y_i` over all valid outputs, in eval mode. The gradient flows back through the
    state from chunk to chunk: nothing is detached, nothing overwritten, and padding of NaN in a
    chunk does not reach it.

    Options, beside the arguments of every `Law`:
        examples: cuts to draw.

    Raises:
        LawBroken: naming the smallest cut, the input's row or the parameter, and both values.

    >>> from nearfuture.layers import GRU, Lookahead, Serial
    >>> gradients_agree(Serial(GRU(2, 3), Lookahead(3, frames=2)))
    """

    def test(cut: Partition) -> None:
        lengths = lengths_of(cut)
        layer = trial.fresh()
        x = trial.inputs(len(lengths), max(lengths)).clone().requires_grad_()
        # cuDNN has no gradient in eval mode.
        with torch.backends.cudnn.flags(enabled=False):
            expected = _gradients(layer, x, whole(layer, x, lengths, gradients=True))
            got = _gradients(layer, x, streamed(layer, x, cut, gradients=True))
        for name, there in expected.items():
            words = ("frame", "feature") if name.startswith("the input") else ()
            where = f"gradient of {name}, "
            same(got[name], there, names=("in chunks", "whole"), where=where, words=words)

    lengths = (max(9, trial.frames // 2), 3, 0)
    trial.check(
        test,
        explicit=[single_frames((3, 2)), at_once(lengths), single_frames(lengths)],
        drawn=partitions(trial.frames),
        examples=examples,
        describe=described,
    )


def _gradients(layer: StreamingLayer, x: Tensor, outputs: Sequence[Tensor]) -> dict[str, Tensor]:
    """Return the gradients of the inputs, by row, and of every parameter; 0 without a path."""
    loss = x.sum() * 0
    for y in outputs:
        weights = torch.cos(torch.arange(y.numel(), dtype=y.dtype, device=y.device))
        loss = loss + (y * weights.reshape(y.shape)).sum()
    learns = {name: p for name, p in layer.named_parameters() if p.requires_grad}
    of_x, *others = torch.autograd.grad(loss, [x, *learns.values()], materialize_grads=True)
    by_row = {f"the input, row {b}": row for b, row in enumerate(of_x)}
    return by_row | dict(zip(learns, others, strict=True))
