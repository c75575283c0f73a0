"""A recording ready to be played to a server: samples, text, and where the speech lies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nearfuture.audio import Audio
from nearfuture.client.measure.speech import SpeechSpan, by_energy, by_words
from nearfuture.client.playback import to_pcm
from nearfuture.client.protocols import Pcm
from nearfuture.decoding import Word
from nearfuture.error import NearfutureError
from nearfuture.text import normalise


@dataclass(frozen=True, kw_only=True, eq=False)
class ReferenceRecording:
    """A recording to play, prepared before time is measured, with its reference.

    Attributes:
        name: of the recording.
        pcm: (n,) int16 at `rate`.
        rate: samples per second, as the protocol wants them.
        text: the reference transcript, normalised; None: not known.
        words: its words with times, maybe none.
        speech: where the speech lies; None: there is none.
    """

    name: str
    pcm: Pcm
    rate: int
    text: str | None
    words: tuple[Word, ...]
    speech: SpeechSpan | None

    @classmethod
    def of(
        cls,
        name: str,
        audio: Audio,
        *,
        to: int,
        text: str | None = None,
        words: Sequence[Word] = (),
    ) -> ReferenceRecording:
        """Prepare a recording.

        Args:
            name: of the recording.
            audio: its samples.
            to: samples per second to play.
            text: the reference transcript, if it is known; otherwise the words are it.
            words: with times, if they are known.

        Raises:
            NearfutureError: if it holds no samples, or the words are not those of the text.
        """
        if len(audio.samples) == 0:
            raise NearfutureError(f"{name}: it holds no samples")
        aligned = " ".join(word.text for word in words)
        text = normalise(text) if text is not None else (aligned or None)
        if words and aligned != text:
            raise NearfutureError(
                f"{name}: its word times are of another text ({aligned[:40]!r}, not "
                f"{(text or '')[:40]!r}): align it again",
                parameter="words",
            )
        return cls(
            name=name,
            pcm=to_pcm(audio.samples, audio.rate, to),
            rate=to,
            text=text,
            words=tuple(words),
            speech=by_words(words) or by_energy(audio.samples, audio.rate),
        )

    @property
    def duration_s(self) -> float:
        """The duration of the recording in seconds."""
        return len(self.pcm) / self.rate
