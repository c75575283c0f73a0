"""Law 2: the state after n inputs does not remember how they were cut."""

from __future__ import annotations

from nearfuture.laws.law import law
from nearfuture.laws.strategies import partitions
from nearfuture.laws.stream import (
    Partition,
    at_once,
    described,
    lengths_of,
    single_frames,
    until,
)
from nearfuture.laws.trial import EXAMPLES, Trial
from nearfuture.laws.violation import same
from nearfuture.layers.state import flatten


@law(2, "state is partition-free")
def partition_free_state(trial: Trial, *, examples: int = EXAMPLES) -> None:
    """Law 2: leaf by leaf the state after n inputs is the same, however they were cut.

    All of every leaf is compared, so what lies beyond a count must not differ either. Integers are
    compared exactly.

    Options, beside the arguments of every `Law`:
        examples: cuts to draw.

    Raises:
        LawBroken: naming the smallest cut, the tensor of the state, and both values.

    >>> from nearfuture.layers import Convolution
    >>> partition_free_state(Convolution(2, 3, left=3, right=2, stride=2))
    """

    def test(cut: Partition) -> None:
        lengths = lengths_of(cut)
        x = trial.inputs(len(lengths), max(lengths))
        expected = flatten(until(trial.fresh(), x, single_frames(lengths))[1])
        got = flatten(until(trial.fresh(), x, cut)[1])
        for i, (here, there) in enumerate(zip(got, expected, strict=True)):
            for b in range(len(lengths)):
                where = f"tensor {i} of the state, row {b}, "
                same(here[b], there[b], names=("so", "in single frames"), where=where)

    trial.check(
        test,
        explicit=[at_once(n) for n in ((3, 1, 0), (trial.frames, 2, 1))],
        drawn=partitions(trial.frames),
        examples=examples,
        describe=described,
    )
