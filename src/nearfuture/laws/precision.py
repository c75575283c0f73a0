"""Law 11: any dtype and device, where counts stay integers."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from hypothesis import strategies as st
from torch import Tensor, nn

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
from nearfuture.laws.trial import Trial
from nearfuture.laws.violation import TOLERANCE, Violation, same
from nearfuture.layers import StreamingLayer
from nearfuture.layers.state import State, flatten

DTYPES = (torch.float64, torch.float32, torch.bfloat16)
"""What every layer runs in, unless it is asked for less."""

_FINE, _COARSE = 2.0**-40, 2.0**-10
"""Changes of an input that float64 shows and float32 loses, and that both show."""

_OFFSET = 100.0
"""How far from 0 values may lie: what squares them, and subtracts, loses twice as many digits."""

_AMPLIFIED = 16.0
"""Outputs of values far from 0 may be off by this many times one rounding of them, or what that
moves."""


class _CastCase(NamedTuple):
    dtype: torch.dtype
    device: str
    cut: Partition
    offset: float = 0.0

    def __str__(self) -> str:
        around = f"for values around {self.offset:g} " if self.offset else ""
        return f"in {_short(self.dtype)} on {self.device} {around}{described(self.cut)}"


@law(11, "any dtype and device", streaming=False)
def any_dtype_and_device(
    trial: Trial,
    *,
    examples: int = 4,
    dtypes: Sequence[torch.dtype] = DTYPES,
) -> None:
    """Law 11: `layer.to(device, dtype)` computes there, in that dtype, and what it did before.

    `.to()` reaches every child and parameter. Outputs have the dtype that is asked for, state has
    it or one with more digits, counts stay int64 and go on counting where the dtype has no more
    integers (bfloat16: at 257). float64 is not rounded to float32 on the way. Values agree with
    those of `dtype` for the same weights and inputs, within the tolerance of the coarser of the
    two; where one rounding of the inputs alone moves the exact outputs further than that, only
    finiteness is asked. Where one rounding of what a submodule hands on is magnified before it
    comes out, as by a norm of nearly equal values, the tolerance is magnified as much. Values
    around 100 are fed too: they may be off by 16 roundings of an input, or 16 times what one such
    rounding moves, where that is more.

    Options, beside the arguments of every `Law`:
        examples: dtypes, devices and cuts to draw.
        dtypes: which; leave out what the layer is not made for. On the CPU, and on CUDA where
            there is one.

    Raises:
        LawBroken: naming the dtype, the device, and the tensor or both values.

    >>> from nearfuture.layers import GRU, Lookahead, Serial
    >>> any_dtype_and_device(Serial(GRU(2, 3), Lookahead(3, frames=2)))
    """
    hidden = next(_unregistered(trial.layer), None)
    if hidden:
        raise trial.broken(hidden)
    if torch.float64 in dtypes:
        trial.check_once(lambda: _not_rounded(trial))
    streams = not trial.refuses_to_stream()
    devices = ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",)

    def test(case: _CastCase) -> None:
        # TensorFloat-32 would compute float32 with the digits of float16.
        with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
            _same_there(trial, case, streams)

    explicit = [
        _CastCase(to, device, cut)
        for to in dtypes
        for device in devices
        for cut in (single_frames((3, 2)), at_once((trial.frames, 5, 0)))
    ]
    if torch.bfloat16 in dtypes:  # 256 + 1 = 256
        explicit.append(_CastCase(torch.bfloat16, "cpu", ((256, 1), (1, 1), (1, 2), (1, 0))))
    usual = at_once((trial.frames, 5, 0))
    explicit += [_CastCase(to, where, usual, _OFFSET) for to in dtypes for where in devices]
    trial.check(
        test,
        explicit=explicit,
        drawn=st.builds(
            _CastCase,
            st.sampled_from(dtypes),
            st.sampled_from(devices),
            partitions(trial.frames),
            st.sampled_from([0.0, _OFFSET]),
        ),
        examples=examples,
        describe=str,
    )


def _unregistered(layer: nn.Module) -> Iterator[str]:
    """Modules and parameters that an attribute holds and torch does not know of."""
    known = {id(part) for part in (*layer.modules(), *layer.parameters())}
    torchs_own = {"_modules", "_parameters", "_buffers"}
    for path, module in layer.named_modules():
        for name, value in vars(module).items():
            if name in torchs_own:
                continue
            for item in _items(value):
                if isinstance(item, nn.Module | nn.Parameter) and id(item) not in known:
                    where = ".".join(part for part in (path, name) if part)
                    yield (
                        f"{type(item).__name__} in the attribute {where} is not registered, so "
                        f"to() and parameters() miss it; nn.ModuleList and nn.ParameterList do not"
                    )


def _items(value: object) -> Iterator[object]:
    if isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from _items(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _items(item)
    else:
        yield value


def _same_there(trial: Trial, case: _CastCase, streams: bool) -> None:
    """Both ways in this dtype on this device, against the reference on the same numbers."""
    here = trial.fresh().to(device=case.device, dtype=case.dtype)
    lengths = lengths_of(case.cut)
    reference = trial.inputs(len(lengths), max(lengths)) + case.offset
    x = reference.to(device=case.device, dtype=case.dtype)
    exact = copy.deepcopy(here).to(device=reference.device, dtype=reference.dtype)
    same_x = x.to(reference)
    expected = whole(exact, same_x, lengths)
    coarser = max((case.dtype, reference.dtype), key=TOLERANCE.__getitem__)
    limit, eps = TOLERANCE[coarser], torch.finfo(coarser).eps
    moved = _farthest(whole(exact, _rounded(same_x, eps), lengths), expected)
    tells = moved <= limit
    if case.offset:
        moved = max(moved, eps * case.offset)
        limit, tells = max(limit, _AMPLIFIED * moved), math.isfinite(moved)
    inside: float | None = None  # measured only where it matters
    ways = {"whole": whole(here, x, lengths)}
    if streams:
        ways["in chunks"] = _streamed(here, x, case.cut)
    for way, outputs in ways.items():
        for b, (y, truth) in enumerate(zip(outputs, expected, strict=True)):
            _kind(y, x, f"outputs {way}")
            if len(y) != len(truth):
                raise Violation(f"row {b}, {len(y)} outputs {way}, {len(truth)} in the reference")
            fits = bool(truth.to(case.dtype).isfinite().all())
            if fits and not bool(y.isfinite().all()):
                raise Violation(f"row {b}, outputs {way} are not finite")
            if fits and tells and _farthest([y.to(truth)], [truth]) > limit:
                if inside is None:
                    inside = _moved_from_inside(exact, same_x, lengths, eps, expected)
                if math.isfinite(inside):  # otherwise it left what the layer is defined for
                    limit = max(limit, TOLERANCE[coarser] * inside / eps)
                names = (way, f"in {_short(reference.dtype)}")
                where = f"row {b}, "
                same(y.to(truth), truth, names=names, where=where, tolerance=limit, dtype=coarser)


def _moved_from_inside(
    exact: StreamingLayer, x: Tensor, lengths: list[int], eps: float, expected: list[Tensor]
) -> float:
    """How far outputs move where all that one submodule hands on moves by its last digit."""

    def hook(_: nn.Module, __: object, output: Any) -> Any:
        return _rounded(output, eps)

    farthest = 0.0
    for part in exact.modules():
        handle = part.register_forward_hook(hook)
        try:
            farthest = max(farthest, _farthest(whole(exact, x, lengths), expected))
        finally:
            handle.remove()
    return farthest


def _rounded(value: Any, eps: float) -> Any:
    """Tensors, or what has them in a tuple, where every value moves by its last digit.

    Neighbours move apart: moving all alike says nothing of what subtracts a mean.
    """
    if type(value) is tuple:
        return tuple(_rounded(item, eps) for item in value)
    if not isinstance(value, Tensor) or not value.is_floating_point():
        return value
    steps = (torch.arange(n).reshape(-1, *[1] * i) for i, n in enumerate(value.shape[::-1]))
    apart = (1 - 2 * (sum(steps, start=torch.tensor(0)) % 2)).to(value) * eps
    return value * (1 + apart)


def _farthest(moved: list[Tensor], expected: list[Tensor]) -> float:
    """How far the rows' outputs are from those expected, relative to max(1, |value|)."""
    moves = [torch.zeros(1)]
    for y, truth in zip(moved, expected, strict=True):
        moves.append(((y - truth).abs() / truth.abs().clamp(min=1)).flatten())
    farthest = float(torch.cat(moves).max())  # NaN, where there is one
    return math.inf if math.isnan(farthest) else farthest


