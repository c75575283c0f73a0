"""Named recognisers, as functions."""

from __future__ import annotations

from nearfuture.speech.recognizer import RecognizerConfig
from nearfuture.text import Vocabulary

__all__ = ["PRESETS", "small", "tiny"]


def tiny(*, symbols: tuple[str, ...] | None = None) -> RecognizerConfig:
    """Two layers of 32: for tests and first steps; it learns little.

    >>> tiny().hidden
    32
    """
    return RecognizerConfig(
        symbols=symbols or Vocabulary.english().symbols, hidden=32, layers=2, dropout=0.0
    )


def small(*, symbols: tuple[str, ...] | None = None) -> RecognizerConfig:
    """Three layers of 192, under a million parameters: a small vocabulary, live on any CPU.

    >>> small().frames
    (0, 4, 8, 19)
    """
    return RecognizerConfig(symbols=symbols or Vocabulary.english().symbols, hidden=192, layers=3)


PRESETS = {"tiny": tiny, "small": small}
