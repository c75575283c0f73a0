"""How a model is called, which of its outputs count, and what it has to keep."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, Literal, TypedDict, TypeVar, get_args

from nearfuture.audit.report import allowed_frames
from nearfuture.error import NearfutureError

Takes = Literal["nothing", "lengths", "mask", "padding_mask"]
Padding = Literal["right", "left"]


class CallOptions(TypedDict, total=False):
    """The keyword arguments that fill a `CallSpec`, whose fields document them."""

    layout: str | None
    output: int | str | None
    output_layout: str | None
    takes: Takes | None
    padding: Padding
    keyword: str | None
    extra: Mapping[str, Any] | None
    frame_samples: int
    stride: Fraction | int | None
    observed: int
    train: bool
    seed: int
    name: str | None


class AuditOptions(CallOptions, total=False):
    """The keywords of `audit.model`: those of the call, of the limit and of streaming."""

    frame_ms: float | None
    at_most: float | None
    at_most_ms: float | None
    step: Callable[..., Any] | None
    start: Callable[[], Any] | None
    finish: Callable[[Any], Any] | None
    chunks: int | Iterable[int] | None
    first_chunk: int | None
    matrix: bool | None
    progress: Callable[[str], None] | None


@dataclass(frozen=True, kw_only=True)
class CallSpec:
    """The call of a model, and the output that is audited.

    Attributes:
        layout: a letter for every axis of the input: `N` rows, `T` time, any other for features.
            Without `N` the model takes one sequence at a time. None: NTC, or as the model says.
        output: which of its outputs: an index or a key; None: the first array. For a bundle,
            the lookahead of a head in frames.
        output_layout: the axes of the output; without `T` it is one output for the sequence. None:
            those of the input.
        takes: what the model gets about padding, besides the input: "nothing", "lengths" (int64),
            "mask" (True: valid) or "padding_mask" (True: padding). None: "lengths" where lengths
            are given.
        padding: on which side of a row its padding is.
        keyword: the name of that argument; None: it is positional.
        extra: further arguments by name, the same in every call.
        frame_samples: how many samples of a waveform count as one frame.
        stride: input frames per output frame; None: measured.
        observed: how many input frames are known before any output is wanted; to depend on them is
            no lookahead.
        train: audit a torch module in train mode instead of eval mode.
        seed: set before every call; all probes are drawn from it.
        name: the model's name in the report.
    """

    layout: str | None = None
    output: int | str | None = None
    output_layout: str | None = None
    takes: Takes | None = None
    padding: Padding = "right"
    keyword: str | None = None
    extra: Mapping[str, Any] | None = None
    frame_samples: int = 1
    stride: Fraction | int | None = None
    observed: int = 0
    train: bool = False
    seed: int = 0
    name: str | None = None

    def __post_init__(self) -> None:
        if self.frame_samples < 1:
            raise NearfutureError(
                f"`frame_samples` is 1 or more, not {self.frame_samples}",
                code="out_of_range",
                parameter="frame_samples",
            )
        if self.stride is not None and not self.stride > 0:
            raise NearfutureError(
                f"`stride` is above 0 input frames, not {self.stride}",
                code="out_of_range",
                parameter="stride",
            )
        for parameter, layout in (
            ("layout", self.layout),
            ("output_layout", self.output_layout),
        ):
            if layout is not None and len(set(layout)) < len(layout):
                raise NearfutureError(
                    f"`{parameter}` gives every axis a letter of its own, e.g. NTC, not {layout!r}",
                    parameter=parameter,
                )
        if self.layout is not None and "T" not in self.layout:
            raise NearfutureError(
                f"`layout` needs a time axis T, which {self.layout!r} lacks", parameter="layout"
            )
        if self.takes not in (None, *get_args(Takes)):
            raise NearfutureError(
                f"`takes` is {', '.join(get_args(Takes))}, not {self.takes!r}", parameter="takes"
            )
        if self.padding not in get_args(Padding):
            raise NearfutureError(
                f"`padding` is {' or '.join(get_args(Padding))}, not {self.padding!r}",
                parameter="padding",
            )
        if self.frame_samples > 1 and self.layout not in (None, "NT", "T"):
            raise NearfutureError(
                f"`frame_samples` counts samples of a waveform, in layout NT or T, not "
                f"{self.layout}",
                parameter="frame_samples",
            )


@dataclass(frozen=True, kw_only=True)
class LatencyLimit:
    """The largest lookahead that a model may have.

    Attributes:
        frame_ms: milliseconds per input frame; 1000 / rate for samples.
        at_most: the lookahead allowed, in input frames.
        at_most_ms: the worst-case latency allowed, `(lookahead + 1) · frame_ms`.
    """

    frame_ms: float | None = None
    at_most: float | None = None
    at_most_ms: float | None = None

    def __post_init__(self) -> None:
        for name, value in (("frame_ms", self.frame_ms), ("at_most_ms", self.at_most_ms)):
            if value is not None and not 0 < value < math.inf:
                raise NearfutureError(
                    f"`{name}` is above 0 and finite, not {value:g}",
                    code="out_of_range",
                    parameter=name,
                )
        if self.at_most is not None and not self.at_most >= 0:
            raise NearfutureError(
                f"`at_most` is a number of frames from 0, not {self.at_most}",
                code="out_of_range",
                parameter="at_most",
            )

    @property
    def frames(self) -> float:
        """The lookahead allowed, in input frames."""
        return allowed_frames(self.at_most, self.at_most_ms, self.frame_ms)

    def allowed(self) -> str:
        """Return the limit as the end of a sentence; "" where there is none."""
        if self.at_most is not None:
            return f"; at most {self.at_most:g} allowed"
        return "" if self.at_most_ms is None else f"; at most {self.at_most_ms:g} ms allowed"


@dataclass(frozen=True, kw_only=True)
class StreamingSteps:
    """The functions by which a model is streamed.

    Attributes:
        step: `step(chunk, state) -> (frames, state)`, or `step(state, chunk)` where its first
            parameter is called so; None: the model is not streamed.
        start: returns the state before the first chunk; None: that state is None.
        finish: returns the frames that were still pending, from the last state.
        chunks: the sizes that a chunk may have, in frames: one, or several such as range(8, 65, 8);
            None: any.
        first_chunk: the size of the first chunk; None: as the others.
    """

    step: Callable[..., Any] | None = None
    start: Callable[[], Any] | None = None
    finish: Callable[[Any], Any] | None = None
    chunks: int | Iterable[int] | None = None
    first_chunk: int | None = None

    def __post_init__(self) -> None:
        sizes = self.sizes
        if self.chunks is not None and (not sizes or min(sizes) < 1):
            raise NearfutureError(
                f"`chunks` are sizes from 1, not {self.chunks}",
                code="out_of_range",
                parameter="chunks",
            )
        if self.first_chunk is not None and self.first_chunk < 1:
            raise NearfutureError(
                f"`first_chunk` is a size from 1, not {self.first_chunk}",
                code="out_of_range",
                parameter="first_chunk",
            )

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes that a chunk may have; none: any."""
        if self.chunks is None:
            return ()
        return (self.chunks,) if isinstance(self.chunks, int) else tuple(self.chunks)


_Spec = TypeVar("_Spec", LatencyLimit, StreamingSteps)


def take(cls: type[_Spec], options: dict[str, Any]) -> _Spec:
    """Build a specification from its keywords, which are removed from the options."""
    names = [field.name for field in fields(cls) if field.name in options]
    return cls(**{name: options.pop(name) for name in names})
