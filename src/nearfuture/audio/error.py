"""Errors and damage of recordings."""

from __future__ import annotations

from dataclasses import dataclass

from nearfuture.error import NearfutureError


class AudioError(NearfutureError):
    """An error for a recording that cannot be read; the message states which, why, what it is."""

    code = "damaged"


class TruncatedAudioError(AudioError):
    """An error for a recording whose end or middle is missing."""


@dataclass(frozen=True)
class Damage:
    """The reason why samples of a recording are missing.

    Attributes:
        reason: What is wrong, as the rest of a sentence that begins with the name of the file.
        at_s: Seconds of audio before the damage; None where that is unknown.

    >>> Damage("was cut off: 60 of 100 bytes of samples are there", 0.004).sentence("a.wav")
    'a.wav was cut off: 60 of 100 bytes of samples are there; its first 0.004 s can be read'
    """

    reason: str
    at_s: float | None = None

    def sentence(self, name: str) -> str:
        """Put it into one line, for a recording of this name."""
        readable = "" if self.at_s is None else f"; its first {self.at_s:.3f} s can be read"
        return f"{name} {self.reason}{readable}"
