"""Back-off language models of words: ARPA files, in compact arrays.

Method. The n-grams of each order are sorted by (id of the first n-1 words among the n-grams of the
order below, id of the last word), one number each; a look-up is one binary search an order.
Example, "the cat sat": "the" is unigram 5; (5, cat) is bigram 9; (9, sat) is the trigram.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nearfuture.error import NearfutureError

BEGIN, END, UNKNOWN = "<s>", "</s>", "<unk>"
_NATURAL = math.log(10.0)
_MOST_ORDERS = 16
_ROUNDED = 1e-4  # above 0, of a probability of 1
_NEVER = -99.0  # as files say that it is never predicted; some write -inf


@dataclass(frozen=True, eq=False)
class NGramModel:
    r"""An n-gram model with back-off (Katz 1987), as ARPA files hold it.

        p(w | h) = p*(h w)              where the file has the n-gram h w
                 = b(h) p(w | h[1:])    where it has not

    A word that the model lacks has the probability of `<unk>`; where the file has no `<unk>`, of
    1e-10.

    Args:
        words: id of every word.
        keys: for each order, sorted: id of the context · number of words + id of the last word.
        log_probs: for each order, log10 p*, as in the file.
        backoffs: for each order, log10 b.

    >>> lines = ["\\1-grams:", "-1.0 <unk>", "-99 <s> -0.5", "-0.3 hello", "-0.7 </s>"]
    >>> lines += ["\\2-grams:", "-0.1 <s> hello", "\\end\\"]
    >>> model = NGramModel.read_arpa(lines)
    >>> log_prob, context = model.score(model.start(), "hello")
    >>> round(log_prob / math.log(10), 3), round(model.end(context) / math.log(10), 3)
    (-0.1, -0.7)
    """

    words: dict[str, int]
    keys: tuple[NDArray[np.int64], ...]
    log_probs: tuple[NDArray[np.float32], ...]
    backoffs: tuple[NDArray[np.float32], ...]

    @property
    def order(self) -> int:
        """The longest n-gram, in words."""
        return len(self.keys)

    def start(self) -> tuple[int, ...]:
        """Return the context at the beginning of a sentence."""
        begin = self.words.get(BEGIN)
        return () if begin is None or self.order == 1 else (begin,)

    def score(self, context: tuple[int, ...], word: str) -> tuple[float, tuple[int, ...]]:
        """Return the natural logarithm of `p(word | context)`, and the context behind the word."""
        known = self.words.get(word, self.words.get(UNKNOWN))
        if known is None:
            return -10.0 * _NATURAL, ()
        after = (*context, known)[-(self.order - 1) :] if self.order > 1 else ()
        return _NATURAL * self._log10(context, known), after

    def end(self, context: tuple[int, ...]) -> float:
        """Return the natural logarithm of the probability that the sentence ends here."""
        end = self.words.get(END)
        return 0.0 if end is None else _NATURAL * self._log10(context, end)

    def sentence(self, words: Iterable[str]) -> float:
        """Return the natural logarithm of the probability of a whole sentence."""
        total, context = 0.0, self.start()
        for word in words:
            log_prob, context = self.score(context, word)
            total += log_prob
        return total + self.end(context)

    def _log10(self, context: tuple[int, ...], word: int) -> float:
        backoff = 0.0
        for begin in range(len(context) + 1):
            history = context[begin:]
            place = self._find(history)
            if place is None and history:
                continue  # nothing was seen behind it: its back-off is 1
            found = self._find((*history, word))
            if found is not None:
                return backoff + float(self.log_probs[len(history)][found])
            if history:
                backoff += float(self.backoffs[len(history) - 1][place])
        return -10.0  # no unigram: files without <unk>

    def _find(self, words: tuple[int, ...]) -> int | None:
        place = 0
        for order, word in enumerate(words):
            key = place * len(self.words) + word
            keys = self.keys[order]
            place = int(np.searchsorted(keys, key))
            if place == len(keys) or keys[place] != key:
                return None
        return place if words else None

    @classmethod
    def read(cls, path: str | Path) -> NGramModel:
        """Read an ARPA file.

        Raises:
            NearfutureError: if it cannot be opened, or is no ARPA file; it names the line.
        """
        try:
            with open(path, encoding="utf-8") as lines:
                return cls.read_arpa(lines, name=str(path))
        except (OSError, UnicodeDecodeError) as error:
            raise NearfutureError(
                f"{path} cannot be read as an ARPA language model: {error}", code="not_found"
            ) from error

    @classmethod
    def read_arpa(cls, lines: Iterable[str], *, name: str = "the model") -> NGramModel:
        """Read the lines of an ARPA file; the arguments and errors are those of `read`."""
        grams = list(_sections(lines, name))
        if not grams or not grams[0]:
            raise NearfutureError(
                f"{name} has no 1-grams: it is no ARPA language model", code="damaged"
            )
        words = {gram[0]: number for number, (gram, _, _) in enumerate(sorted(grams[0]))}
        if len(words) < len(grams[0]):
            raise NearfutureError(f"{name} has a word twice among its 1-grams", code="damaged")
        keys, log_probs, backoffs = [], [], []
        places: dict[tuple[str, ...], int] = {(): 0}
        for number, section in enumerate(grams, start=1):
            rows = []
            for gram, log_prob, backoff in section:
                place = places.get(gram[:-1])
                if place is None or gram[-1] not in words:
                    raise NearfutureError(
                        f"{name} has the {number}-gram {' '.join(gram)!r}, but not all of its "
                        f"words, or not what stands before the last one: the file is not whole",
                        code="damaged",
                    )
                rows.append((place * len(words) + words[gram[-1]], gram, log_prob, backoff))
            rows.sort()
            keys.append(np.array([row[0] for row in rows], np.int64))
            log_probs.append(np.array([row[2] for row in rows], np.float32))
            backoffs.append(np.array([row[3] for row in rows], np.float32))
            places = {row[1]: place for place, row in enumerate(rows)}
        return cls(words, tuple(keys), tuple(log_probs), tuple(backoffs))


_Row = tuple[tuple[str, ...], float, float]


def _sections(lines: Iterable[str], name: str) -> Iterator[list[_Row]]:
    """Yield the n-grams of each order: words, log10 p, log10 b."""
    order, rows = 0, list[_Row]()
    announced: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if text == "\\end\\" or (text.startswith("\\") and text.endswith("-grams:")):
            if order:
                count = announced.pop(str(order), str(len(rows)))
                if count != str(len(rows)):
                    raise _not_whole(name, order, count, len(rows))
                yield rows
            if text == "\\end\\":
                for length, count in announced.items():
                    if count != "0":
                        raise _not_whole(name, length, count, 0)
                return
            order, rows = order + 1, []
            if order > _MOST_ORDERS:
                raise NearfutureError(
                    f"{name} has n-grams of more than {_MOST_ORDERS} words", code="too_large"
                )
            if text != f"\\{order}-grams:":
                raise NearfutureError(
                    f"line {number} of {name} is {text!r}, where \\{order}-grams: was expected",
                    code="damaged",
                )
        elif order and text:
            log_prob, *rest = text.split()
            try:
                extra = float(rest[order]) if len(rest) > order else 0.0
                value = max(float(log_prob), _NEVER)
                certain = value <= _ROUNDED
                if len(rest) not in (order, order + 1) or not certain or math.isnan(extra):
                    raise ValueError
                if abs(extra) > -_NEVER:  # a history that cannot be
                    extra = math.copysign(_NEVER, extra)
                rows.append((tuple(rest[:order]), min(value, 0.0), extra))
            except ValueError:
                raise NearfutureError(
                    f"line {number} of {name} is {text[:200]!r}: the logarithm of a probability, "
                    f"{order} words and maybe a back-off weight were expected",
                    code="damaged",
                ) from None
        elif not order and text.startswith("ngram "):
            length, _, count = text.removeprefix("ngram ").partition("=")
            announced[length.strip()] = count.strip()
    raise NearfutureError(
        f"{name} does not end with \\end\\: it is no ARPA language model, or was cut off",
        code="damaged",
    )


def _not_whole(name: str, order: int | str, count: str, found: int) -> NearfutureError:
    return NearfutureError(
        f"{name} announces {count[:20]} {order}-grams and has {found}: the file is not whole",
        code="damaged",
    )
