"""How a measurement runs; nothing heavy is imported here, so that the command line can read it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from nearfuture.error import NearfutureError


@dataclass(frozen=True, kw_only=True)
class MeasureOptions:
    """Options for playing recordings to a server.

    Attributes:
        connections: Connections at once.
        seconds: Begin no recording after so long; by default each connection plays each recording
            once.
        chunk_ms: How much audio is sent at once.
        finish_timeout_s: How many seconds the server may take to finish after the end of a
            recording.

    Raises:
        NearfutureError: for numbers that make no sense.
    """

    connections: int = 1
    seconds: float | None = None
    chunk_ms: float = 20.0
    finish_timeout_s: float = 30.0

    def __post_init__(self) -> None:
        for name, valid, wanted in (
            ("connections", self.connections >= 1, "a number from 1"),
            ("seconds", self.seconds is None or self.seconds > 0, "a time above 0"),
            ("chunk_ms", 1 <= self.chunk_ms <= 10_000, "a length of 1 to 10000 ms"),
            ("finish_timeout_s", 0 < self.finish_timeout_s < math.inf, "a time above 0"),
        ):
            if not valid:
                value = getattr(self, name)
                raise NearfutureError(
                    f"`{name}` is {wanted}, not {value:g}", code="out_of_range", parameter=name
                )
