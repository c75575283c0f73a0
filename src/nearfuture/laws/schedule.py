"""Law 7: outputs appear exactly when the receptive field says."""

from __future__ import annotations

import torch

from nearfuture.laws.broken import LawBroken
from nearfuture.laws.stream import (
    Source,
    advance,
    inputs,
    prepare,
    refuses_to_stream,
    rows,
    single_frames,
    whole,
)

__all__ = ["emission_schedule"]


def emission_schedule(
    layer: Source,
    *,
    seed: int = 0,
    frames: int = 24,
    dtype: torch.dtype = torch.float64,
) -> None:
    """Law 7: after n input frames exactly `emitted(n)` outputs exist, at the end `total(n)`.

    Checked for every n up to `frames`, one frame at a time and in one chunk.

    Raises:
        LawBroken: with the first n that differs.

    >>> from nearfuture.layers import Lookahead
    >>> emission_schedule(Lookahead(2, frames=3))
    """
    law = "law 7 (emission schedule)"
    subject = prepare(layer, seed=seed, dtype=dtype)
    field = subject.field
    lengths = list(range(frames + 1))
    x = inputs(subject, len(lengths), frames, seed=seed)
    for n, y in zip(lengths, whole(subject, x, lengths), strict=True):
        _exactly(law, f"forward of {n} frames", len(y), field.total(n))
    for t in range(field.emitted(frames)):
        n = int(field.needed(t))
        without, with_it = field.emitted(n - 1), field.emitted(n)
        if not without <= t < with_it:
            raise LawBroken(
                law,
                f"needed({t}) says that output {t} exists after {n} frames and not before, but "
                f"emitted says {without} outputs after {n - 1} and {with_it} after {n}",
            )
    if refuses_to_stream(subject, law):
        return
    for cut in (single_frames(lengths), (tuple(lengths),)):
        emitted = [0] * len(lengths)
        read = [0] * len(lengths)
        how = "in single frames" if len(cut) > 1 else "in one chunk"
        state = subject.start(len(lengths), device=x.device, dtype=x.dtype)
        for chunk, (new, after) in zip(cut, advance(subject, x, cut, state), strict=True):
            state = after
            for b, y in enumerate(new):
                read[b] += chunk[b]
                emitted[b] += len(y)
                _exactly(law, f"{read[b]} frames {how}", emitted[b], field.emitted(read[b]))
        with torch.no_grad():
            tail = rows(subject, *subject.finish(state))
        for n, before, y in zip(lengths, emitted, tail, strict=True):
            _exactly(law, f"{n} frames {how} and finish", before + len(y), field.total(n))


def _exactly(law: str, after: str, got: int, expected: int) -> None:
    if got != expected:
        raise LawBroken(law, f"after {after}, {got} outputs instead of {expected}")
