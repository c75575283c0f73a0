"""Shallow fusion: what a language model of words adds to the hypotheses of a beam search."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from nearfuture.decoding.language_model import NGramModel
from nearfuture.text import Vocabulary


@dataclass(frozen=True)
class WordHistory:
    """The words of a hypothesis, as far as the next word depends on them.

    Args:
        context: ids of the last words in the language model.
        word: what is spelled of the word that has not ended.
        bonus: what the model has added so far: `α log p_lm + β words`.
    """

    context: tuple[int, ...] = ()
    word: str = ""
    bonus: float = 0.0


@dataclass(frozen=True)
class LanguageModelFusion:
    """A word language model and its weights: `α log p_lm(words) + β words`, in natural logarithms.

    A word is scored when a space ends it, and the last one at the end of the stream.

    Args:
        model: of the words.
        vocabulary: of the recogniser; it must have a space, or a text is one word.
        alpha: weight of the model.
        beta: for every word; above 0 it favours more words.
    """

    model: NGramModel
    vocabulary: Vocabulary
    alpha: float = 0.5
    beta: float = 0.0

    @cached_property
    def space(self) -> int:
        """The id of the space; -1 where there is none."""
        symbols = self.vocabulary.symbols
        return 1 + symbols.index(" ") if " " in symbols else -1

    def start(self, bonus: float = 0.0) -> WordHistory:
        """Return the history at the beginning of a sentence, behind others that added a bonus."""
        return WordHistory(context=self.model.start(), bonus=bonus)

    def spell(self, history: WordHistory, index: int) -> WordHistory:
        """Return the history with one more character of a word."""
        return replace(history, word=history.word + self.vocabulary.decode([index]))

    def close(self, history: WordHistory) -> WordHistory:
        """Return the history behind the word that ends, scored; unchanged where there is none."""
        if not history.word:
            return history
        log_prob, context = self.model.score(history.context, history.word)
        return WordHistory(context, "", history.bonus + self.alpha * log_prob + self.beta)

    def end(self, history: WordHistory) -> WordHistory:
        """Return the history behind the last word and the end of the sentence."""
        closed = self.close(history)
        return replace(closed, bonus=closed.bonus + self.alpha * self.model.end(closed.context))
