"""The text of one stream: log-probabilities in, events out.

`Stream` and `LiveStream` share it, so the events of a stream do not depend on how it is served.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from nearfuture.decoding import Word
from nearfuture.runtime.segmented_transcript import SegmentedTranscript
from nearfuture.runtime.stream_config import StreamConfig
from nearfuture.runtime.transcript import Transcript


@dataclass(frozen=True)
class Event:
    """The text of a stream after one more quantum, or at its end.

    Attributes:
        committed: text that does not change any more; from event to event it only grows.
        provisional: what probably follows, to be shown behind it; empty at the end.
        final: whether the stream has ended.
        audio_ms: how much audio has been computed.
        words: the committed words, with times and confidence.
        frames: how many frames are committed; no later word begins in one of them.
        compute_ms: from the quantum being complete, or the stream being ended, to this event; it
            does not count in comparisons.
        utterance: the number of the utterance, from 0. Where endpoints divide the stream,
            `committed` and `words` are of this utterance; all utterances, put one behind another,
            are the text.
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


class StreamDecoder:
    """Decodes one stream, step by step.

    Args:
        config: of the stream.

    Attributes:
        samples: how many have been decoded, at the model's rate.
    """

    def __init__(self, config: StreamConfig) -> None:
        self.samples = 0
        self._config = config
        self._previews = min(config.manifest.heads)
        self._transcript = SegmentedTranscript(
            Transcript.empty(config.manifest), endpoint=config.endpoint
        )

    def step(self, log_probs: dict[int, NDArray[np.float32]], samples: int = 0) -> None:
        """Decode the frames that `samples` more of audio, or the end of the stream, made final.

        Args:
            log_probs: the new frames (T, V) of every head τ.
            samples: at the model's rate.
        """
        self.samples += samples
        if self._config.on_log_probs is not None:
            self._config.on_log_probs(log_probs)
        self._transcript = self._transcript.step(
            log_probs[self._config.lookahead], preview=log_probs[self._previews]
        )

    def event(self, *, since: float, final: bool = False) -> Event:
        """Return the text so far, for audio that was complete at `since` (`perf_counter`)."""
        transcript = self._transcript
        return Event(
            committed=transcript.committed,
            provisional=transcript.provisional,
            final=final,
            audio_ms=1000 * self.samples / self._config.manifest.rate,
            words=transcript.words,
            frames=transcript.frames,
            compute_ms=1000 * (perf_counter() - since),
            utterance=transcript.utterance,
            ends=transcript.ends or final,
            continues=transcript.continues,
        )
