"""`model.json`: what a bundle says about itself."""

from __future__ import annotations

import dataclasses
import math
import re
from dataclasses import dataclass, field
from typing import Any, Literal

from nearfuture.budget import Latency, LatencyItem, RecognizerConfig
from nearfuture.error import NearfutureError
from nearfuture.runtime.precision import Precision
from nearfuture.text import Vocabulary

SCHEMA = 2
"""The newest form of `model.json` that this version reads: 2 is 1 with `precisions`.

What has no twins in low precision is still written as 1, which older versions read.
"""

_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class StoredFile:
    """A file of a bundle as it must be found.

    Attributes:
        bytes: its size.
        sha256: its checksum, in hexadecimal.
    """

    bytes: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What a bundle says about itself; it round-trips through JSON.

    Attributes:
        name: of the model.
        description: one sentence or a few.
        kind: `streaming` models have heads; a `bidirectional` one hears the whole recording first.
        vocabulary: what it can write.
        rate: samples per second that it hears.
        frame_ms: from one output frame to the next.
        centre_ms: from the start of the audio to the centre of the window of frame 0.
        quantum_samples: samples that make one more frame possible; 0 for a bidirectional model.
        first_quantum_samples: samples of the first step of a stream, so that every later quantum
            ends exactly where a frame becomes possible.
        heads: the algorithmic latency of every lookahead, at the model's own rate.
        parameters: how many weights were learned.
        architecture: the configuration to rebuild the model from.
        training: data, licences, seed, steps: where the weights come from.
        files: every other file of the bundle, by name.
        precisions: the error of each low-precision twin of the graphs, by name: `int8`, `int4`.
    """

    name: str
    description: str
    kind: Literal["streaming", "bidirectional"]
    vocabulary: Vocabulary
    rate: int
    frame_ms: float
    centre_ms: float
    quantum_samples: int
    first_quantum_samples: int
    heads: dict[int, Latency]
    parameters: int
    architecture: RecognizerConfig
    training: dict[str, Any]
    files: dict[str, StoredFile]
    precisions: dict[str, Precision] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Plain values for a JSON file."""
        values = self._to_json()
        if self.precisions:
            values |= {
                "schema": 2,
                "precisions": {name: error.to_json() for name, error in self.precisions.items()},
            }
        return values

    def _to_json(self) -> dict[str, Any]:
        return {
            "schema": 1,
            "name": self.name,
            "description": self.description,
            "kind": self.kind,
            "symbols": list(self.vocabulary.symbols),
            "rate": self.rate,
            "frame_ms": self.frame_ms,
            "centre_ms": self.centre_ms,
            "quantum_samples": self.quantum_samples,
            "first_quantum_samples": self.first_quantum_samples,
            "heads": [
                {
                    "frames": frames,
                    "worst_ms": latency.worst_ms,
                    "mean_ms": latency.mean_ms,
                    "latency": [dataclasses.asdict(item) for item in latency.items],
                }
                for frames, latency in self.heads.items()
            ],
            "parameters": self.parameters,
            "architecture": self.architecture.to_json(),
            "training": self.training,
            "files": {name: dataclasses.asdict(file) for name, file in self.files.items()},
        }

    @classmethod
    def from_json(cls, values: Any) -> Manifest:
        """The inverse of `to_json`, for values that may come from a stranger.

        Raises:
            NearfutureError: for a newer schema, naming both, and for anything missing or wrong.

        >>> Manifest.from_json({"schema": SCHEMA + 1})
        Traceback (most recent call last):
        nearfuture.error.NearfutureError: model.json has schema 3, but this version of nearfuture \
reads schemas up to 2: upgrade nearfuture
        """
        if not isinstance(values, dict) or not isinstance(values.get("schema"), int):
            raise NearfutureError("model.json has no schema number: it describes no model")
        if values["schema"] > SCHEMA:
            raise NearfutureError(
                f"model.json has schema {values['schema']}, but this version of nearfuture reads "
                f"schemas up to {SCHEMA}: upgrade nearfuture"
            )
        try:
            return cls._read(values)
        except KeyError as error:
            raise NearfutureError(f"model.json lacks {error}") from error
        except (AttributeError, TypeError, ValueError) as error:
            raise NearfutureError(f"model.json is damaged: {error}") from error

    @classmethod
    def _read(cls, values: dict[str, Any]) -> Manifest:
        kind = values["kind"]
        if kind not in ("streaming", "bidirectional"):
            raise ValueError(f"kind is streaming or bidirectional, not {kind!r}")
        frame_ms = _positive(values, "frame_ms")
        heads = {
            int(head["frames"]): Latency(
                tuple(LatencyItem(**item) for item in head["latency"]), frame_ms
            )
            for head in values["heads"]
        }
        quantum, first = int(values["quantum_samples"]), int(values["first_quantum_samples"])
        if kind == "streaming" and not (heads and 1 <= first <= quantum):
            raise ValueError(
                f"a streaming model has heads and 1 <= first_quantum_samples <= quantum_samples, "
                f"not {len(heads)} heads, {first} and {quantum}"
            )
        return cls(
            name=str(values["name"]),
            description=str(values["description"]),
            kind=kind,
            vocabulary=Vocabulary(tuple(values["symbols"])),
            rate=int(_positive(values, "rate")),
            frame_ms=frame_ms,
            centre_ms=_positive(values, "centre_ms"),
            quantum_samples=quantum,
            first_quantum_samples=first,
            heads=heads,
            parameters=int(values["parameters"]),
            architecture=RecognizerConfig.from_json(values["architecture"]),
            training=dict(values["training"]),
            files={_plain(name): _stored(file) for name, file in values["files"].items()},
            precisions={
                name: Precision.from_json(name, error)
                for name, error in values.get("precisions", {}).items()
            },
        )


def _positive(values: dict[str, Any], key: str) -> float:
    number = float(values[key])
    if not (math.isfinite(number) and number > 0):
        raise ValueError(f"{key} is a positive number, not {values[key]!r}")
    return number


def _plain(name: str) -> str:
    if not _PLAIN_NAME.fullmatch(name) or name == "model.json":
        raise ValueError(f"{name!r} is no name for a file inside the bundle")
    return name


def _stored(file: dict[str, Any]) -> StoredFile:
    return StoredFile(bytes=int(file["bytes"]), sha256=str(file["sha256"]))
