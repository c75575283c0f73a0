"""A recording as text: its utterances, their words, and where they are in time."""

from __future__ import annotations

from dataclasses import dataclass, field

from nearfuture.decoding import Word, join_words
from nearfuture.text import join_utterances


@dataclass(frozen=True)
class TranscribedUtterance:
    """What was said between two pauses; it has a word at least.

    Attributes:
        text: without a space at either end.
        words: with times from the start of the recording.
        continues: whether it begins in the middle of the last word of the utterance before: a
            word without an end is cut where the utterance is as long as one may be.
    """

    text: str
    words: tuple[Word, ...]
    continues: bool = False

    @property
    def start_ms(self) -> float:
        """Where its first word starts."""
        return self.words[0].start_ms

    @property
    def end_ms(self) -> float:
        """Where its last word ends."""
        return self.words[-1].end_ms


@dataclass(frozen=True)
class Transcription:
    """A whole recording as text; made by `Model.transcribe`.

    Attributes:
        utterances: in their order.
        audio_ms: how long the recording is.
        compute_ms: how long it took, decoding of the file included. Equality leaves it out.

    >>> word = Word("two", 40.0, 300.0, 0.9)
    >>> heard = Transcription((TranscribedUtterance("two", (word,)),) * 2, 2000.0, 30.0)
    >>> heard.text, len(heard.words)
    ('two two', 2)
    """

    utterances: tuple[TranscribedUtterance, ...]
    audio_ms: float
    compute_ms: float = field(compare=False)

    @property
    def text(self) -> str:
        """All that was said: single spaces between words, none at the ends."""
        return join_utterances((one.text, one.continues) for one in self.utterances)

    @property
    def words(self) -> tuple[Word, ...]:
        """The words of all utterances; a word that two utterances share is one word."""
        return tuple(join_words((one.words, one.continues) for one in self.utterances))
