"""The test of a layer by a law: copies, inputs, and the smallest case that breaks the law.

Shapes: `B` batch, `T` frames, `D` features.
"""

from __future__ import annotations

import copy
import inspect
import math
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import reduce
from typing import TypeVar

import torch
from hypothesis.strategies import SearchStrategy
from torch import Tensor

from nearfuture.budget import ReceptiveField
from nearfuture.error import NotStreamable
from nearfuture.laws.strategies import smallest
from nearfuture.laws.stream import LayerOrFactory, inputs, prepare
from nearfuture.laws.violation import LawBroken, Violation
from nearfuture.layers import StreamingLayer
from nearfuture.layers.random import manual_seed

EXAMPLES = 6
"""Cases that a law draws, besides the explicit ones, by default."""

_HOOKS = frozenset(
    name
    for name, value in vars(torch.nn.Module()).items()
    if "hooks" in name and isinstance(value, OrderedDict)
)
"""Where torch keeps the hooks of every module."""

_TO_SHRINK = 60
"""Cases drawn in search of a smaller one, once an explicit one has failed."""

Case = TypeVar("Case")


def enough_frames(field: ReceptiveField) -> int:
    """Frames in which several outputs see both finite edges of what they look at.

    Where a bidirectional layer stands above complete windows, the finite edges are those of the
    windows: each link of the chain counts with what it has.

    >>> enough_frames(ReceptiveField(left=2, right=1, stride=2))
    17
    >>> features = ReceptiveField(right=24, stride=10, padded=False)
    >>> enough_frames(features.then(ReceptiveField(left=math.inf, right=math.inf)))
    62
    """
    links = [
        replace(link, left=_finite(link.left), right=_finite(link.right))
        for link in field.chain or (field,)
    ]
    finite = reduce(lambda below, above: below.then(above), links)
    outputs = math.ceil(finite.left / finite.stride) + 3
    return int(finite.needed(outputs)) + 7


def _finite(edge: float) -> float:
    return 0 if math.isinf(edge) else edge


class Trial:
    """The test of a layer by one call of a law.

    Args:
        law: its number and name.
        check: the function, to say how to call it again.
        layer: a layer, or a function that makes one.
        seed: of weights (where they are made here), inputs and cases.
        dtype: of weights and inputs.
        options: the other arguments of the call.
    """

    def __init__(
        self,
        law: str,
        check: Callable[..., None],
        layer: LayerOrFactory,
        *,
        seed: int,
        dtype: torch.dtype,
        **options: object,
    ) -> None:
        self.law = law
        self.source = layer
        self.seed = seed
        self.dtype = dtype
        self.layer = prepare(layer, seed=seed, dtype=dtype)
        self.field = self.layer.field
        self.frames = max(16, enough_frames(self.field))
        self.again = _call(check, {"seed": seed, "dtype": dtype, **options})
        self._inputs: dict[int, Tensor] = {}
        # Frozen declarations and torch's empty dictionaries of hooks would take longer to copy than
        # the weights. Whatever else is empty, a layer may fill.
        self._shared = {
            id(value): value
            for part in self.layer.modules()
            for name, value in vars(part).items()
            if isinstance(value, ReceptiveField) or (name in _HOOKS and not value)
        }

    def fresh(self) -> StreamingLayer:
        """Copy the layer, so that no case depends on the one before."""
        return copy.deepcopy(self.layer, dict(self._shared))

    def inputs(self, batch: int, frames: int, *, other: int = 0) -> Tensor:
        """(B, T, D), the beginning of the same values whatever B and T; `other` values if not 0."""
        have = self._inputs.get(other)
        if have is None or have.shape[0] < batch or have.shape[1] < frames:
            shape = (max(batch, 4), max(frames, 8 * self.frames, 300))
            have = inputs(self.layer, *shape, seed=self.seed + other)
            self._inputs[other] = have
        return have[:batch, :frames]

    def refuses_to_stream(self) -> bool:
        """Whether the layer raises `NotStreamable`, since it needs all of the future or the past.

        A layer whose past has no bound may stream (a recurrence has a state) or refuse (causal
        attention would have to keep every frame).
        """
        raised: Exception | None = None
        with torch.random.fork_rng(devices=[]):
            manual_seed(self.seed)
            try:
                self.fresh().start(2)
            except Exception as error:
                raised = error
        refuses = isinstance(raised, NotStreamable)
        reads_everything = math.isinf(self.field.right)
        if reads_everything and not refuses:
            but = f"raises {_first_line(raised)} instead of" if raised else "does not raise"
            fault = f"right = inf is declared, but start() {but} NotStreamable"
            raise self.broken(fault) from raised
        if raised and refuses and not (reads_everything or math.isinf(self.field.left)):
            declared = f"right = {self.field.right} is declared"
            raise self.broken(
                f"{declared}, but start() refuses to stream ({_first_line(raised)})"
            ) from raised
        return refuses

    def broken(self, where: str, fault: str = "") -> LawBroken:
        """The error of this law."""
        return LawBroken(self.law, where, self.again, fault)

    def check(
        self,
        test: Callable[[Case], None],
        *,
        explicit: Iterable[Case],
        drawn: SearchStrategy[Case],
        examples: int,
        describe: Callable[[Case], str],
    ) -> None:
        """Try the explicit cases, then drawn ones; report the smallest that raises.

        Args:
            test: raises a `Violation` where a case breaks the law. Whatever else it raises comes
                from the layer, which then breaks the law as well.
            explicit: cheap cases, in which most faults show at once.
            drawn: all cases.
            examples: how many of them.
            describe: a case in words.
        """

        def violation(case: Case) -> Violation | None:
            return self._violation(lambda: test(case))

        plain = next((case for case in explicit if violation(case)), None)
        if plain is not None:
            examples = max(examples, _TO_SHRINK)
        case = plain
        if examples > 0:
            drawn_case = smallest(
                drawn, lambda c: bool(violation(c)), seed=self.seed, examples=examples
            )
            case = plain if drawn_case is None else drawn_case
        if case is None:
            return
        broken = violation(case) or Violation(
            "differs from one call to the next: there is hidden state"
        )
        raise self.broken(f"{describe(case)}, {broken}", str(broken)) from broken.__cause__

    def check_once(self, test: Callable[[], None]) -> None:
        """Run a test that has no cases."""
        broken = self._violation(test)
        if broken:
            raise self.broken(str(broken)) from broken.__cause__

    def _violation(self, test: Callable[[], None]) -> Violation | None:
        """What is wrong, with the same random numbers for a layer that draws some."""
        with torch.random.fork_rng(devices=[]):
            manual_seed(self.seed)
            try:
                test()
            except Violation as violation:
                return violation
            except Exception as error:
                raised = Violation(f"the layer raises {_first_line(error)}")
                raised.__cause__ = error
                return raised
        return None


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]


def _call(check: Callable[..., None], options: dict[str, object]) -> str:
    """Format the call: the seed, and the options that differ from their defaults."""
    parameters = inspect.signature(check).parameters
    shown = ["layer"]
    for name, value in options.items():
        if name == "seed" or value != parameters[name].default:
            shown.append(f"{name}={value!r}")
    return f"nearfuture.laws.{check.__name__}({', '.join(shown)})"
