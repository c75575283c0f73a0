"""One pass over a recording: what a live stream would have shown for every head of a model.

The step graph computes all heads anyway; here each has a transcript of its own.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

import numpy as np
from numpy.typing import NDArray

from nearfuture.runtime import Model, Transcript

CHUNK_MS = 40
"""The audio that a client sends at once."""


class PartialResults:
    """The partial results of one head, and how much of them was revised.

    Args:
        transcript: an empty one.

    Attributes:
        transcript: the text so far.
        revisions: how often the partial result was changed rather than extended.
        retracted: characters that were taken back by that.

    >>> from nearfuture.runtime import load
    >>> partials = PartialResults(Transcript.empty(load("digits").manifest))
    >>> for text in ("on", "one t", "one se", "one seven"):
    ...     partials.update(text)
    >>> partials.revisions, partials.retracted
    (1, 1)
    """

    def __init__(self, transcript: Transcript) -> None:
        self.transcript = transcript
        self.revisions = 0
        self.retracted = 0
        self._text = ""

    def accept(self, log_probs: NDArray[np.float32], preview: NDArray[np.float32]) -> None:
        """Decode more frames (T, V) of the head, and (T', V) of the head that previews."""
        self.transcript = self.transcript.step(log_probs, preview=preview)
        self.update(self.transcript.committed + self.transcript.provisional)

    def update(self, text: str) -> None:
        """Replace the partial result, and count what that takes back."""
        if not text.startswith(self._text):
            pairs = zip(self._text, text, strict=False)
            kept = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
            self.revisions += 1
            self.retracted += len(self._text) - kept
        self._text = text


@dataclass(frozen=True, eq=False)
class StreamedRecording:
    """The hypotheses of a stream for a recording, and its compute time.

    Attributes:
        heads: the partial results of each head, by lookahead; their transcripts are final.
        quanta_ms: compute time of each quantum that came while the stream was open.
        compute_ms: all computing, the end of the stream included.
        finish_ms: computing at the end of the stream.
    """

    heads: dict[int, PartialResults]
    quanta_ms: list[float]
    compute_ms: float
    finish_ms: float


def stream_recording(
    model: Model, samples: NDArray[np.float32], rate: int, heads: Sequence[int]
) -> StreamedRecording:
    """Stream a recording in chunks of 40 ms, as a client would, and decode every head on the way.

    What a head shows is what a stream with that budget shows. Compute time is that of such a
    stream: resampler, graph and one decoder; the decoders of the other heads are not counted.

    Args:
        model: streaming, with its largest lookahead chosen.
        samples: (n,) in [-1, 1].
        rate: samples per second.
        heads: the lookaheads wanted.
    """
    empty = Transcript.empty(model.manifest)
    partials = {tau: PartialResults(empty) for tau in heads}
    preview = min(model.budgets)
    decoding_s = 0.0

    def decode(log_probs: dict[int, NDArray[np.float32]]) -> None:
        nonlocal decoding_s
        start_s = time.perf_counter()
        for tau, partial in partials.items():
            partial.accept(log_probs[tau], log_probs[preview])
        decoding_s += time.perf_counter() - start_s

    def clock_ms() -> float:
        return 1000 * (time.perf_counter() - decoding_s)

    stream = model.stream(rate, on_log_probs=decode)
    quanta_ms: list[float] = []
    chunk = max(1, rate * CHUNK_MS // 1000)
    opened_ms = clock_ms()
    for start in range(0, len(samples), chunk):
        before_ms = clock_ms()
        events = stream.accept(samples[start : start + chunk])
        if events:
            quanta_ms += [(clock_ms() - before_ms) / len(events)] * len(events)
    ended_ms = clock_ms()
    stream.finish()
    final_ms = clock_ms()
    return StreamedRecording(partials, quanta_ms, final_ms - opened_ms, final_ms - ended_ms)
