"""CTC prefix beam search, frame by frame, whose state is a value.

Method. A hypothesis is a text, not a path: the probabilities of all its paths are added up, those
that end in a blank apart from those that end in its last symbol, for only the first let the symbol
come again. Every frame extends each hypothesis by nothing and by each likely symbol; equal texts
are merged, and the best few remain. What all of them begin with cannot change: it is committed.

Example, symbols a, b and the blank, frames [.8 0 .2], [.4 0 .6], [.8 0 .2]. The best path is a,
blank, a, of .384: "aa". But "a" has the paths a a a, a a -, a - -, - a a, … of .592 together.

Shapes: `T` frames of the chunk, `V` vocabulary with the blank.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearfuture.decoding.distribution import check_next_frames
from nearfuture.decoding.fusion import LanguageModelFusion, WordHistory
from nearfuture.decoding.greedy import Token
from nearfuture.error import NearfutureError
from nearfuture.text import BLANK

_NONE = -math.inf
_NO_WORDS = WordHistory()


@dataclass(frozen=True)
class BeamHypothesis:
    """One of the best texts of a stream, from what is committed on.

    Args:
        tokens: behind the committed ones; each at the frame of its best beginning, and with its
            probability there.
        log_prob: natural logarithm of the probability of all the paths that spell it, from the
            beginning of the stream.
        score: what hypotheses are sorted by: `log_prob`, and what the language model adds.
    """

    tokens: tuple[Token, ...]
    log_prob: float
    score: float


class _Prefix(NamedTuple):
    """A text, from what is committed on, and the probabilities of its paths."""

    blank: float = 0.0  # log-probability of the paths that end in a blank
    symbol: float = _NONE  # of those that end in the last symbol
    symbols: tuple[int, ...] = ()
    tokens: tuple[Token, ...] = ()
    last: int = BLANK  # the last symbol, committed or not
    active: int = -1  # the last frame in which its paths ended in a symbol, mostly
    history: WordHistory = _NO_WORDS


@dataclass(frozen=True)
class BeamState:
    """The state of a prefix beam search in a stream; no step changes it.

    Args:
        frames: frames seen so far.
        prefixes: the hypotheses, best first.
    """

    frames: int = 0
    prefixes: tuple[_Prefix, ...] = (_Prefix(),)


@dataclass(frozen=True, kw_only=True)
class BeamSearch:
    """CTC prefix beam search: the texts whose paths together are the most probable.

        p(y) = Σ_{π spells y} Π_t p(t, π_t)          score = log p(y) + α log p_lm(y) + β words

    Any partition into chunks gives the same tokens, times and hypotheses, bit for bit. A token is
    committed with the frame from which on every hypothesis begins with it.

    Frames in which the blank has `prune_probability` are skipped, but for its own probability.
    Of equal scores a text that stays as it was comes first, then what extends the hypothesis that
    was better before, then the lower symbol.

    Args:
        width: hypotheses that are kept, at least 1.
        prune_probability: only the most probable symbols of a frame are tried, the fewest that
            reach this probability together, in (0, 1]; with 1 all of them.
        prune_symbols: at most so many.
        fusion: the language model, and its weights; None: without one. With α = β = 0 the results
            are those without one, bit for bit.

    Raises:
        NearfutureError: for a width or a number of symbols below 1, and a probability not in
            (0, 1].

    Source: Hannun et al., "First-pass large vocabulary continuous speech recognition using
    bi-directional recurrent DNNs", 2014, algorithm 1; Amodei et al., "Deep Speech 2", 2015,
    section 3.8 and, for the pruning, 7.3.

    >>> with np.errstate(divide="ignore"):
    ...     log_probs = np.log([[0.2, 0.8, 0.0], [0.6, 0.4, 0.0], [0.2, 0.8, 0.0]])
    >>> beam = BeamSearch(prune_probability=1.0)
    >>> tokens, state = beam.step(log_probs, beam.start())
    >>> for hypothesis in beam.hypotheses(state)[:2]:
    ...     print([t.index for t in hypothesis.tokens], round(np.exp(hypothesis.log_prob), 3))
    [1] 0.592
    [1, 1] 0.384
    """

    width: int = 8
    prune_probability: float = 0.99
    prune_symbols: int = 40
    fusion: LanguageModelFusion | None = None

    def __post_init__(self) -> None:
        for name, value in (("width", self.width), ("prune_symbols", self.prune_symbols)):
            if value < 1:
                raise NearfutureError(
                    f"`{name}` must be at least 1, not {value}", code="out_of_range", parameter=name
                )
        if not 0 < self.prune_probability <= 1:
            raise NearfutureError(
                f"`prune_probability` must be above 0 and at most 1, not {self.prune_probability}",
                code="out_of_range",
                parameter="prune_probability",
            )

    def start(self) -> BeamState:
        """Return the state of a stream that has not begun."""
        history = self.fusion.start() if self.fusion else _NO_WORDS
        return BeamState(0, (_Prefix(history=history),))

    def step(
        self, log_probs: NDArray[np.floating], state: BeamState
    ) -> tuple[list[Token], BeamState]:
        """Return the tokens that the next `T` frames commit, and the state after them.

        Args:
            log_probs: (T, V) natural logarithms, `T` ≥ 0; only those of one stream, unpadded.
            state: from `start`, or from the step before.

        Raises:
            NearfutureError: if `log_probs` is not (T, V) with more than the blank in `V`, has a
                NaN or a value above 0, or a frame whose probabilities do not add up to 1; of frames
                that come one by one only the first is added up.
        """
        values = np.asarray(log_probs)
        if values.ndim != 2 or values.shape[1] < 2:
            raise NearfutureError(
                f"log_probs has shape {values.shape}: prefix beam search takes (frames, "
                f"vocabulary) of one stream",
                parameter="log_probs",
            )
        check_next_frames(values, first_frame=state.frames)
        committed: list[Token] = []
        for row in values.astype(np.float64, copy=False).tolist():
            state = self._frame(row, state)
            tokens, state = _commit(state)
            committed += tokens
        return committed, state

    def hypotheses(self, state: BeamState, *, ended: bool = False) -> tuple[BeamHypothesis, ...]:
        """Return the n-best list, best first: what may follow the committed tokens.

        Args:
            state: of the stream.
            ended: whether the stream ends here; the language model then scores the last word, and
                the end of the sentence.
        """
        found = []
        for prefix in state.prefixes:
            log_prob = _add(prefix.blank, prefix.symbol)
            found.append(BeamHypothesis(prefix.tokens, log_prob, self._score(prefix, ended=ended)))
        return tuple(sorted(found, key=lambda hypothesis: -hypothesis.score))  # stable

    def commit(self, state: BeamState) -> tuple[list[Token], BeamState]:
        """Commit the best hypothesis, as at an endpoint, and drop the others.

        A language model scores the last word and the end of the sentence; behind it another begins.
        """
        best = max(state.prefixes, key=lambda prefix: self._score(prefix, ended=True))
        history = self.fusion.start(self._bonus(best, ended=True)) if self.fusion else _NO_WORDS
        kept = best._replace(symbols=(), tokens=(), history=history)
        return list(best.tokens), BeamState(state.frames, (kept,))

    def _score(self, prefix: _Prefix, *, ended: bool) -> float:
        return _add(prefix.blank, prefix.symbol) + self._bonus(prefix, ended=ended)

    def _bonus(self, prefix: _Prefix, *, ended: bool) -> float:
        if self.fusion is None:
            return 0.0
        history = self.fusion.end(prefix.history) if ended else prefix.history
        return history.bonus

    def _frame(self, row: list[float], state: BeamState) -> BeamState:
        """Return the state after one more frame.

        Most frames have two or three likely symbols, so that plain numbers are faster than arrays.
        """
        likely = self._likely(row)
        if likely == [BLANK]:
            silent = row[BLANK]
            return BeamState(
                state.frames + 1,
                tuple(
                    prefix._replace(blank=_add(prefix.blank, prefix.symbol) + silent, symbol=_NONE)
                    for prefix in state.prefixes
                ),
            )
        kept = [
            self._begun(state, i, symbol, probability, row) if symbol else prefix
            for _, prefix, i, symbol, probability in self._candidates(row, likely, state)
        ]
        return BeamState(state.frames + 1, tuple(kept))

    def _candidates(
        self, row: list[float], likely: list[int], state: BeamState
    ) -> list[tuple[float, _Prefix, int, int, float]]:
        """Return the best texts: score, prefix, its place before, and what is written behind it.

        A text that stays as it was has the blank for what is written. Extensions that spell another
        hypothesis are added to it; its last token begins anew where that is more probable than all
        its beginnings before.
        """
        before = state.prefixes
        totals = [_add(prefix.blank, prefix.symbol) for prefix in before]
        places = {prefix.symbols: i for i, prefix in enumerate(before)}
        tried = [symbol for symbol in likely if symbol != BLANK]
        extended = {
            (i, symbol): row[symbol] + (prefix.blank if symbol == prefix.last else total)
            for i, (prefix, total) in enumerate(zip(before, totals, strict=True))
            for symbol in tried
        }
        silent = row[BLANK] if BLANK in likely else _NONE
        found = []
        for j, (prefix, total) in enumerate(zip(before, totals, strict=True)):
            last, tokens = prefix.last, prefix.tokens
            symbol = prefix.symbol + row[last] if last in tried else _NONE
            i = places.get(prefix.symbols[:-1]) if prefix.symbols else None
            entering = _NONE if i is None else extended.pop((i, last), _NONE)
            if i is not None and entering > _NONE:
                symbol = _add(symbol, entering)
                if entering > total:
                    tokens = (*before[i].tokens, self._token(state, before[i], last, row))
            blank = total + silent
            after = prefix._replace(
                blank=blank,
                symbol=symbol,
                tokens=tokens,
                active=state.frames if symbol >= blank else prefix.active,
            )
            found.append((_add(blank, symbol) + prefix.history.bonus, after, j, BLANK, _NONE))
        for (i, symbol), probability in extended.items():
            history = before[i].history
            if self.fusion is not None and symbol == self.fusion.space:
                history = self.fusion.close(history)
            found.append((probability + history.bonus, before[i], i, symbol, probability))
        found.sort(key=lambda candidate: -candidate[0])  # stable: equal ones stay in their order
        return [candidate for candidate in found[: self.width] if candidate[0] > _NONE]

    def _begun(
        self, state: BeamState, i: int, symbol: int, probability: float, row: list[float]
    ) -> _Prefix:
        """Return a hypothesis with one more symbol."""
        prefix, history = state.prefixes[i], state.prefixes[i].history
        if self.fusion is not None:
            space = symbol == self.fusion.space
            history = self.fusion.close(history) if space else self.fusion.spell(history, symbol)
        return _Prefix(
            blank=_NONE,
            symbol=probability,
            symbols=(*prefix.symbols, symbol),
            tokens=(*prefix.tokens, self._token(state, prefix, symbol, row)),
            last=symbol,
            active=state.frames,
            history=history,
        )

    def _token(self, state: BeamState, prefix: _Prefix, symbol: int, row: list[float]) -> Token:
        return Token(symbol, state.frames, row[symbol], state.frames - 1 - prefix.active)

    def _likely(self, row: list[float]) -> list[int]:
        """Return the symbols of a frame that are tried, in the order of their ids."""
        if self.prune_probability < 1 and row[BLANK] >= math.log(self.prune_probability):
            return [BLANK]
        order = sorted(range(len(row)), key=row.__getitem__, reverse=True)[: self.prune_symbols]
        if self.prune_probability < 1:
            reached = 0.0
            for count, symbol in enumerate(order, start=1):
                reached += math.exp(row[symbol])
                if reached >= self.prune_probability:
                    return sorted(order[:count])
        return sorted(order)


def _add(a: float, b: float) -> float:
    """Return log(exp a + exp b)."""
    if a < b:
        a, b = b, a
    return a if b == _NONE else a + math.log1p(math.exp(b - a))


def _commit(state: BeamState) -> tuple[list[Token], BeamState]:
    """Take what all hypotheses begin with out of them; of its times the earliest is committed."""
    shared = 0
    first, *others = (prefix.symbols for prefix in state.prefixes)
    limit = min(map(len, others), default=len(first))
    while shared < min(limit, len(first)) and all(
        symbols[shared] == first[shared] for symbols in others
    ):
        shared += 1
    if not shared:
        return [], state
    tokens = [
        min((prefix.tokens[place] for prefix in state.prefixes), key=lambda token: token.frame)
        for place in range(shared)
    ]
    prefixes = tuple(
        prefix._replace(symbols=prefix.symbols[shared:], tokens=prefix.tokens[shared:])
        for prefix in state.prefixes
    )
    return tokens, BeamState(state.frames, prefixes)
