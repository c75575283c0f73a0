"""How far the quantized graphs of a model are from those in float32."""

from __future__ import annotations

import dataclasses
import math
import re
from dataclasses import dataclass
from typing import Any

FLOAT32 = "float32"
"""The precision that every bundle has."""

LOW_PRECISIONS = ("int8", "int4")
"""The precisions of quantized graphs, the fastest for many streams first."""

_NAME = re.compile(r"[a-z][a-z0-9]*")


def graph_name(name: str, precision: str) -> str:
    """Return the name of a graph's file in a precision.

    >>> graph_name("step.onnx", "float32"), graph_name("step.onnx", "int8")
    ('step.onnx', 'step.int8.onnx')
    """
    return name if precision == FLOAT32 else f"{name.removesuffix('.onnx')}.{precision}.onnx"


@dataclass(frozen=True, kw_only=True)
class Precision:
    """The error of quantized graphs against float32, over every head and frame of some audio.

    Attributes:
        worst: the largest difference of a log-probability.
        mean: the mean difference.
        changed_percent: frames in which another symbol is the most probable.
        frames: how many were compared.
        cer: the character error rate, from 0, with the largest lookahead; None without texts.
        float32_cer: that of float32.
        audio: what the scales were calibrated on, and what this was measured on.

    >>> error = Precision(worst=0.5, mean=0.01, changed_percent=0.2, frames=900, audio="noise")
    >>> Precision.from_json("int8", error.to_json()) == error
    True
    """

    worst: float
    mean: float
    changed_percent: float
    frames: int
    cer: float | None = None
    float32_cer: float | None = None
    audio: str

    def to_json(self) -> dict[str, Any]:
        """Return plain values for a JSON file."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, name: str, values: dict[str, Any]) -> Precision:
        """Invert `to_json`, for untrusted values.

        Raises:
            KeyError, TypeError, ValueError: for anything missing or wrong.
        """
        if name == FLOAT32 or not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no name for a low precision")
        return cls(
            **{name: _amount(values[name]) for name in ("worst", "mean", "changed_percent")},
            cer=_amount_or_none(values["cer"]),
            float32_cer=_amount_or_none(values["float32_cer"]),
            frames=int(values["frames"]),
            audio=str(values["audio"]),
        )


def _amount(value: Any) -> float:
    number = float(value)
    if not (math.isfinite(number) and number >= 0):
        raise ValueError(f"an error is a finite number from 0, not {value!r}")
    return number


def _amount_or_none(value: Any) -> float | None:
    return None if value is None else _amount(value)
