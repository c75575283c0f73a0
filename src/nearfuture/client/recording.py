"""A recording ready to be played to a server: samples, text, and where the speech lies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nearfuture.client.playback import as_pcm
from nearfuture.client.protocol import Pcm
from nearfuture.client.speech import Speech, Spoken, by_energy, by_words
from nearfuture.error import NearfutureError
from nearfuture.text import normalise


@dataclass(frozen=True, kw_only=True, eq=False)
class Recording:
    """What is played, made before the clock runs, and what is known of it.

    Attributes:
        name: to be told apart by.
        pcm: (n,) int16 at `rate`.
        rate: samples per second, as the protocol wants them.
        text: what is said, normalised; None: not known.
        words: its words with times, maybe none.
        speech: where the speech lies; None: there is none.
    """

    name: str
    pcm: Pcm
    rate: int
    text: str | None
    words: tuple[Spoken, ...]
    speech: Speech | None

    @classmethod
    def of(
        cls,
        name: str,
        samples: NDArray[np.float32],
        rate: int,
        *,
        to: int,
        text: str | None = None,
        words: Sequence[Spoken] = (),
    ) -> Recording:
        """Prepare a recording.

        Args:
            name: of it.
            samples: (n,) in [-1, 1].
            rate: samples per second of them.
            to: samples per second to play.
            text: what is said, if that is known; the words say it otherwise.
            words: with times, if they are known.

        Raises:
            NearfutureError: if it holds no samples, or the words are not those of the text.
        """
        if len(samples) == 0:
            raise NearfutureError(f"{name}: it holds no samples")
        said = " ".join(word.text for word in words)
        text = normalise(text) if text is not None else (said or None)
        if words and said != text:
            raise NearfutureError(
                f"{name}: its word times are of another text ({said[:40]!r}, not "
                f"{(text or '')[:40]!r}): align it again"
            )
        return cls(
            name=name,
            pcm=as_pcm(samples, rate, to),
            rate=to,
            text=text,
            words=tuple(words),
            speech=by_words(words) or by_energy(samples, rate),
        )

    @property
    def duration_s(self) -> float:
        """How long it plays."""
        return len(self.pcm) / self.rate
