"""What one stream has said so far: log-probabilities in, events out.

`Stream` and `LiveStream` share it, so what a stream says does not depend on how it is served.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from nearfuture.decoding import Endpoint, Word
from nearfuture.runtime.transcript import Transcript
from nearfuture.runtime.utterance import Utterances

LogProbsHook = Callable[[dict[int, NDArray[np.float32]]], None]
"""Called after each step with the new log-probabilities (frames, V) of every head τ."""


@dataclass(frozen=True)
class Event:
    """The text of a stream after one more quantum, or at its end.

    Attributes:
        committed: settled text; from event to event it only grows.
        provisional: what probably follows, to be shown behind it; empty at the end.
        final: whether the stream has ended.
        audio_ms: how much audio this has heard.
        words: the committed words, with times and confidence.
        frames: how many frames `committed` has settled; no later word is written in one of them.
        compute_ms: from the quantum being complete, or the stream being ended, to this event. It
            says how fast the text came, not what it is: equality leaves it out.
        utterance: of the stream, counted from 0. Where endpoints divide it, `committed` and `words`
            are of this utterance; all of them, put one behind another, are the text.
        ends: whether this utterance has ended.
        continues: whether it begins in the middle of the last word of the utterance before it.
    """

    committed: str
    provisional: str
    final: bool
    audio_ms: float
    words: tuple[Word, ...]
    frames: int
    compute_ms: float = field(compare=False)
    utterance: int = 0
    ends: bool = False
    continues: bool = False


class Reading:
    """The text of one stream, as the steps of a model bring it.

    Args:
        transcript: an empty one.
        commits: lookahead τ of the head that commits.
        previews: of the head whose text is shown in advance.
        rate: samples per second of the model.
        on_log_probs: sees all log-probabilities, for decoders of one's own.
        endpoint: divides the text into utterances; it is one unless given.

    Attributes:
        heard_samples: how much audio has been heard, at the model's rate.
    """

    def __init__(
        self,
        transcript: Transcript,
        *,
        commits: int,
        previews: int,
        rate: int,
        on_log_probs: LogProbsHook | None = None,
        endpoint: Endpoint | None = None,
    ) -> None:
        self.heard_samples = 0
        self._transcript = Utterances(transcript, endpoint)
        self._commits, self._previews = commits, previews
        self._rate = rate
        self._on_log_probs = on_log_probs

    def read(self, log_probs: dict[int, NDArray[np.float32]], samples: int = 0) -> None:
        """Read what `samples` more of audio, or the end of the stream, made final.

        Args:
            log_probs: the new frames (T, V) of every head τ.
            samples: at the model's rate.
        """
        self.heard_samples += samples
        if self._on_log_probs is not None:
            self._on_log_probs(log_probs)
        self._transcript = self._transcript.step(
            log_probs[self._commits], preview=log_probs[self._previews]
        )

    def event(self, *, since: float, final: bool = False) -> Event:
        """What there is to show now, for what was complete at `since` (`time.perf_counter`)."""
        return Event(
            committed=self._transcript.committed,
            provisional=self._transcript.provisional,
            final=final,
            audio_ms=1000 * self.heard_samples / self._rate,
            words=self._transcript.words,
            frames=self._transcript.frames,
            compute_ms=1000 * (perf_counter() - since),
            utterance=self._transcript.utterance,
            ends=self._transcript.ends or final,
            continues=self._transcript.continues,
        )
