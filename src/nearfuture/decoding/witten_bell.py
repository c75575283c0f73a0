"""A language model from texts: n-gram counts, Witten-Bell smoothing, an ARPA file."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from nearfuture.decoding.language_model import BEGIN, END, UNKNOWN, NGramModel
from nearfuture.error import NearfutureError

_NEVER = -99.0  # log10 of what is never predicted, in ARPA files

Gram = tuple[str, ...]


@dataclass
class NGramCounts:
    """Counts of word n-grams, and the interpolated Witten-Bell model of them.

        p(w | h) = (c(h w) + n(h) p(w | h without its first)) / (c(h) + n(h))

    `n(h)` is the number of different words seen behind h. Below the unigrams stands the uniform
    distribution over all words, `<unk>` and `</s>`. No parameter, and no count of counts that a
    small text could lack.

    Args:
        order: the longest n-gram, in words, from 1 to 9.

    Source: Witten and Bell, "The zero-frequency problem", 1991, method C; Chen and Goodman, 1998,
    section 2.6.

    >>> counts = NGramCounts(order=2)
    >>> counts.add(["turn", "left"]), counts.add(["turn", "right"])
    (None, None)
    >>> model = counts.model()
    >>> round(math.exp(model.score(model.start(), "turn")[0]), 3)
    0.76
    """

    order: int = 3
    sentences: int = 0
    _counts: dict[Gram, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def __post_init__(self) -> None:
        if not 1 <= self.order <= 9:
            raise NearfutureError(
                f"`order` must be from 1 to 9, not {self.order}",
                code="out_of_range",
                parameter="order",
            )

    def add(self, words: Iterable[str]) -> None:
        """Count the n-grams of a sentence.

        Raises:
            NearfutureError: for a word that is `<s>`, `</s>` or `<unk>`.
        """
        sentence = [BEGIN, *words, END]
        reserved = {BEGIN, END, UNKNOWN} & set(sentence[1:-1])
        if reserved:
            raise NearfutureError(
                f"{min(reserved)} is a word of the text: language models reserve it",
                parameter="words",
            )
        self.sentences += 1
        for last in range(1, len(sentence)):
            for length in range(min(self.order, last + 1)):
                self._counts[tuple(sentence[last - length : last])][sentence[last]] += 1

    def model(self) -> NGramModel:
        """Return the model of what was counted."""
        return NGramModel.read_arpa(self.arpa())

    def arpa(self) -> Iterator[str]:
        """Yield the lines of the model's ARPA file, the same for the same counts.

        Raises:
            NearfutureError: if nothing was counted.
        """
        if not self.sentences:
            raise NearfutureError("there are no sentences to count", parameter="words")
        probabilities: dict[Gram, float] = {}
        for history in sorted(self._counts, key=lambda gram: (len(gram), gram)):
            followers = self._counts[history]
            total, types = followers.total(), len(followers)
            if not history:
                uniform = types / (types + 1)  # n(·) / |words with <unk>|
                probabilities[UNKNOWN,] = uniform / (total + types)
                for word, count in followers.items():
                    probabilities[word,] = (count + uniform) / (total + types)
                continue
            for word, count in followers.items():
                lower = probabilities[(*history[1:], word)]
                probabilities[(*history, word)] = (count + types * lower) / (total + types)
        orders: list[list[Gram]] = [[] for _ in range(self.order)]
        for gram in sorted(probabilities):
            orders[len(gram) - 1].append(gram)
        orders[0].append((BEGIN,))
        orders = [grams for grams in orders if grams]
        yield "\\data\\"
        yield from (f"ngram {n}={len(grams)}" for n, grams in enumerate(orders, start=1))
        for n, grams in enumerate(orders, start=1):
            yield ""
            yield f"\\{n}-grams:"
            for gram in grams:
                log_prob = math.log10(probabilities[gram]) if gram != (BEGIN,) else _NEVER
                followers = self._counts.get(gram, Counter())
                backoff = ""
                if followers and n < self.order:
                    types = len(followers)
                    backoff = f"\t{math.log10(types / (followers.total() + types)):.9g}"
                yield f"{log_prob:.9g}\t{' '.join(gram)}{backoff}"
        yield ""
        yield "\\end\\"
