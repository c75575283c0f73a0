"""How good a generated text is, by counts of what follows what in real text.

Method: p(c | h) = (n(hc) + k(h) p(c | h')) / (n(h) + k(h)), where h' drops the oldest symbol of the
history h, n counts occurrences, and k(h) counts the different symbols that followed h; below the
shortest history stands 1/V (Witten and Bell 1991, interpolated).
Example: after "abab", p(b) = (2 + 2·½) / (4 + 2) = ½, p(b | a) = (2 + 1·p(b)) / (2 + 1) = 0.833.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass

from recipes.language_models.text import Text, words


class NGram:
    """A character n-gram model with Witten and Bell's smoothing.

    Args:
        learned: the text that is counted.
        symbols: V, how many symbols there can be.
        order: n, symbols that are counted together.

    >>> judge = NGram("abab", symbols=2, order=2)
    >>> round(judge.probability("a", "b"), 3)
    0.833
    """

    def __init__(self, learned: str, *, symbols: int, order: int = 5) -> None:
        self.symbols, self.order = symbols, order
        self._counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for end, symbol in enumerate(learned):
            for length in range(min(order - 1, end) + 1):
                self._counts[learned[end - length : end]][symbol] += 1

    def probability(self, history: str, symbol: str) -> float:
        """p(symbol | history), of which the last n - 1 symbols count."""
        p = 1 / self.symbols
        for length in range(min(self.order - 1, len(history)) + 1):
            counts = self._counts.get(history[len(history) - length :])
            if counts is None:
                break
            kinds = len(counts)
            p = (counts[symbol] + kinds * p) / (counts.total() + kinds)
        return p

    def cross_entropy(self, written: str) -> float:
        """Mean -ln p of the symbols of a text, in nats a symbol."""
        before = self.order - 1
        terms = (
            math.log(self.probability(written[max(0, i - before) : i], symbol))
            for i, symbol in enumerate(written)
        )
        return -math.fsum(terms) / max(1, len(written))


@dataclass(frozen=True, kw_only=True)
class Quality:
    """What can be said of a generated text without reading it.

    Attributes:
        judged: cross-entropy of the text under an n-gram model of held-out real text, in nats a
            symbol: high for noise, but low also for one phrase repeated for ever.
        judging: cross-entropy of held-out real text under an n-gram model of the generated one:
            high for noise and for repetition.
        real_words: the share of its words that occur in the real text.
    """

    judged: float
    judging: float
    real_words: float


def quality(written: str, text: Text, *, order: int = 5) -> Quality:
    """Judge a text (decomposed) against the parts of a real one that no model has learned from.

    The judge has learned from `text.judge`, and what the generated text has to explain is
    `text.dev`.
    """
    size = len(text.symbols)
    judge = NGram(text.judge, symbols=size, order=order)
    known = text.words
    found = words(written)
    return Quality(
        judged=judge.cross_entropy(written),
        judging=NGram(written, symbols=size, order=order).cross_entropy(text.dev),
        real_words=sum(word in known for word in found) / max(1, len(found)),
    )
