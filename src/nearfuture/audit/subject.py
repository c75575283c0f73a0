"""A model as the audit sees it: rows of numbers in, frames of numbers out.

Shapes: `N` rows, `T` input frames, `U` output frames, `E` values of an output frame.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from nearfuture.audit.target import CannotRun, Target, integers_of
from nearfuture.error import NearfutureError

Array = NDArray[Any]
Takes = Literal["nothing", "lengths", "mask", "padding_mask"]


@dataclass(frozen=True, kw_only=True)
class Form:
    """How a model is called, and what of its answer counts.

    Attributes:
        layout: a letter for every axis of the input: `N` rows, `T` time, any other for features.
            Without `N` the model takes one sequence at a time.
        output_layout: the same for the output; without `T` it is one output for the sequence.
        output: which part of the answer: an index, a key, or None for its first array.
        takes: what the model is told about padding, besides the input.
        keyword: the argument's name; positional unless given.
        extra: further arguments, by name, the same in every call.
        block: values of the time axis that count as one frame.
    """

    layout: str
    output_layout: str | None = None
    output: int | str | None = None
    takes: Takes = "nothing"
    keyword: str | None = None
    extra: Mapping[str, Any] | None = None
    block: int = 1

    def __post_init__(self) -> None:
        for layout in (self.layout, self.output_layout):
            if layout is not None and len(set(layout)) < len(layout):
                raise NearfutureError(
                    f"a layout names every axis with a letter of its own, e.g. NTC, not {layout!r}"
                )
        if "T" not in self.layout:
            raise NearfutureError(f"the layout {self.layout!r} has no time axis T")
        if self.takes not in get_args(Takes):
            raise NearfutureError(
                f"a model takes {', '.join(get_args(Takes))} besides its input, not {self.takes!r}"
            )
        if self.block > 1 and self.layout not in ("NT", "T"):
            raise NearfutureError(f"blocks are of samples, layout NT or T, not {self.layout}")


@dataclass(frozen=True)
class Output:
    """What a model answered.

    Attributes:
        frames: (N, U, E).
        lengths: (N,) valid output frames, where the model says so.
    """

    frames: Array
    lengths: Array | None


class Subject:
    """A target together with how to call it.

    Args:
        target: what is called.
        form: how.
        dtype: of the input.
        seed: set before every call, so that a model that draws random numbers draws the same.

    Attributes:
        rows: so many rows go into every call, padded with copies if need be; None: any number.
    """

    def __init__(self, target: Target, form: Form, dtype: np.dtype[Any], *, seed: int = 0) -> None:
        self.target = target
        self.form = form
        self.dtype = dtype
        self.seed = seed
        self.rows: int | None = None if "N" in form.layout else 1

    def read_as(self, output_layout: str) -> None:
        """Read the output's axes like this from now on."""
        self.form = replace(self.form, output_layout=output_layout)

    def canonical(self, example: Array) -> Array:
        """(N, T, …) from the model's own layout."""
        if example.ndim != len(self.form.layout):
            raise NearfutureError(
                f"the layout {self.form.layout} has {len(self.form.layout)} axes, but the example "
                f"{example.shape} has {example.ndim}"
            )
        x = example if "N" in self.form.layout else example[None]
        layout = self.form.layout if "N" in self.form.layout else f"N{self.form.layout}"
        x = np.moveaxis(x, (layout.index("N"), layout.index("T")), (0, 1))
        if self.form.block > 1:
            blocks = x.shape[1] // self.form.block
            x = x[:, : blocks * self.form.block].reshape(x.shape[0], blocks, self.form.block)
        return np.ascontiguousarray(x)

    def native(self, x: Array) -> Array:
        """The model's own layout from (N, T, …); one sequence where it has no `N`."""
        if self.form.block > 1:
            x = x.reshape(x.shape[0], -1)
        layout = self.form.layout
        if "N" not in layout:
            assert len(x) == 1
            return np.moveaxis(x[0], 0, layout.index("T"))
        return np.moveaxis(x, (0, 1), (layout.index("N"), layout.index("T")))

    def arguments(
        self, x: Array, lengths: Sequence[int] | None
    ) -> tuple[list[Array], dict[str, Any]]:
        """The positional and the named arguments of one call."""
        positional, named = [self.native(x)], dict(self.form.extra or {})
        if self.form.takes == "nothing":
            return positional, named
        n = np.full(len(x), x.shape[1]) if lengths is None else np.asarray(lengths)
        n = n.astype(np.int64) * self.form.block
        inside = np.arange(x.shape[1] * self.form.block) < n[:, None]
        told: Array = {"lengths": n, "mask": inside, "padding_mask": ~inside}[self.form.takes]
        if self.form.keyword == "attention_mask":  # integers, by the custom of its users
            told = told.astype(np.int64)
        if "N" not in self.form.layout:
            told = told[0]
        if self.form.keyword is None:
            positional.append(told)
        else:
            named[self.form.keyword] = told
        return positional, named

    def run(self, x: Array, lengths: Sequence[int] | None = None, *, seeded: bool = True) -> Output:
        """The frames of (N, T, …), in one call or as many as the number of rows needs.

        Raises:
            CannotRun: where the model raises, or answers with something that has no frames.
        """
        if self.rows is None or len(x) == self.rows:
            return self._call(x, lengths, seeded)
        pieces = []
        for begin in range(0, len(x), self.rows):
            index = np.minimum(np.arange(begin, begin + self.rows), len(x) - 1)
            n = None if lengths is None else [lengths[b] for b in index]
            piece = self._call(x[index], n, seeded)
            keep = min(self.rows, len(x) - begin)
            counts = None if piece.lengths is None else piece.lengths[:keep]
            pieces.append(Output(piece.frames[:keep], counts))
        counted = [piece.lengths for piece in pieces if piece.lengths is not None]
        return Output(
            np.concatenate([piece.frames for piece in pieces]),
            np.concatenate(counted) if counted else None,
        )

    def _call(self, x: Array, lengths: Sequence[int] | None, seeded: bool) -> Output:
        return self.read(self.ask(x, lengths, seeded=seeded), len(x))

    def ask(self, x: Array, lengths: Sequence[int] | None, *, seeded: bool = True) -> Any:
        """One call with (N, T, …) as it is, and the answer as it is."""
        positional, named = self.arguments(x, lengths)
        return self.target.call(positional, named, seed=self.seed if seeded else None)

    def part(self, answer: Any) -> Array:
        """The part of an answer that counts, in the model's own layout."""
        return self.target.to_numpy(pick(answer, self.form.output, self.target.is_array))

    def read(self, answer: Any, rows: int) -> Output:
        """The frames of an answer to so many rows."""
        return Output(self._frames(self.part(answer), rows), _lengths_of(answer, rows, self.target))

    def frames_of(self, answer: Any) -> Array:
        """The frames (U, E) of an answer to one row."""
        frames: Array = self._frames(self.part(answer), 1)[0]
        return frames

    def _frames(self, y: Array, rows: int) -> Array:
        layout = self.output_layout(y.ndim)
        if y.ndim != len(layout):
            raise NearfutureError(
                f"the output has shape {y.shape}, but its layout {layout} has {len(layout)} axes"
            )
        if "N" not in layout:
            y, layout = y[None], f"N{layout}"
        if "T" not in layout:
            y, layout = np.expand_dims(y, 1), layout[:1] + "T" + layout[1:]
        y = np.moveaxis(y, (layout.index("N"), layout.index("T")), (0, 1))
        if y.shape[0] != rows:
            raise CannotRun(
                f"{rows} rows went in, but the output has {y.shape[0]} (shape {y.shape}, layout "
                f"{layout}); say which axis is which with layout and output_layout"
            )
        if np.iscomplexobj(y):
            y = np.stack([y.real, y.imag], axis=-1)
        return np.ascontiguousarray(y).reshape(*y.shape[:2], math.prod(y.shape[2:]))

    def output_layout(self, axes: int) -> str:
        """The layout of an output with so many axes: as given, or like the input's."""
        if self.form.output_layout is not None:
            return self.form.output_layout
        layout = self.form.layout
        if axes == len(layout):
            return layout
        if axes < layout.count("N") + 1:
            return "N" if "N" in layout else ""
        rows = layout.find("N")
        time = layout.index("T")
        if time >= axes:  # features before time, and fewer of them now
            time = axes - 1
        letters = iter("CDEFGH")
        return "".join(
            "N" if axis == rows else "T" if axis == time else next(letters) for axis in range(axes)
        )


