"""A recording as text: its utterances, their words, and where they are in time."""

from __future__ import annotations

from dataclasses import dataclass, field

from nearfuture.decoding import Word, join_words
from nearfuture.text import join_utterances


@dataclass(frozen=True)
class TranscribedUtterance:
    """The text between two pauses, at least one word.

    Attributes:
        text: all of it, without a space at either end.
        words: of the text, with times from the start of the recording.
        continues: whether it begins in the middle of the last word of the utterance before it: an
            utterance that reaches its longest may be cut within a word.
    """

    text: str
    words: tuple[Word, ...]
    continues: bool = False

    @property
    def start_ms(self) -> float:
        """The start of the first word in ms."""
        return self.words[0].start_ms

    @property
    def end_ms(self) -> float:
        """The end of the last word in ms."""
        return self.words[-1].end_ms


@dataclass(frozen=True)
class Transcription:
    """A whole recording as text; made by `Model.transcribe`.

    Attributes:
        utterances: all of them, in their order.
        audio_ms: how long the recording is.
        compute_ms: how long it took, decoding of the file included. Equality leaves it out.

    >>> word = Word("two", 40.0, 300.0, 0.9)
    >>> transcription = Transcription((TranscribedUtterance("two", (word,)),) * 2, 2000.0, 30.0)
    >>> transcription.text, len(transcription.words)
    ('two two', 2)
    """

    utterances: tuple[TranscribedUtterance, ...]
    audio_ms: float
    compute_ms: float = field(compare=False)

    @property
    def text(self) -> str:
        """The text of all utterances: single spaces between words, none at the ends."""
        return join_utterances((part.text, part.continues) for part in self.utterances)

    @property
    def words(self) -> tuple[Word, ...]:
        """The words of all utterances; a word that two utterances share is one word."""
        return tuple(join_words((part.words, part.continues) for part in self.utterances))
