"""The text of a stream, divided into utterances without losing or repeating a character."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from nearfuture.decoding import Endpoint, Word
from nearfuture.runtime.transcript import Transcript


@dataclass(frozen=True)
class SegmentedTranscript:
    """A transcript that restarts after every utterance; a value: `step` returns the next.

    An endpoint divides the committed characters in time and changes nothing else: no state is
    reset, so the utterances, put one behind another, are the text of the whole stream. An utterance
    begins with a space, unless it is the first or continues the last word of the one before, which
    was cut at its longest, or by a silence too short to lie between two words. Memory is that of
    one utterance.

    Args:
        transcript: of a stream that has not begun.
        endpoint: when an utterance ends; None: never.
        utterance: the number of the current utterance, from 0.
        ends: whether it has ended with the last step; the next step begins another one.

    >>> from nearfuture.decoding import Detokenizer
    >>> from nearfuture.text import Vocabulary
    >>> detokenizer = Detokenizer(Vocabulary(("a", " ")), frame_ms=40.0, centre_ms=20.0)
    >>> empty = Transcript(detokenizer=detokenizer)
    >>> segmented = SegmentedTranscript(empty, Endpoint(silence_ms=80))
    >>> for best in (1, 0, 1, 0, 0, 2, 1):
    ...     segmented = segmented.step(np.log(np.eye(3, dtype=np.float32)[[best]] * 0.85 + 0.05))
    ...     print(segmented.utterance, repr(segmented.committed), segmented.ends)
    0 'a' False
    0 'a' False
    0 'aa' False
    0 'aa' False
    0 'aa' True
    1 '' False
    1 ' a' False
    """

    transcript: Transcript
    endpoint: Endpoint | None = None
    utterance: int = 0
    ends: bool = False

    @property
    def committed(self) -> str:
        """The committed text of the current utterance."""
        return self.transcript.committed

    @property
    def words(self) -> tuple[Word, ...]:
        """The words of the current utterance; their times are those of the stream."""
        return self.transcript.words

    @property
    def continues(self) -> bool:
        """Whether this utterance begins in the middle of the last word of the one before it."""
        return self.utterance > 0 and bool(self.committed) and not self.committed.startswith(" ")

    @property
    def provisional(self) -> str:
        """The provisional text; empty after an utterance that has ended."""
        return "" if self.ends else self.transcript.provisional

    @property
    def frames(self) -> int:
        """The number of frames that the committing head has decoded."""
        return self.transcript.frames

    def step(
        self, log_probs: NDArray[np.float32], preview: NDArray[np.float32] | None = None
    ) -> SegmentedTranscript:
        """Return the transcript after more frames; the arguments are those of `Transcript.step`."""
        before = self.transcript.drop_committed() if self.ends else self.transcript
        after = before.step(log_probs, preview)
        return replace(
            self,
            transcript=after,
            utterance=self.utterance + self.ends,
            ends=self.endpoint is not None and _reached(self.endpoint, after),
        )


def _reached(endpoint: Endpoint, transcript: Transcript) -> bool:
    return bool(transcript.words) and endpoint.reached(
        speech_ms=transcript.speech_ms,
        silence_ms=transcript.silence_ms,
        between_words=transcript.between_words,
    )
