"""One pass over a recording: what every head of a streaming model would have shown live.

The step graph computes all heads anyway; here each has a transcript of its own.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

import numpy as np
from numpy.typing import NDArray

from nearfuture.runtime import Model
from nearfuture.runtime.transcript import Transcript

CHUNK_MS = 40
"""What a client sends at once."""


class Shown:
    """The text on show for one head, and what was taken back of it.

    Args:
        transcript: an empty one.

    Attributes:
        transcript: the text so far.
        revisions: how often text on show was changed rather than extended.
        retracted: characters that were taken back by that.

    >>> from nearfuture.text import Vocabulary
    >>> shown = Shown(Transcript(vocabulary=Vocabulary(("a",)), frame_ms=40.0, centre_ms=20.0))
    >>> for text in ("on", "one t", "one se", "one seven"):
    ...     shown.show(text)
    >>> shown.revisions, shown.retracted
    (1, 1)
    """

    def __init__(self, transcript: Transcript) -> None:
        self.transcript = transcript
        self.revisions = 0
        self.retracted = 0
        self._text = ""

    def read(self, log_probs: NDArray[np.float32], preview: NDArray[np.float32]) -> None:
        """More frames (T, V) of the head, and (T', V) of the one that previews."""
        self.transcript = self.transcript.step(log_probs, preview=preview)
        self.show(self.transcript.committed + self.transcript.provisional)

    def show(self, text: str) -> None:
        """The text to show from now on."""
        if not text.startswith(self._text):
            same = zip(text, self._text, strict=False)
            kept = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], same))
            self.revisions += 1
            self.retracted += len(self._text) - kept
        self._text = text


@dataclass(frozen=True, eq=False)
class Heard:
    """What a stream said, and how long computing took.

    Attributes:
        heads: of each head τ the transcript and its revisions.
        quanta_ms: compute time of each quantum that came while the stream was open.
        compute_ms: all computing, the end of the stream included.
        finish_ms: computing at the end of the stream.
    """

    heads: dict[int, Shown]
    quanta_ms: list[float]
    compute_ms: float
    finish_ms: float


def hear(model: Model, samples: NDArray[np.float32], rate: int, heads: Sequence[int]) -> Heard:
    """Stream a recording in chunks of 40 ms, as a client would, and read every head on the way.

    What a head shows is what a stream with that budget shows. Compute time is that of such a
    stream: resampler, graph and one decoder; the decoders of the other heads are not counted.

    Args:
        model: streaming, with its largest lookahead chosen.
        samples: (n,) in [-1, 1].
        rate: samples per second of them.
        heads: the lookaheads wanted.
    """
    manifest = model.manifest
    empty = Transcript(
        vocabulary=manifest.vocabulary, frame_ms=manifest.frame_ms, centre_ms=manifest.centre_ms
    )
    shown = {tau: Shown(empty) for tau in heads}
    previews = min(model.budgets)
    aside = 0.0

    def read(log_probs: dict[int, NDArray[np.float32]]) -> None:
        nonlocal aside
        began = time.perf_counter()
        for tau, one in shown.items():
            one.read(log_probs[tau], log_probs[previews])
        aside += time.perf_counter() - began

    def clock() -> float:
        return 1000 * (time.perf_counter() - aside)

    stream = model.stream(rate, on_log_probs=read)
    quanta_ms: list[float] = []
    chunk = max(1, rate * CHUNK_MS // 1000)
    began = clock()
    for at in range(0, len(samples), chunk):
        before = clock()
        events = stream.accept(samples[at : at + chunk])
        if events:
            quanta_ms += [(clock() - before) / len(events)] * len(events)
    ended = clock()
    stream.finish()
    done = clock()
    return Heard(shown, quanta_ms, compute_ms=done - began, finish_ms=done - ended)
