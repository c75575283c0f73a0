"""A model as the audit calls it: rows of frames in, rows of frames out.

Shapes: `N` rows, `T` input frames, `U` output frames, `E` values of an output frame.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearfuture.audit.adapters import Adapter, CannotRun
from nearfuture.audit.call import CallSpec
from nearfuture.error import NearfutureError

Array = NDArray[Any]


@dataclass(frozen=True)
class ModelOutput:
    """The result of a model.

    Attributes:
        frames: (N, U, E).
        lengths: (N,) valid output frames, where the model returns them.
    """

    frames: Array
    lengths: Array | None


@dataclass(frozen=True)
class AuditedModel:
    """An adapter together with how to call it.

    Attributes:
        adapter: the model.
        spec: how it is called.
        layout: the axes of the input; `spec.layout`, or the one that was chosen for it.
        dtype: type of the input.
        rows: how many rows every call has, filled with copies if need be; None: any number.
    """

    adapter: Adapter
    spec: CallSpec
    layout: str
    dtype: np.dtype[Any]
    rows: int | None = None

    @property
    def knows_padding(self) -> bool:
        """Whether lengths or a mask are passed to the model."""
        return self.spec.takes not in (None, "nothing")

    def canonical(self, example: Array) -> Array:
        """Convert an example to (N, T, …)."""
        if example.ndim != len(self.layout):
            raise NearfutureError(
                f"`layout` {self.layout} has {len(self.layout)} axes, but the example "
                f"{example.shape} has {example.ndim}",
                parameter="layout",
            )
        x = example if "N" in self.layout else example[None]
        layout = self.layout if "N" in self.layout else f"N{self.layout}"
        x = np.moveaxis(x, (layout.index("N"), layout.index("T")), (0, 1))
        size = self.spec.frame_samples
        if size > 1:
            x = x[:, : x.shape[1] // size * size].reshape(x.shape[0], -1, size)
        return np.ascontiguousarray(x)

    def native(self, x: Array) -> Array:
        """Convert (N, T, …) to the model's layout; one sequence where that has no `N`."""
        if self.spec.frame_samples > 1:
            x = x.reshape(x.shape[0], -1)
        layout = self.layout
        if "N" not in layout:
            assert len(x) == 1
            return np.moveaxis(x[0], 0, layout.index("T"))
        return np.moveaxis(x, (0, 1), (layout.index("N"), layout.index("T")))

    def arguments(
        self, x: Array, lengths: Sequence[int] | None
    ) -> tuple[list[Array], dict[str, Any]]:
        """Return the positional and the named arguments of one call."""
        spec = self.spec
        positional, named = [self.native(x)], dict(spec.extra or {})
        if not self.knows_padding:
            return positional, named
        n = np.full(len(x), x.shape[1]) if lengths is None else np.asarray(lengths)
        n = n.astype(np.int64) * spec.frame_samples
        padding: Array = n
        if spec.takes != "lengths":
            padding = np.arange(x.shape[1] * spec.frame_samples) < n[:, None]
            if spec.padding == "left":
                padding = padding[:, ::-1].copy()
            if spec.takes == "padding_mask":
                padding = ~padding
        if spec.keyword == "attention_mask":  # integers, as transformers expect
            padding = padding.astype(np.int64)
        if "N" not in self.layout:
            padding = padding[0]
        if spec.keyword is None:
            positional.append(padding)
        else:
            named[spec.keyword] = padding
        return positional, named

    def run(
        self, x: Array, lengths: Sequence[int] | None = None, *, seeded: bool = True
    ) -> ModelOutput:
        """Run (N, T, …) in one call, or in as many as the number of rows requires.

        Raises:
            CannotRun: where the model raises, or returns something that has no frames.
        """
        if self.rows is None or len(x) == self.rows:
            return self.read(self.call(x, lengths, seeded=seeded), len(x))
        frames, counts = [], []
        for begin in range(0, len(x), self.rows):
            index = np.minimum(np.arange(begin, begin + self.rows), len(x) - 1)
            n = None if lengths is None else [lengths[row] for row in index]
            part = self.read(self.call(x[index], n, seeded=seeded), self.rows)
            wanted = min(self.rows, len(x) - begin)
            frames.append(part.frames[:wanted])
            if part.lengths is not None:
                counts.append(part.lengths[:wanted])
        return ModelOutput(np.concatenate(frames), np.concatenate(counts) if counts else None)

    def call(self, x: Array, lengths: Sequence[int] | None, *, seeded: bool = True) -> Any:
        """Call the model once with (N, T, …) and return its result unchanged."""
        positional, named = self.arguments(x, lengths)
        return self.adapter.call(positional, named, seed=self.spec.seed if seeded else None)

    def select(self, result: Any) -> Array:
        """Return the part of a result that counts, in the model's layout."""
        part = select_output(result, self.spec.output, self.adapter)
        return self.adapter.to_numpy(part)

    def read(self, result: Any, rows: int) -> ModelOutput:
        """Return the frames of a result for so many rows."""
        frames = self._frames(self.select(result), rows)
        return ModelOutput(frames, _output_lengths(result, rows, self.adapter))

    def frames_of(self, result: Any) -> Array:
        """Return the frames (U, E) of a result for one row."""
        frames: Array = self._frames(self.select(result), 1)[0]
        return frames

    def _frames(self, y: Array, rows: int) -> Array:
        layout = self.output_layout(y.ndim)
        if y.ndim != len(layout):
            raise NearfutureError(
                f"the output has shape {y.shape}, but its layout {layout} has {len(layout)} axes",
                parameter="output_layout",
            )
        if "N" not in layout:
            y, layout = y[None], f"N{layout}"
        if "T" not in layout:
            y, layout = np.expand_dims(y, 1), layout[:1] + "T" + layout[1:]
        y = np.moveaxis(y, (layout.index("N"), layout.index("T")), (0, 1))
        if y.shape[0] != rows:
            raise CannotRun(
                f"{rows} rows went in, but the output has {y.shape[0]} (shape {y.shape}, layout "
                f"{layout}); say which axis is which with `layout` and `output_layout`"
            )
        if np.iscomplexobj(y):
            y = np.stack([y.real, y.imag], axis=-1)
        return np.ascontiguousarray(y).reshape(*y.shape[:2], math.prod(y.shape[2:]))

    def output_layout(self, axes: int) -> str:
        """Return the layout of an output with so many axes: as given, or like the input's."""
        if self.spec.output_layout is not None:
            return self.spec.output_layout
        layout = self.layout
        if axes == len(layout):
            return layout
        if axes < layout.count("N") + 1:
            return "N" if "N" in layout else ""
        # Where there are features before time, there are fewer of them now.
        return axis_letters(axes, layout.find("N"), min(layout.index("T"), axes - 1))


