"""Where one utterance ends and the next begins: a rule about silence, without a model."""

from __future__ import annotations

import math
from dataclasses import dataclass

from nearfuture.error import NearfutureError


@dataclass(frozen=True)
class Endpoint:
    """The endpointing rule: an utterance ends after silence, or at a maximum length.

    Everything is measured on *settled* frames, those that the committing head has read, so that no
    text of an utterance can still arrive once the rule has fired. An utterance that reaches nine
    tenths of `longest_ms` ends between two words; only where there is no such place before
    `longest_ms` is it cut anywhere.

    Args:
        silence_ms: frames without text behind a word that end an utterance; a shorter pause is
            part of it. From 500 ms on it ends the word, too (`PAUSE_MS`); a shorter silence may
            lie within one.
        longest_ms: from the first character of an utterance.

    Raises:
        NearfutureError: unless 0 < silence_ms ≤ longest_ms, both finite.

    >>> rule = Endpoint(silence_ms=800)
    >>> [rule.reached(speech_ms=2000, silence_ms=ms, between_words=False) for ms in (400, 800)]
    [False, True]
    >>> [rule.reached(speech_ms=19_000, silence_ms=0, between_words=b) for b in (False, True)]
    [False, True]
    """

    silence_ms: float = 800.0
    longest_ms: float = 20_000.0

    def __post_init__(self) -> None:
        if not (0 < self.silence_ms <= self.longest_ms and math.isfinite(self.longest_ms)):
            raise NearfutureError(
                f"`silence_ms` must be above 0 and at most `longest_ms`, both finite, not "
                f"{self.silence_ms:g} and {self.longest_ms:g}",
                code="out_of_range",
                parameter="silence_ms",
            )

    def reached(self, *, speech_ms: float, silence_ms: float, between_words: bool) -> bool:
        """Whether an utterance that has words ends here.

        Args:
            speech_ms: since its first character.
            silence_ms: since its last frame of text.
            between_words: whether a word has just ended.
        """
        return (
            silence_ms >= self.silence_ms
            or speech_ms >= self.longest_ms
            or (between_words and speech_ms >= 0.9 * self.longest_ms)
        )
