"""Which recordings a model can learn from, by their length and their text alone."""

from __future__ import annotations

from dataclasses import dataclass, field

from nearfuture.budget import RecognizerConfig
from nearfuture.error import NearfutureError
from nearfuture.text import counted, frames_needed

LONGEST_S = 40.0
"""Longer recordings are left out unless another limit is asked for: LibriSpeech's longest has 35 s.
So much audio is also in a batch, unless told otherwise."""

_SHOWN = 40  # characters of a text


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What `check` names, what trainings leave out, and what their augmentation respects.

    Attributes:
        longest_s: of a recording, in seconds.
        model: decides how many frames a recording has; CTC's loss is infinite where its text needs
            more (`nearfuture.text.frames_needed`).

    Raises:
        NearfutureError: for a limit that is none.

    >>> limits = Limits(longest_s=30.0)
    >>> limits.broken(31.0, "seven")
    ('too long', 'it is 31.0 s long, over the limit of 30 s: cut it into shorter ones, or raise \
the limit')
    >>> limits.broken(0.1, "seven")
    ('too short for its text', "its 0.10 s are 2 frames of 40 ms; 'seven' needs 5")
    >>> limits.broken(1.0, "seven") is None
    True
    """

    longest_s: float = LONGEST_S
    model: RecognizerConfig = field(default_factory=RecognizerConfig)

    def __post_init__(self) -> None:
        if not self.longest_s > 0:
            raise NearfutureError(
                f"the longest recording has {self.longest_s} s: more than 0 seconds are wanted"
            )

    def fits(self, seconds: float, text: str) -> bool:
        """Whether CTC can spell a text within so many seconds."""
        return frames_needed(text) <= self.model.frames_in(seconds)

    def broken(self, seconds: float, text: str) -> tuple[str, str] | None:
        """Why a recording is left out, as a kind and a reason; None where it is not."""
        if seconds > self.longest_s:
            return "too long", (
                f"it is {seconds:.1f} s long, over the limit of {self.longest_s:g} s: cut it into "
                f"shorter ones, or raise the limit"
            )
        if not self.fits(seconds, text):
            frames = counted(self.model.frames_in(seconds), "frame")
            shown = text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
            return "too short for its text", (
                f"its {seconds:.2f} s are {frames} of {self.model.frame_ms:g} ms; {shown!r} needs "
                f"{frames_needed(text)}"
            )
        return None