def axis_letters(axes: int, rows: int, time: int) -> str:
    """Name axes by letter: `N` at `rows`, `T` at `time`, features elsewhere.

    >>> axis_letters(4, 0, 2)
    'NCTD'
    """
    features = iter("CDEFGH")
    return "".join(
        "N" if axis == rows else "T" if axis == time else next(features) for axis in range(axes)
    )


def select_output(result: Any, output: int | str | None, adapter: Adapter) -> Any:
    """Return an array from a result that may be an array, a tuple, a mapping or an object."""
    if output is not None:
        try:
            part = getattr(result, output, None) if isinstance(output, str) else None
            part = result[output] if part is None else part
        except (KeyError, IndexError, TypeError) as error:
            raise NearfutureError(
                f"the model has no `output` {output!r}",
                code="not_found",
                parameter="output",
            ) from error
        if not adapter.is_array(part):
            raise NearfutureError(
                f"`output` {output!r} is {type(part).__name__}, not an array", parameter="output"
            )
        return part
    if adapter.is_array(result):
        return result
    if type(result).__name__ == "PackedSequence":
        raise NearfutureError(
            "the model returns a PackedSequence; wrap it in a function that unpacks it "
            "(pad_packed_sequence) and returns (N, T, C)"
        )
    parts: Any = result.values() if isinstance(result, Mapping) else result
    if isinstance(result, Mapping | list | tuple):
        for part in parts:
            if adapter.is_array(part):
                return part
    raise NearfutureError(
        f"the model returns {type(result).__name__}, in which there is no array; wrap it in a "
        f"function that returns one, or choose with `output`",
        parameter="output",
    )


def _output_lengths(result: Any, rows: int, adapter: Adapter) -> Array | None:
    """Return the second part of a result, where it has the form of the lengths of its rows."""
    if not isinstance(result, tuple | list) or len(result) < 2 or not adapter.is_array(result[1]):
        return None
    counts = adapter.to_numpy(result[1])
    return counts if counts.dtype.kind in "iu" and counts.shape == (rows,) else None
