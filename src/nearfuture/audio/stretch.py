"""Where in a file one recording stands that a decoder reads in one go."""

from __future__ import annotations

from dataclasses import dataclass

from nearfuture.audio.error import Damage
from nearfuture.audio.wav import WavHeader

MOST_STRETCHES = 1000
"""Recordings of one file that are read: each costs time and memory before the first is."""

TOO_MANY = Damage(
    f"holds more than {MOST_STRETCHES} recordings one behind another: what follows is not read; "
    f"split it first"
)


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """A part of a file that is a whole file of its kind.

    Attributes:
        begin: its first byte.
        end: behind its last byte.
        prefix: a header that it lacks.
        wav: its header, where its samples need no decoder; `begin` is that of the samples then.
        damage: why something is missing behind its samples.
        inexact: in how many of its last samples decoding must not begin; None: only at its
            beginning.
        preroll: how many samples before a place decoding must begin for all to be the same.
    """

    begin: int
    end: int
    prefix: bytes = b""
    wav: WavHeader | None = None
    damage: Damage | None = None
    inexact: int | None = 0
    preroll: int = 0
