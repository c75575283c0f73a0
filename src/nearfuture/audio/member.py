"""A member of a file: a recording that stands in it whole, before or behind others.

The word is gzip's: a file of several members is several files, one behind the other.
"""

from __future__ import annotations

from dataclasses import dataclass

from nearfuture.audio.error import Damage
from nearfuture.audio.wav import WavHeader


@dataclass(frozen=True, kw_only=True)
class Member:
    """A part of a file that a decoder reads as a whole file of its kind.

    Attributes:
        begin: Offset of the first byte.
        end: Offset behind the last byte.
        prefix: A header that the member lacks.
        wav: The header, where samples need no decoder; `begin` is then that of the samples.
        damage: Why samples are missing at the end.
        unseekable_frames: Decoding must not begin in the last so many samples; None: it must begin
            with the first.
        preroll_frames: Decoding must begin so many samples early to give the same samples.
    """

    begin: int
    end: int
    prefix: bytes = b""
    wav: WavHeader | None = None
    damage: Damage | None = None
    unseekable_frames: int | None = 0
    preroll_frames: int = 0
