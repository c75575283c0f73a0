"""Law 7: outputs appear exactly when the receptive field declares."""

from __future__ import annotations

import torch

from nearfuture.laws.law import law
from nearfuture.laws.strategies import partitions
from nearfuture.laws.stream import (
    Partition,
    advance,
    at_once,
    described,
    lengths_of,
    rows,
    single_frames,
    started,
    whole,
)
from nearfuture.laws.trial import EXAMPLES, Trial
from nearfuture.laws.violation import Violation


@law(7, "emission schedule", streaming=False)
def emission_schedule(trial: Trial, *, examples: int = EXAMPLES) -> None:
    """Law 7: after n input frames exactly `emitted(n)` outputs exist, at the end `total(n)`.

    For every n up to enough for all edges, one frame at a time and in one chunk, and for drawn
    cuts. `needed` must be the inverse of `emitted`.

    Options, beside the arguments of every `Law`:
        examples: cuts to draw.

    Raises:
        LawBroken: with the smallest n that differs.

    >>> from nearfuture.layers import Lookahead
    >>> emission_schedule(Lookahead(2, frames=3))
    """
    field = trial.field
    for t in range(field.emitted(trial.frames)):
        n = int(field.needed(t))
        without, with_it = field.emitted(n - 1), field.emitted(n)
        if not without <= t < with_it:
            raise trial.broken(
                f"needed({t}) declares that output {t} exists after {n} frames and not before, but "
                f"emitted declares {without} outputs after {n - 1} and {with_it} after {n}"
            )
    every = range(trial.frames + 1)
    streams = not trial.refuses_to_stream()
    trial.check(
        lambda cut: _on_time(trial, cut, streams),
        explicit=[single_frames(every), at_once(every)] if streams else [at_once(every)],
        drawn=partitions(trial.frames),
        examples=examples,
        describe=described,
    )


def _on_time(trial: Trial, cut: Partition, streams: bool) -> None:
    field, lengths = trial.field, lengths_of(cut)
    x = trial.inputs(len(lengths), max(lengths))
    for b, y in enumerate(whole(trial.fresh(), x, lengths)):
        _exactly(f"row {b}, forward of {lengths[b]} frames", len(y), field.total(lengths[b]))
    if not streams:
        return
    layer = trial.fresh()
    state = started(layer, x)
    emitted = [0] * len(lengths)
    read = [0] * len(lengths)
    for chunk, (new, after) in zip(cut, advance(layer, x, cut, state), strict=True):
        state = after
        for b, y in enumerate(new):
            read[b] += chunk[b]
            emitted[b] += len(y)
            _exactly(f"row {b}, after {read[b]} frames", emitted[b], field.emitted(read[b]))
    with torch.no_grad():
        tail = rows(layer, *layer.finish(state))
    for b, (n, before, y) in enumerate(zip(lengths, emitted, tail, strict=True)):
        _exactly(f"row {b}, after {n} frames and finish", before + len(y), field.total(n))


def _exactly(when: str, got: int, expected: int) -> None:
    if got != expected:
        raise Violation(f"{when}: {got} outputs instead of {expected}")