def pick(answer: Any, output: int | str | None, is_array: Any) -> Any:
    """The part of an answer that counts: an array, or one inside a tuple, mapping or object."""
    if output is not None:
        try:
            part = getattr(answer, output, None) if isinstance(output, str) else None
            part = answer[output] if part is None else part
        except (KeyError, IndexError, TypeError) as error:
            raise NearfutureError(f"the model's answer has no output {output!r}") from error
        if not is_array(part):
            raise NearfutureError(f"output {output!r} is {type(part).__name__}, not an array")
        return part
    if is_array(answer):
        return answer
    parts: Any = answer.values() if isinstance(answer, Mapping) else answer
    if type(answer).__name__ == "PackedSequence":
        raise NearfutureError(
            "the model answers with a PackedSequence; wrap it in a function that unpacks it "
            "(pad_packed_sequence) and returns (N, T, C)"
        )
    if isinstance(parts, list | tuple) or isinstance(answer, Mapping):
        for part in parts:
            if is_array(part):
                return part
    raise NearfutureError(
        f"the model answers with {type(answer).__name__}, in which there is no array; wrap it in a "
        f"function that returns one, or choose with output"
    )


def _lengths_of(answer: Any, rows: int, target: Target) -> Array | None:
    """The second part of an answer, where it looks like the lengths of its rows."""
    if not isinstance(answer, tuple | list) or len(answer) < 2 or not target.is_array(answer[1]):
        return None
    counts = target.to_numpy(answer[1])
    return counts if integers_of(counts.dtype) and counts.shape == (rows,) else None
