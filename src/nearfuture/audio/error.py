"""What can be wrong with a recording."""

from __future__ import annotations

from dataclasses import dataclass

from nearfuture.error import NearfutureError


class AudioError(NearfutureError):
    """A recording that cannot be read: which, why, and what was found instead."""

    code = "damaged"


class CutOff(AudioError):  # noqa: N818 - what it says, not that it failed
    """A recording whose end, or whose middle, is missing."""


@dataclass(frozen=True)
class Damage:
    """Why not all samples of a recording are there.

    Attributes:
        reason: what is wrong, as the rest of a sentence that begins with the name of the file.
        at_s: seconds of audio that come before; None where nobody can tell.

    >>> Damage("was cut off: 60 of 100 bytes of samples are there", 0.004).sentence("a.wav")
    'a.wav was cut off: 60 of 100 bytes of samples are there; its first 0.004 s can be read'
    """

    reason: str
    at_s: float | None = None

    def sentence(self, name: str) -> str:
        """The whole of it in one line."""
        readable = "" if self.at_s is None else f"; its first {self.at_s:.3f} s can be read"
        return f"{name} {self.reason}{readable}"
