"""An evaluation as a value: the results of every recording, from which the metrics follow."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nearfuture.error import NearfutureError
from nearfuture.evaluation.results import Hypothesis, Result
from nearfuture.evaluation.summary import By, Summary, summarise
from nearfuture.runtime import Manifest
from nearfuture.text import ErrorRate

SCHEMA = 1
"""The newest form of the JSON file that this version reads, and the one it writes."""

Rates = tuple[ErrorRate, ErrorRate]


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """The hypotheses of a streaming model and its twin for recordings; it round-trips through JSON.

    Attributes:
        streaming: the manifest of the streaming bundle, checksums included.
        twin: the manifest of the twin; None without one.
        results: one for each recording that could be read.
        problems: a line for each that could not.
        quantum_p50_ms, quantum_p98_ms: compute time of one quantum of the open stream.
    """

    streaming: Manifest
    twin: Manifest | None
    results: tuple[Result, ...]
    problems: tuple[str, ...] = ()
    quantum_p50_ms: float = 0.0
    quantum_p98_ms: float = 0.0

    def summary(self, by: By = "utterance") -> Summary:
        """Compute the metrics, with intervals drawn over utterances or over whole speakers.

        Raises:
            NearfutureError: as `nearfuture.evaluation.summary.summarise`.
        """
        return summarise(self.results, self.streaming, by)

    def speakers(self) -> dict[str, dict[int | None, Rates]]:
        """Word and character errors of every speaker: `{speaker: {τ: (words, characters)}}`.

        τ is None for the twin; recordings whose speaker is unknown are those of "".
        """
        totals: dict[str, dict[int | None, Rates]] = {}
        for result in sorted(self.results, key=lambda result: result.speaker):
            rates = totals.setdefault(result.speaker, {})
            hypotheses: list[tuple[int | None, Hypothesis]] = [*result.heads.items()]
            hypotheses += [] if result.twin is None else [(None, result.twin)]
            for head, hypothesis in hypotheses:
                words, characters = rates.get(head, (ErrorRate(), ErrorRate()))
                rates[head] = (
                    words + hypothesis.word_errors,
                    characters + hypothesis.character_errors,
                )
        return totals

    def to_json(self, by: By = "utterance") -> dict[str, Any]:
        """Plain values for JSON; the summary among them is for readers: `from_json` ignores it."""
        return {
            "schema": SCHEMA,
            "streaming": self.streaming.to_json(),
            "twin": None if self.twin is None else self.twin.to_json(),
            "quantum_p50_ms": self.quantum_p50_ms,
            "quantum_p98_ms": self.quantum_p98_ms,
            "summary": self.summary(by).to_json(),
            "problems": list(self.problems),
            "results": [dataclasses.asdict(result) for result in self.results],
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Evaluation:
        """Rebuild what `to_json` took apart.

        Raises:
            NearfutureError: for a newer schema, and for anything missing or wrong.

        >>> Evaluation.from_json({"schema": 2})
        Traceback (most recent call last):
        nearfuture.error.NearfutureError: this evaluation has schema 2, but this version of \
nearfuture reads schemas up to 1: upgrade nearfuture
        """
        schema = values.get("schema")
        if not isinstance(schema, int):
            raise NearfutureError("this is no evaluation: it has no schema number", code="damaged")
        if schema > SCHEMA:
            raise NearfutureError(
                f"this evaluation has schema {schema}, but this version of nearfuture reads "
                f"schemas up to {SCHEMA}: upgrade nearfuture",
                code="unsupported",
            )
        try:
            return cls(
                streaming=Manifest.from_json(values["streaming"]),
                twin=None if values["twin"] is None else Manifest.from_json(values["twin"]),
                results=tuple(map(Result.from_json, values["results"])),
                problems=tuple(values["problems"]),
                quantum_p50_ms=float(values["quantum_p50_ms"]),
                quantum_p98_ms=float(values["quantum_p98_ms"]),
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise NearfutureError(
                f"this evaluation is damaged: {error!r}", code="damaged"
            ) from error

    def save(self, path: Path, by: By = "utterance") -> None:
        """Write the JSON file.

        Raises:
            NearfutureError: where it cannot be written.
        """
        text = json.dumps(self.to_json(by), ensure_ascii=False, allow_nan=False)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            raise NearfutureError(
                f"cannot write {path}: {error.strerror}", parameter="path"
            ) from error

    @classmethod
    def load(cls, path: Path) -> Evaluation:
        """Read the JSON file that `save` wrote.

        Raises:
            NearfutureError: where it cannot be read, or is something else.
        """
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise NearfutureError(
                f"cannot read the evaluation {path}: {error}",
                code="not_found" if isinstance(error, OSError) else "damaged",
                parameter="path",
            ) from error
        if not isinstance(values, dict):
            raise NearfutureError(
                f"{path} is no evaluation: it holds no JSON object", code="damaged"
            )
        return cls.from_json(values)
