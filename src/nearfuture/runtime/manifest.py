"""`model.json`: the description of a bundle."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from nearfuture.budget import Latency, LatencyItem, RecognizerConfig
from nearfuture.error import NearfutureError
from nearfuture.runtime.precision import Precision
from nearfuture.text import Vocabulary

SCHEMA = 2
"""The form of `model.json` that this version writes, and the newest that it reads.

Schema 1 has no `precisions`.
"""

_PLAIN_FIELDS: dict[str, Callable[[Any], Any]] = {
    "name": str,
    "description": str,
    "kind": str,
    "rate": int,
    "frame_ms": float,
    "centre_ms": float,
    "quantum_samples": int,
    "first_quantum_samples": int,
    "parameters": int,
    "training": dict,
}
"""The fields that JSON holds as they are, and what makes sure of their types."""

_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class StoredFile:
    """The size and the checksum that a file of a bundle must have.

    Attributes:
        bytes: its size.
        sha256: its checksum, in hexadecimal.
    """

    bytes: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """The description of a bundle; it round-trips through JSON.

    Attributes:
        name: of the model.
        description: one sentence or a few.
        kind: `streaming` models have heads; a `bidirectional` model needs the whole recording.
        vocabulary: what it can write.
        rate: samples per second of the audio that it takes.
        frame_ms: from one output frame to the next.
        centre_ms: from the start of the audio to the centre of the window of frame 0.
        quantum_samples: samples that make one more frame possible, or one more chunk of frames
            that exist together; 0 for a bidirectional model.
        first_quantum_samples: samples of the first step of a stream, so that every later quantum
            ends exactly where a frame becomes possible.
        heads: the algorithmic latency of every lookahead, at the model's own rate.
        parameters: how many weights were learned.
        architecture: the configuration to rebuild the model from.
        training: data, licences, seed, steps: where the weights come from.
        files: every other file of the bundle, by name.
        precisions: the error of the quantized graphs, by precision: `int8`, `int4`.
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
        """Return plain values for a JSON file."""
        return {
            "schema": SCHEMA,
            **{name: getattr(self, name) for name in _PLAIN_FIELDS},
            "symbols": list(self.vocabulary.symbols),
            "heads": [
                {
                    "frames": frames,
                    "worst_ms": latency.worst_ms,
                    "mean_ms": latency.mean_ms,
                    "latency": [dataclasses.asdict(item) for item in latency.items],
                }
                for frames, latency in self.heads.items()
            ],
            "architecture": self.architecture.to_json(),
            "files": {name: dataclasses.asdict(file) for name, file in self.files.items()},
            "precisions": {name: error.to_json() for name, error in self.precisions.items()},
        }

    @classmethod
    def from_json(cls, values: Any) -> Manifest:
        """Invert `to_json`, for untrusted values.

        Raises:
            NearfutureError: for a newer schema, naming both, and for anything missing or wrong.

        >>> Manifest.from_json({"schema": SCHEMA + 1})
        Traceback (most recent call last):
        nearfuture.error.NearfutureError: model.json has schema 3, but this version of nearfuture \
reads schemas up to 2: upgrade nearfuture
        """
        if not isinstance(values, dict) or not isinstance(values.get("schema"), int):
            raise NearfutureError(
                "model.json has no schema number: it describes no model", code="damaged"
            )
        if values["schema"] > SCHEMA:
            raise NearfutureError(
                f"model.json has schema {values['schema']}, but this version of nearfuture reads "
                f"schemas up to {SCHEMA}: upgrade nearfuture",
                code="unsupported",
            )
        try:
            return cls._read(values)
        except KeyError as error:
            raise NearfutureError(f"model.json lacks {error}", code="damaged") from error
        except (AttributeError, OverflowError, TypeError, ValueError) as error:
            raise NearfutureError(f"model.json is damaged: {error}", code="damaged") from error

    @classmethod
    def _read(cls, values: dict[str, Any]) -> Manifest:
        plain = {name: convert(values[name]) for name, convert in _PLAIN_FIELDS.items()}
        kind, quantum = plain["kind"], plain["quantum_samples"]
        if kind not in ("streaming", "bidirectional"):
            raise ValueError(f"kind is streaming or bidirectional, not {kind!r}")
        for name in ("rate", "frame_ms", "centre_ms"):
            if not 0 < plain[name] < math.inf:
                raise ValueError(f"{name} is a positive number, not {values[name]!r}")
        heads = {
            int(head["frames"]): Latency(
                tuple(_latency_item(**item) for item in head["latency"]), plain["frame_ms"]
            )
            for head in values["heads"]
        }
        if kind == "streaming" and not (heads and 1 <= plain["first_quantum_samples"] <= quantum):
            raise ValueError(
                f"a streaming model has heads and 1 <= first_quantum_samples <= quantum_samples, "
                f"not {len(heads)} heads, {plain['first_quantum_samples']} and {quantum}"
            )
        return cls(
            **plain,
            vocabulary=Vocabulary(tuple(values["symbols"])),
            heads=heads,
            architecture=RecognizerConfig.from_json(values["architecture"]),
            files={_file_name(name): _stored(file) for name, file in values["files"].items()},
            precisions={
                name: Precision.from_json(name, error)
                for name, error in values.get("precisions", {}).items()
            },
        )


def _latency_item(*, name: Any, ms: Any, early_ms: Any = 0.0) -> LatencyItem:
    item = LatencyItem(str(name), float(ms), early_ms=float(early_ms))
    if not 0 <= item.early_ms <= item.ms < math.inf:
        raise ValueError(
            f"a latency is a finite number of ms from 0, of which none is early by more than it "
            f"lasts, not {item.ms:g} and {item.early_ms:g}"
        )
    return item


def _file_name(name: str) -> str:
    if not _FILE_NAME.fullmatch(name) or name == "model.json":
        raise ValueError(f"{name!r} is no name for a file inside the bundle")
    return name


def _stored(file: dict[str, Any]) -> StoredFile:
    size = int(file["bytes"])
    if size < 0:
        raise ValueError(f"a file has a size from 0, not {size}")
    return StoredFile(bytes=size, sha256=str(file["sha256"]))
