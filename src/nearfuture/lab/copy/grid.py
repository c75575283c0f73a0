"""Which answers of an endpoint a copy records: a grid over the values of its parameters.

The values of each parameter come from the signature. Where all combinations are few, all of them
are recorded; else every combination of choices and switches with each number alone; else each
parameter alone, the others as they begin. An answer is named by the places of its values.

Example: choices a and b, numbers m in 0 … 99 and n in 0 … 9 make 2·100·10 combinations. Of 1500
at most, (choice, m) and (choice, n) are recorded, with the other number as it begins: 2·100 + 2·10.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from nearfuture.lab.endpoint import parameters

MOST = 1500
"""Combinations of one endpoint."""

LONGEST_AXIS = 65
"""Values of one number; the slider of a copy makes longer steps where there are more."""

Place = tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Grid:
    """What is recorded of an endpoint.

    Attributes:
        axes: the values of each parameter.
        start: the place of the defaults.
        groups: parameters whose combinations are recorded, the others as they begin.
        texts: parameters that anybody may write, of which only the default is recorded.
    """

    axes: Mapping[str, tuple[Any, ...]]
    start: Place
    groups: tuple[tuple[str, ...], ...]
    texts: tuple[str, ...] = ()

    def places(self) -> Iterator[Place]:
        """Yield the place of every answer once, the defaults first."""
        seen = set[Place]()
        for group in self.groups:
            ranges = [
                range(len(values)) if name in group else (at,)
                for (name, values), at in zip(self.axes.items(), self.start, strict=True)
            ]
            for place in product(*ranges):
                if place not in seen:
                    seen.add(place)
                    yield place

    def values(self, place: Place) -> dict[str, Any]:
        """Return the values at a place."""
        return {name: each[at] for (name, each), at in zip(self.axes.items(), place, strict=True)}

    @property
    def whole(self) -> bool:
        """Whether every combination is recorded."""
        return not self.texts and any(set(group) >= self._free for group in self.groups)

    @property
    def _free(self) -> set[str]:
        return {name for name, values in self.axes.items() if len(values) > 1}

    def controls(self, function: Callable[..., object]) -> dict[str, dict[str, Any]]:
        """The parameters of the endpoint, with the limits and steps of what is recorded."""
        described = parameters(function)
        for name, values in self.axes.items():
            if "min" in described[name]:
                step = values[1] - values[0] if len(values) > 1 else described[name]["step"]
                described[name] |= {"min": values[0], "max": values[-1], "step": step}
        return described


def grid_of(function: Callable[..., object], *, most: int = MOST) -> Grid:
    """Plan what is recorded of an endpoint.

    Args:
        function: the endpoint.
        most: combinations.

    >>> from nearfuture.lab.pages.who_looks_at_whom import matrix
    >>> grid = grid_of(matrix)
    >>> len(list(grid.places())), grid.whole, grid.values(grid.start)
    (147, True, {'family': 'row-convolution', 'tau': 3, 'layers': 1})
    """
    described = parameters(function)
    axes = {name: _axis(each) for name, each in described.items()}
    start = tuple(axes[name].index(each["default"]) for name, each in described.items())
    texts = tuple(
        name
        for name, each in described.items()
        if isinstance(each["default"], str) and "choices" not in each
    )
    return Grid(axes=axes, start=start, groups=_groups(axes, described, most), texts=texts)


def _groups(
    axes: Mapping[str, tuple[Any, ...]], described: Mapping[str, Mapping[str, Any]], most: int
) -> tuple[tuple[str, ...], ...]:
    def size(names: tuple[str, ...]) -> int:
        return math.prod(len(axes[name]) for name in names)

    every = tuple(axes)
    if size(every) <= most:
        return (every,)
    numbers = [name for name in axes if "min" in described[name]]
    choices = tuple(name for name in axes if name not in numbers)
    together = tuple((*choices, name) for name in numbers)
    if sum(map(size, together)) <= most:
        return together
    return tuple((name,) for name in axes)


def _axis(parameter: Mapping[str, Any]) -> tuple[Any, ...]:
    """The values of a parameter that are recorded; those of a number include its default."""
    default = parameter["default"]
    if "choices" in parameter:
        return tuple(parameter["choices"])
    if isinstance(default, bool):
        return (False, True)
    if "min" not in parameter:
        return (default,)  # a text: nobody can write them all
    least, most, step = parameter["min"], parameter["max"], parameter["step"]
    count = math.floor((most - least) / step + 1e-9) + 1
    step *= math.ceil(count / LONGEST_AXIS)
    below = math.floor((default - least) / step + 1e-9)
    above = math.floor((most - default) / step + 1e-9)
    kind = type(default)
    return tuple(kind(round(default + each * step, 9)) for each in range(-below, above + 1))
