"""A long recording and its text, cut in silence into utterances of which the text can be trusted.

Shapes: `T` frames, `V` vocabulary with the blank.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nearfuture.data.aligned_recording import AlignedRecording, Cut, Segment
from nearfuture.error import NearfutureError
from nearfuture.text import Vocabulary


@dataclass(frozen=True, kw_only=True)
class Segmentation:
    """How to cut and what to trust.

    Args:
        silence_ms: cut where the model hears nothing for so long, between two words.
        longest_s: of a segment.
        highest_cost: of a stretch: `-log p(path)` for each character of its text, in nats.
        lowest_confidence: of each word, see `AlignedWord`.
        highest_error_rate: of what the model reads by itself against the text, in characters.

    Raises:
        NearfutureError: for a limit that nothing can keep.
    """

    silence_ms: float = 300.0
    longest_s: float = 15.0
    highest_cost: float = 1.0
    lowest_confidence: float = 0.05
    highest_error_rate: float = 0.3

    def __post_init__(self) -> None:
        for name in ("silence_ms", "longest_s"):
            if not 0 < getattr(self, name) < math.inf:
                raise NearfutureError(f"{name} must be above 0, not {getattr(self, name)}")
        for name in ("highest_cost", "lowest_confidence", "highest_error_rate"):
            if not getattr(self, name) >= 0:
                raise NearfutureError(f"{name} must not be below 0, not {getattr(self, name)}")


@dataclass(frozen=True, kw_only=True)
class Dropped:
    """A stretch of the recording that is not to be trusted.

    Args:
        segment: what it is; its text is empty where the text has nothing for it.
        reason: `cost`, `confidence`, `error rate`, `length`, or `no text`.
        figure: the value that broke the limit; for a length in seconds, for speech without text the
            characters heard.
    """

    segment: Segment
    reason: str
    figure: float


@dataclass(frozen=True, kw_only=True)
class Segments:
    """What became of a long recording, in its order.

    Args:
        kept: the stretches to use.
        dropped: those not to.
    """

    kept: tuple[Segment, ...]
    dropped: tuple[Dropped, ...]


def segment(
    log_probs: NDArray[np.floating],
    text: str,
    vocabulary: Vocabulary,
    *,
    samples: NDArray[np.float32],
    rate: int,
    frame_ms: float,
    centre_ms: float,
    limits: Segmentation | None = None,
) -> Segments:
    """Cut a long recording into utterances by aligning its whole text, and drop the doubtful ones.

    1. The text is aligned with the whole recording (`nearfuture.decoding.align`), words without
       silence in them as far as that is possible.
    2. It is cut wherever, between two words, the model's own best symbol is the blank or a space
       for `silence_ms`, in the middle of the quietest half of that. A stretch has the words that
       the alignment puts into it.
    3. A stretch is dropped where its cost, a word's confidence or its error rate breaks a limit:
       there the text says something else than the recording. So is speech without text.
    4. Of the silence around a stretch half a second at most goes with it. Kept stretches that then
       touch are one segment if together they are not longer than `longest_s`; a stretch that is
       longer by itself is dropped.

    Args:
        log_probs: (T, V) natural logarithms, of the whole recording.
        text: what is said in it; normalise it first (`nearfuture.text.normalise`).
        vocabulary: of the model.
        samples: (n,) the recording itself, so that cuts are made where it is quiet.
        rate: samples per second.
        frame_ms: milliseconds from one frame to the next.
        centre_ms: milliseconds from the start of the audio to the centre of the window of frame 0.
        limits: when to cut and what to drop; the defaults unless given.

    Raises:
        NearfutureError: as `align_words`: for a text that is too long for the recording, or has
            characters the vocabulary lacks.

    Source: Amodei et al., "Deep Speech 2", 2016, section 5.1, which cuts and filters so, but has a
    trained classifier where this has limits.

    >>> vocabulary = Vocabulary((" ", "a", "b"))
    >>> best = [0] * 10 + [2, 3] + [0] * 10 + [1, 2, 2] + [0] * 10
    >>> log_probs = np.log(np.full((35, 4), 0.01) + 0.96 * np.eye(4)[best])
    >>> found = segment(
    ...     log_probs,
    ...     "ab b",
    ...     vocabulary,
    ...     samples=np.zeros(1400),
    ...     rate=1000,
    ...     frame_ms=40,
    ...     centre_ms=20,
    ... )
    >>> [(kept.start_ms, kept.end_ms, kept.text) for kept in found.kept]
    [(0.0, 680.0, 'ab')]
    >>> [(one.segment.text, one.segment.heard, one.reason) for one in found.dropped]
    [('b', 'a', 'cost')]
    """
    limits = limits or Segmentation()
    recording = AlignedRecording.align(
        log_probs,
        text,
        vocabulary,
        samples=samples,
        rate=rate,
        frame_ms=frame_ms,
        centre_ms=centre_ms,
        silence_ms=limits.silence_ms,
    )
    kept: list[Segment] = []
    dropped: list[Dropped] = []
    for cut in recording.cuts():
        stretch = recording.segment(cut)
        if not stretch.words and not stretch.heard:
            continue  # silence too short to be one, at an end of the recording
        if fault := _fault(stretch, limits):
            dropped.append(fault)
            continue
        if kept and kept[-1].cut.stop == cut.start:
            before = kept[-1].cut
            joined = recording.segment(Cut(before.start, before.begin, cut.end, cut.stop))
            if _seconds(joined) <= limits.longest_s:
                kept[-1] = joined
                continue
        kept.append(stretch)
    return Segments(kept=tuple(kept), dropped=tuple(dropped))


def _fault(segment: Segment, limits: Segmentation) -> Dropped | None:
    if not segment.words:
        return Dropped(segment=segment, reason="no text", figure=len(segment.heard))
    confidence = min(word.confidence for word in segment.words)
    for reason, figure, broken in (
        ("cost", segment.cost, segment.cost > limits.highest_cost),
        ("confidence", confidence, confidence < limits.lowest_confidence),
        ("error rate", segment.error_rate, segment.error_rate > limits.highest_error_rate),
        ("length", _seconds(segment), _seconds(segment) > limits.longest_s),
    ):
        if broken:
            return Dropped(segment=segment, reason=reason, figure=figure)
    return None


def _seconds(segment: Segment) -> float:
    return (segment.end_ms - segment.start_ms) / 1000
