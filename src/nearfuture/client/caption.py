"""What a server shows of one utterance, whatever the protocol in which it says so."""

from __future__ import annotations

from dataclasses import dataclass, field

from nearfuture.text import join_utterances


@dataclass(frozen=True, kw_only=True)
class Caption:
    """The text of one utterance so far; a later caption of the same utterance replaces it.

    Attributes:
        utterance: which one: a number, or the name that the protocol gives it.
        committed: text that the protocol promises to keep.
        provisional: text behind it that may still change.
        final: whether this utterance has ended.
        continues: whether it begins in the middle of the last word of the utterance before.
        heard_ms: how much audio this text has heard, where the protocol tells.
    """

    utterance: str
    committed: str
    provisional: str = ""
    final: bool = False
    continues: bool = False
    heard_ms: float | None = None

    @property
    def shown(self) -> str:
        """All of it, as a reader sees it."""
        return self.committed + self.provisional


@dataclass
class Transcript:
    """What all utterances of a stream say, as the server writes it.

    >>> said = Transcript()
    >>> said.see(Caption(utterance="0", committed="one tw", final=True))
    >>> said.see(Caption(utterance="1", committed="o", continues=True, final=True))
    >>> said.see(Caption(utterance="2", committed="three", provisional=" fo"))
    >>> said.text, said.utterances
    ('one two three', ['one tw', 'o', 'three'])
    """

    _captions: dict[str, Caption] = field(default_factory=dict)

    def see(self, caption: Caption) -> None:
        """Take note of a caption."""
        self._captions[caption.utterance] = caption

    @property
    def utterances(self) -> list[str]:
        """The committed texts, in the order in which they began."""
        texts = (caption.committed.strip() for caption in self._captions.values())
        return [text for text in texts if text]

    @property
    def text(self) -> str:
        """All that is committed, in one line."""
        captions = self._captions.values()
        return join_utterances((caption.committed, caption.continues) for caption in captions)
