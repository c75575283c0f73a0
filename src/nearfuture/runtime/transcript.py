"""The text of a stream so far: what is committed, and what a faster head predicts behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile

import numpy as np
from numpy.typing import NDArray

from nearfuture.decoding import Detokenizer, GreedyDecoder, GreedyState, Token, Word
from nearfuture.runtime.manifest import Manifest
from nearfuture.text import BLANK

_GREEDY = GreedyDecoder()

_HEAD_OFFSET_MS = 200.0
"""How far apart two heads write the same character, at most."""


@dataclass(frozen=True, kw_only=True)
class Transcript:
    """The text of a stream, as a value: `step` returns the next one.

    1. One head commits: what it writes is the text for good.
    2. Another head has less lookahead and is therefore further in time; it previews. It writes the
       same characters within 200 ms of the committing head, mostly later, for it knows less.
    3. The provisional tail is what the previewing head has written behind the last committed
       character, found by its place in the word and its time; where it lacks that character, what
       it has written in frames that the committing head has not reached.

    The committing head has written "th", the "h" at 400 ms; the previewing head, 320 ms further,
    "thre", the "h" at 440 ms. Both "h" are behind a "t" and 40 ms apart: they are one character, so
    the tail is "re". `committed + provisional` is the text to show, "thre".

    Attributes:
        detokenizer: of the model.
        committed: the text of the committing head; it only grows, but for `drop_committed`.
        words: the committed words, with times.
        provisional: the tail, with a space in front where a new word begins.
        silent_frames: frames of the committing head since its last character, spaces apart.
    """

    detokenizer: Detokenizer
    committed: str = ""
    words: tuple[Word, ...] = ()
    provisional: str = ""
    silent_frames: int = 0
    # Only the last word can still change; the work of a step does not grow with the text.
    _closed: tuple[Word, ...] = ()
    _closed_text: str = ""
    _open: tuple[Token, ...] = ()
    _tail: tuple[Token, ...] = ()
    # Whether text was dropped, and whether what follows it is a new word.
    _behind_text: bool = False
    _new_word: bool = False
    _commits: GreedyState = field(default_factory=_GREEDY.start)
    _previews: GreedyState = field(default_factory=_GREEDY.start)

    @classmethod
    def empty(cls, manifest: Manifest) -> Transcript:
        """Return the transcript of a stream of this model that has not begun."""
        return cls(
            detokenizer=Detokenizer(manifest.vocabulary, manifest.frame_ms, manifest.centre_ms)
        )

    def step(
        self, log_probs: NDArray[np.float32], preview: NDArray[np.float32] | None = None
    ) -> Transcript:
        """Return the transcript after more frames.

        Args:
            log_probs: (T, V) of the committing head, any T ≥ 0.
            preview: (T', V) of the other head.

        Raises:
            NearfutureError: where a log-probability is NaN.

        >>> from nearfuture.text import Vocabulary
        >>> vocabulary = Vocabulary(("a", " "))
        >>> empty = Transcript(detokenizer=Detokenizer(vocabulary, frame_ms=40.0, centre_ms=20.0))
        >>> frames = lambda *best: np.log(np.eye(3, dtype=np.float32)[list(best)] * 0.85 + 0.05)
        >>> after = empty.step(frames(1, 2), preview=frames(1, 0, 2, 1))
        >>> after.committed, after.provisional
        ('a', ' a')
        """
        tokens, commits = _GREEDY.step(log_probs, self._commits)
        after = replace(self, _commits=commits, silent_frames=self._silent_after(log_probs))
        if tokens:
            after = after._commit(tokens)
        if preview is not None:
            ahead, previews = _GREEDY.step(preview, self._previews)
            after = replace(after, _previews=previews, _tail=(*self._tail, *ahead))
        known = commits.frames - 2 * self._offset_frames
        after = replace(after, _tail=tuple(token for token in after._tail if token.frame >= known))
        return replace(after, provisional=after._provisional_text(after._preview_tail()))

    @property
    def frames(self) -> int:
        """The number of frames that the committing head has decoded."""
        return self._commits.frames

    @property
    def speech_ms(self) -> float:
        """Milliseconds from the first committed character to the last frame."""
        if not self.words:
            return 0.0
        times = self.detokenizer
        return times.centre_ms + times.frame_ms * (self.frames - 0.5) - self.words[0].start_ms

    @property
    def silence_ms(self) -> float:
        """Milliseconds from the last committed character to the last frame."""
        return self.detokenizer.frame_ms * self.silent_frames

    @property
    def between_words(self) -> bool:
        """Whether the last committed character is a space."""
        return bool(self._open) and self.detokenizer.is_space(self._open[-1].index)

    def drop_committed(self) -> Transcript:
        """Return the transcript without its committed text: what follows is the text behind it.

        It begins with a space where it begins a new word, so that the parts of a text, one behind
        another, are the text.

        >>> from nearfuture.text import Vocabulary
        >>> vocabulary = Vocabulary(("a", " "))
        >>> empty = Transcript(detokenizer=Detokenizer(vocabulary, frame_ms=40.0, centre_ms=20.0))
        >>> frames = lambda *best: np.log(np.eye(3, dtype=np.float32)[list(best)] * 0.85 + 0.05)
        >>> first = empty.step(frames(1, 2, 1))
        >>> second = first.drop_committed().step(frames(0, 1, 2))
        >>> third = second.drop_committed().step(frames(0, 1))
        >>> first.committed, second.committed, third.committed
        ('a a', 'a', ' a')
        """
        after = replace(
            self,
            committed="",
            words=(),
            _closed=(),
            _closed_text="",
            _open=(),
            _behind_text=self._behind_text or bool(self.committed),
            _new_word=self.between_words if self._open else self._new_word,
        )
        return replace(after, provisional=after._provisional_text(after._preview_tail()))

    def _silent_after(self, log_probs: NDArray[np.float32]) -> int:
        silent = 0
        for best in log_probs.argmax(axis=1)[::-1]:
            if best != BLANK and not self.detokenizer.is_space(int(best)):
                return silent
            silent += 1
        return self.silent_frames + silent

    def _commit(self, tokens: list[Token]) -> Transcript:
        pending = (*self._open, *tokens)
        new_word = self._starts_word(tokens)
        begins = [i for i, token in enumerate(pending) if self.detokenizer.begins_word(token)]
        closed, closed_text = self._closed, self._closed_text
        if begins:
            # A last space stays with the open part: text still to come is a new word.
            settled, pending = pending[: begins[-1]], pending[begins[-1] :]
            closed += self.detokenizer.words(settled)
            closed_text = " ".join(filter(None, [closed_text, self.detokenizer.text(settled)]))
        opened = self.detokenizer.text(pending)
        committed = " ".join(filter(None, [closed_text, opened]))
        return replace(
            self,
            committed=f" {committed}"
            if committed and self._behind_text and new_word
            else committed,
            words=closed + self.detokenizer.words(pending),
            _closed=closed,
            _closed_text=closed_text,
            _open=pending,
            _new_word=new_word,
        )

    def _starts_word(self, tokens: Sequence[Token]) -> bool:
        """Whether the text since the last drop begins a word; `tokens` are the next."""
        first = not self._open and not self._closed and bool(tokens)
        return self._new_word or (first and self.detokenizer.begins_word(tokens[0]))

    @property
    def _offset_frames(self) -> int:
        return round(_HEAD_OFFSET_MS / self.detokenizer.frame_ms)

    def _preview_tail(self) -> tuple[Token, ...]:
        """Return the tokens of the previewing head behind the committed text."""
        word, tail, reached = self._open, self._tail, self.frames
        if self._previews.frames <= reached:
            return ()
        near = [
            (common, -apart, i + 1)
            for i, token in enumerate(tail)
            if word
            and (apart := abs(token.frame - word[-1].frame)) <= self._offset_frames
            and (common := _common_end(word, tail[: i + 1]))
        ]
        if near:
            # The committing head may still write what the other has written a little earlier.
            _, _, end = max(near)
            return tuple(
                token for token in tail[end:] if token.frame >= reached - self._offset_frames
            )
        return tuple(token for token in tail if token.frame >= reached)

    def _provisional_text(self, tail: tuple[Token, ...]) -> str:
        shown = self.detokenizer.text((*self._open, *tail))
        opened = self.detokenizer.text(self._open)
        added = shown[len(opened) :]
        behind = self._closed_text or (self._behind_text and self._starts_word(tail))
        starts_word = behind and not opened and added
        return f" {added}" if starts_word else added


def _common_end(left: Sequence[Token], right: Sequence[Token]) -> int:
    """Count the symbols that both end with."""
    pairs = zip(reversed(left), reversed(right), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0].index == pair[1].index, pairs))
