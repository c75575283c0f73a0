"""Where a recording's speech begins and ends: by the times of its words, or by its energy."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from nearfuture.decoding import Word
from nearfuture.error import NearfutureError
from nearfuture.text import normalise

FRAME_MS = 10.0
BELOW_LOUDEST_DB = 35.0
SILENCE_DB = -90.0  # of full scale: the last bit of 16
RUN = 3  # frames: a click is shorter


@dataclass(frozen=True, kw_only=True)
class SpeechSpan:
    """The interval of a recording in which there is speech.

    Attributes:
        start_ms: start of the first word.
        end_ms: end of the last one.
        by: how that is known.
    """

    start_ms: float
    end_ms: float
    by: Literal["words", "energy"]


def by_words(words: Sequence[Word]) -> SpeechSpan | None:
    """Return the span from the first word to the last; None if there are none."""
    if not words:
        return None
    return SpeechSpan(start_ms=words[0].start_ms, end_ms=words[-1].end_ms, by="words")


def by_energy(samples: NDArray[np.float32], rate: int) -> SpeechSpan | None:
    """Return the span from the first to the last loud stretch; None where all is silence.

    Loud is a frame of 10 ms within 35 dB of the loudest 30 ms of the recording and, where that is
    noisy, at least a third of the way in dB from its quietest frames (the 5th percentile) to them.
    Three such frames in a row begin the speech, and three end it. Without word times this is a
    guess: a breath before a word is taken for it, a soft last consonant is missed.

    >>> tone = np.concatenate([np.zeros(4000), np.ones(2000), np.zeros(1000)]).astype(np.float32)
    >>> span = by_energy(tone, 8000)
    >>> span.start_ms, span.end_ms
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
    loud = np.flatnonzero(lasting_db >= max(high - BELOW_LOUDEST_DB, quiet + (high - quiet) / 3))
    frame_ms = 1000 * size / rate
    return SpeechSpan(
        start_ms=float(loud[0] * frame_ms), end_ms=float((loud[-1] + RUN) * frame_ms), by="energy"
    )


def read_word_times(path: Path) -> Mapping[str, tuple[Word, ...]]:
    """Return the words that `nearfuture align --out words.jsonl` wrote, by recording.

    Raises:
        NearfutureError: where it cannot be read, naming the line.
    """
    words: dict[str, tuple[Word, ...]] = {}
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise NearfutureError(
            f"cannot read the word times {path}: {reason.lower()}",
            code="not_found",
            parameter="words",
        ) from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            fields = json.loads(line)
            words[str(fields["file"])] = tuple(map(_word, fields["words"]))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise NearfutureError(
                f"{path}, line {number}: no words with times; write them with: "
                f"nearfuture align … --out {path.name}",
                parameter="words",
            ) from error
    return words


def _word(fields: Mapping[str, Any]) -> Word:
    return Word(normalise(fields["text"]), float(fields["start_ms"]), float(fields["end_ms"]), 1.0)
