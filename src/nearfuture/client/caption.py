"""What a server shows of one utterance, whatever the protocol that carries it."""

from __future__ import annotations

from dataclasses import dataclass, field

from nearfuture.text import join_utterances


@dataclass(frozen=True, kw_only=True)
class Caption:
    """The text of one utterance so far; a later caption of the same utterance replaces it.

    Attributes:
        utterance: a number, or the name that the protocol gives the utterance.
        committed: text that the protocol promises to keep.
        provisional: text behind it that may still change.
        final: whether this utterance has ended.
        continues: whether it begins in the middle of the last word of the utterance before.
        audio_ms: how much audio this text covers, where the protocol states it.
    """

    utterance: str
    committed: str
    provisional: str = ""
    final: bool = False
    continues: bool = False
    audio_ms: float | None = None

    @property
    def text(self) -> str:
        """Committed and provisional text, as a reader sees them."""
        return self.committed + self.provisional


@dataclass
class CaptionLog:
    """The last caption of every utterance of a stream, and the text they add up to.

    >>> log = CaptionLog()
    >>> log.add(Caption(utterance="0", committed="one tw", final=True))
    >>> log.add(Caption(utterance="1", committed="o", continues=True, final=True))
    >>> log.add(Caption(utterance="2", committed="three", provisional=" fo"))
    >>> log.text, log.utterances
    ('one two three', ['one tw', 'o', 'three'])
    """

    _captions: dict[str, Caption] = field(default_factory=dict)

    def add(self, caption: Caption) -> None:
        """Add a caption, in place of an earlier one of the same utterance."""
        self._captions[caption.utterance] = caption

    @property
    def utterances(self) -> list[str]:
        """The committed texts, in the order in which the utterances began."""
        texts = (caption.committed.strip() for caption in self._captions.values())
        return [text for text in texts if text]

    @property
    def text(self) -> str:
        """All committed text in one line."""
        captions = self._captions.values()
        return join_utterances((caption.committed, caption.continues) for caption in captions)