def _streamed(layer: StreamingLayer, x: Tensor, cut: Partition) -> list[Tensor]:
    """`streamed`, with an eye on every tensor of every state."""
    state = started(layer, x)
    _kinds(state, x, "after start")
    if any(parameter.is_floating_point() for parameter in layer.parameters()):
        _kinds(layer.start(1), x, "after start without a dtype")
    pieces = []
    for new, after in advance(layer, x, cut, state):
        _kinds(after, x, "after a step")
        pieces.append(new)
        state = after
    with torch.no_grad():
        pieces.append(rows(layer, *layer.finish(state)))
    for new in pieces:
        for y in new:
            _kind(y, x, "outputs of a step")
    return [torch.cat(parts) for parts in zip(*pieces, strict=True)]


def _kinds(state: State, x: Tensor, when: str) -> None:
    for i, leaf in enumerate(flatten(state)):
        # Sums that grow for hours may be kept with more digits than were asked for, never fewer.
        wider = leaf.is_floating_point() and torch.promote_types(leaf.dtype, x.dtype) == leaf.dtype
        _kind(leaf, x.to(leaf.dtype) if wider else x, f"tensor {i} of the state {when}")


def _kind(tensor: Tensor, x: Tensor, what: str) -> None:
    expected = x.dtype if tensor.is_floating_point() else torch.int64
    if tensor.dtype != expected or tensor.device != x.device:
        raise Violation(
            f"{what}: {_short(tensor.dtype)} on {tensor.device} instead of {_short(expected)} on "
            f"{x.device}"
        )


def _not_rounded(trial: Trial) -> None:
    """A change that float64 resolves must show, wherever a large one does."""
    layer = trial.fresh().to(torch.float64)
    x = trial.inputs(2, trial.frames).to(torch.float64)
    noise = trial.inputs(2, trial.frames, other=1).to(torch.float64)
    lengths = [trial.frames] * 2
    base = torch.cat(whole(layer, x, lengths))
    fine, coarse = (
        (torch.cat(whole(layer, x + size * noise, lengths)) != base).sum()
        for size in (_FINE, _COARSE)
    )
    if coarse > base.numel() / 2 and fine < coarse / 10:
        raise Violation(
            f"an input that changes by {_COARSE:.0e} changes {int(coarse)} values, but by "
            f"{_FINE:.0e} only {int(fine)}: float64 is rounded to a coarser dtype on the way"
        )


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
