"""Where a recording's speech begins and ends: by the times of its words, or by its energy."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from nearfuture.error import NearfutureError
from nearfuture.text import normalise

FRAME_MS = 10.0
BELOW_LOUDEST_DB = 35.0
SILENCE_DB = -90.0  # of full scale: the last bit of 16
RUN = 3  # frames: a click is shorter


@dataclass(frozen=True, kw_only=True)
class Spoken:
    """A word of the reference and where it is spoken."""

    text: str
    start_ms: float
    end_ms: float


@dataclass(frozen=True, kw_only=True)
class Speech:
    """Where the speech of a recording lies.

    Attributes:
        begins_ms: start of the first word.
        ends_ms: end of the last one.
        by: how that is known.
    """

    begins_ms: float
    ends_ms: float
    by: Literal["words", "energy"]


def by_words(words: Sequence[Spoken]) -> Speech | None:
    """From the first word to the last; None if there are none."""
    if not words:
        return None
    return Speech(begins_ms=words[0].start_ms, ends_ms=words[-1].end_ms, by="words")


def by_energy(samples: NDArray[np.float32], rate: int) -> Speech | None:
    """From the first to the last loud stretch; None where nothing is louder than silence.

    Loud is a frame of 10 ms within 35 dB of the loudest 30 ms of the recording and, where that is
    noisy, at least a third of the way in dB from its quietest frames (the 5th percentile) to them.
    Three such frames in a row begin the speech, and three end it. Without word times this is a
    guess: a breath before a word is taken for it, a soft last consonant is missed.

    >>> tone = np.concatenate([np.zeros(4000), np.ones(2000), np.zeros(1000)]).astype(np.float32)
    >>> speech = by_energy(tone, 8000)
    >>> speech.begins_ms, speech.ends_ms
    (500.0, 750.0)
    """
    size = max(1, round(rate * FRAME_MS / 1000))
    frames = len(samples) // size
    if frames < RUN:
        return None
    power = (samples[: frames * size].astype(np.float64).reshape(frames, size) ** 2).mean(axis=1)
    level_db = 10 * np.log10(power + 1e-12)
    lasting_db = np.lib.stride_tricks.sliding_window_view(level_db, RUN).min(axis=1)
    quiet, high = np.percentile(level_db, 5), lasting_db.max()
    if high < SILENCE_DB:
        return None
    begins = np.flatnonzero(lasting_db >= max(high - BELOW_LOUDEST_DB, quiet + (high - quiet) / 3))
    frame_ms = 1000 * size / rate
    return Speech(
        begins_ms=float(begins[0] * frame_ms),
        ends_ms=float((begins[-1] + RUN) * frame_ms),
        by="energy",
    )


def read_words(path: Path) -> Mapping[str, tuple[Spoken, ...]]:
    """The words that `nearfuture align --out words.jsonl` wrote, by the name of the recording.

    Raises:
        NearfutureError: where it cannot be read, naming the line.
    """
    found: dict[str, tuple[Spoken, ...]] = {}
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise NearfutureError(f"cannot read the word times {path}: {reason.lower()}") from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            told = json.loads(line)
            found[str(told["file"])] = tuple(
                Spoken(
                    text=normalise(word["text"]),
                    start_ms=float(word["start_ms"]),
                    end_ms=float(word["end_ms"]),
                )
                for word in told["words"]
            )
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise NearfutureError(
                f"{path}, line {number}: no words with times; write them with: "
                f"nearfuture align … --out {path.name}"
            ) from error
    return found
