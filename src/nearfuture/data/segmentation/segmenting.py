"""A long recording and its text, cut in silence into utterances whose text can be trusted.

Shapes: `T` frames, `V` vocabulary with the blank.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from nearfuture.audio import Audio
from nearfuture.data.segmentation.alignment import (
    AlignedRecording,
    Emissions,
    FrameSpan,
    Segment,
)
from nearfuture.error import NearfutureError


@dataclass(frozen=True, kw_only=True)
class SegmentationOptions:
    """Rules for cutting recordings and for keeping segments.

    Attributes:
        silence_ms: cut where the model's best symbol is the blank or a space for so long, between
            two words.
        max_s: the longest segment, in seconds.
        max_cost: of a segment: `-log p(path)` for each character of its text, in nats.
        min_confidence: of each word, see `AlignedWord`.
        max_cer: character error rate of what the model decodes by itself against the text.

    Raises:
        NearfutureError: for a value out of its range.
    """

    silence_ms: float = 300.0
    max_s: float = 15.0
    max_cost: float = 1.0
    min_confidence: float = 0.05
    max_cer: float = 0.3

    def __post_init__(self) -> None:
        for name in ("silence_ms", "max_s"):
            if not 0 < getattr(self, name) < math.inf:
                raise NearfutureError(
                    f"`{name}` must be above 0, not {getattr(self, name)}",
                    code="out_of_range",
                    parameter=name,
                )
        for name in ("max_cost", "min_confidence", "max_cer"):
            if not getattr(self, name) >= 0:
                raise NearfutureError(
                    f"`{name}` must not be below 0, not {getattr(self, name)}",
                    code="out_of_range",
                    parameter=name,
                )


@dataclass(frozen=True, kw_only=True)
class DroppedSegment:
    """A segment whose text is not reliable.

    Attributes:
        segment: its text is empty where the reference has nothing for it.
        reason: `cost`, `confidence`, `error rate`, `length`, or `no text`.
        value: what broke the limit; for a length in seconds, for speech without text the number of
            characters in the hypothesis.
    """

    segment: Segment
    reason: str
    value: float


@dataclass(frozen=True, kw_only=True)
class Segments:
    """The segments of a long recording, in its order.

    Attributes:
        kept: those to use.
        dropped: those not to use.
    """

    kept: tuple[Segment, ...]
    dropped: tuple[DroppedSegment, ...]


def segment(
    emissions: Emissions,
    text: str,
    audio: Audio,
    options: SegmentationOptions | None = None,
) -> Segments:
    """Cut a long recording into utterances by aligning its whole text, and drop the doubtful ones.

    1. The text is aligned with the whole recording (`nearfuture.decoding.align`), words without
       silence in them as far as that is possible.
    2. It is cut wherever, between two words, the model's own best symbol is the blank or a space
       for `silence_ms`, in the middle of the quietest half of that. A segment has the words that
       the alignment puts into it.
    3. A segment is dropped where its cost, a word's confidence or its error rate breaks a limit:
       there the text says something else than the recording. So is speech without text.
    4. Of the silence around a segment half a second at most goes with it. Kept segments that then
       touch are joined if together they are not longer than `max_s`; a segment that is longer by
       itself is dropped.

    Args:
        emissions: of the whole recording.
        text: the transcript of all of it; normalise it first (`nearfuture.text.normalise`).
        audio: the recording itself, so that cuts are made where it is quiet.
        options: where to cut and what to drop.

    Raises:
        NearfutureError: as `align_words`: for a text that is too long for the recording, or has
            characters the vocabulary lacks.

    Source: Amodei et al., "Deep Speech 2", 2016, section 5.1, which cuts and filters so, but has a
    trained classifier where this has limits.

    >>> import numpy as np
    >>> from nearfuture.text import Vocabulary
    >>> best = [0] * 10 + [2, 3] + [0] * 10 + [1, 2, 2] + [0] * 10
    >>> emissions = Emissions(
    ...     log_probs=np.log(np.full((35, 4), 0.01) + 0.96 * np.eye(4)[best]),
    ...     vocabulary=Vocabulary((" ", "a", "b")),
    ...     frame_ms=40,
    ...     centre_ms=20,
    ... )
    >>> segments = segment(emissions, "ab b", Audio(np.zeros(1400, np.float32), 1000))
    >>> [(kept.start_ms, kept.end_ms, kept.text) for kept in segments.kept]
    [(0.0, 680.0, 'ab')]
    >>> [(drop.segment.text, drop.segment.hypothesis, drop.reason) for drop in segments.dropped]
    [('b', 'a', 'cost')]
    """
    options = options or SegmentationOptions()
    recording = AlignedRecording.align(emissions, text, audio, silence_ms=options.silence_ms)
    kept: list[Segment] = []
    dropped: list[DroppedSegment] = []
    for span in recording.spans():
        candidate = recording.segment(span)
        if not candidate.words and not candidate.hypothesis:
            continue  # silence too short to be one, at an end of the recording
        if drop := _rejected(candidate, options):
            dropped.append(drop)
            continue
        if kept and kept[-1].frames.stop == span.start:
            before = kept[-1].frames
            joined = recording.segment(FrameSpan(before.start, before.begin, span.end, span.stop))
            if joined.seconds <= options.max_s:
                kept[-1] = joined
                continue
        kept.append(candidate)
    return Segments(kept=tuple(kept), dropped=tuple(dropped))


def _rejected(segment: Segment, options: SegmentationOptions) -> DroppedSegment | None:
    if not segment.words:
        return DroppedSegment(segment=segment, reason="no text", value=len(segment.hypothesis))
    confidence = min(word.confidence for word in segment.words)
    for reason, value, broken in (
        ("cost", segment.cost, segment.cost > options.max_cost),
        ("confidence", confidence, confidence < options.min_confidence),
        ("error rate", segment.error_rate, segment.error_rate > options.max_cer),
        ("length", segment.seconds, segment.seconds > options.max_s),
    ):
        if broken:
            return DroppedSegment(segment=segment, reason=reason, value=value)
    return None
