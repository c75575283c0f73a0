"""CTC prefix beam search, frame by frame, whose state is a value.

Method. A hypothesis is a text, not a path: the probabilities of all its paths are added up, those
that end in a blank apart from those that end in its last symbol, for only the first let the symbol
come again. Every frame extends each hypothesis by nothing and by each likely symbol; equal texts
are merged, and the best few remain. What all of them begin with cannot change: it is committed.

Example, symbols a, b and the blank, frames [.8 0 .2], [.4 0 .6], [.8 0 .2]. The best path is a,
blank, a, of .384: "aa". But "a" has the paths a a a, a a -, a - -, - a a, … of .592 together.

Shapes: `T` frames of the chunk, `V` vocabulary with the blank, `W` hypotheses, `K` likely symbols.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from nearfuture.decoding.distribution import check_distributions
from nearfuture.decoding.fusion import LanguageModelFusion, WordHistory
from nearfuture.decoding.greedy import Token
from nearfuture.error import NearfutureError
from nearfuture.text import BLANK

_NONE = -np.inf
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


@dataclass(frozen=True)
class _Prefix:
    """A text, from what is committed on."""

    symbols: tuple[int, ...] = ()
    tokens: tuple[Token, ...] = ()
    last: int = BLANK  # the last symbol, committed or not
    active: int = -1  # the last frame in which its paths ended in a symbol, mostly
    history: WordHistory = _NO_WORDS


@dataclass(frozen=True, eq=False)
class BeamState:
    """The state of a prefix beam search in a stream; no step changes it.

    Args:
        frames: frames seen so far.
        blank: (W,) log-probabilities of the paths that end in a blank, best hypothesis first.
        symbol: (W,) of those that end in the last symbol.
    """

    frames: int
    blank: NDArray[np.float64]
    symbol: NDArray[np.float64]
    prefixes: tuple[_Prefix, ...]


@dataclass(frozen=True, kw_only=True)
class BeamSearch:
    """CTC prefix beam search: the texts whose paths together are the most probable.

        p(y) = Σ_{π spells y} Π_t p(t, π_t)          score = log p(y) + α log p_lm(y) + β words

    Any partition into chunks gives the same tokens, times and hypotheses, bit for bit. A token is
    committed with the frame from which on every hypothesis begins with it.

    Frames in which the blank has `prune_probability` are skipped, but for its own probability.
    Of equal scores the hypothesis that was better before comes first, then the lower symbol.

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
        return BeamState(0, np.zeros(1), np.full(1, _NONE), (_Prefix(history=history),))

    def step(
        self, log_probs: NDArray[np.floating], state: BeamState
    ) -> tuple[list[Token], BeamState]:
        """Return the tokens that the next `T` frames commit, and the state after them.

        Args:
            log_probs: (T, V) natural logarithms, `T` ≥ 0; only those of one stream, unpadded.
            state: from `start`, or from the step before.

        Raises:
            NearfutureError: if `log_probs` is not (T, V) with more than the blank in `V`, has a
                NaN or a value above 0, or a frame whose probabilities do not add up to 1.
        """
        values = np.asarray(log_probs)
        if values.ndim != 2 or values.shape[1] < 2:
            raise NearfutureError(
                f"log_probs has shape {values.shape}: prefix beam search takes (frames, "
                f"vocabulary) of one stream",
                parameter="log_probs",
            )
        check_distributions(values, first_frame=state.frames)
        committed: list[Token] = []
        for row in values.astype(np.float64, copy=False):
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
        acoustic = np.logaddexp(state.blank, state.symbol)
        bonus = [self._bonus(prefix, ended=ended) for prefix in state.prefixes]
        found = [
            BeamHypothesis(prefix.tokens, float(log_prob), float(log_prob) + more)
            for prefix, log_prob, more in zip(state.prefixes, acoustic, bonus, strict=True)
        ]
        return tuple(sorted(found, key=lambda hypothesis: -hypothesis.score))  # stable

    def commit(self, state: BeamState) -> tuple[list[Token], BeamState]:
        """Commit the best hypothesis, as at an endpoint, and drop the others."""
        best = state.prefixes[0]
        kept = replace(best, symbols=(), tokens=())
        after = replace(state, blank=state.blank[:1], symbol=state.symbol[:1], prefixes=(kept,))
        return list(best.tokens), after

    def _bonus(self, prefix: _Prefix, *, ended: bool) -> float:
        if self.fusion is None:
            return 0.0
        history = self.fusion.end(prefix.history) if ended else prefix.history
        return history.bonus

    def _frame(self, row: NDArray[np.float64], state: BeamState) -> BeamState:
        likely = self._likely(row)
        total = np.logaddexp(state.blank, state.symbol)
        frames = state.frames + 1
        if len(likely) == 1 and likely[0] == BLANK:
            after = np.full(len(total), _NONE)
            return BeamState(frames, total + row[BLANK], after, state.prefixes)

        allowed = np.full(len(row), _NONE)
        allowed[likely] = row[likely]
        last = np.array([prefix.last for prefix in state.prefixes])
        blank = total + allowed[BLANK]
        symbol = state.symbol + allowed[last]
        tried = likely[likely != BLANK]
        extended = np.where(tried == last[:, None], state.blank[:, None], total[:, None])
        extended += row[tried]
        prefixes = self._merge(state, symbol, extended, tried, total, row)

        bonus = np.array([prefix.history.bonus for prefix in prefixes])
        stays = np.logaddexp(blank, symbol) + bonus
        scores = extended + bonus[:, None]
        words = self._words(prefixes, tried, scores)
        ranked = np.concatenate([stays, scores.ravel()])
        order = np.argsort(-ranked, kind="stable")[: self.width]
        order = order[ranked[order] > _NONE]

        W, K = len(prefixes), len(tried)
        from_, column = (
            np.where(order < W, order, (order - W) // max(K, 1)),
            (order - W) % max(K, 1),
        )
        kept = []
        for place, i, k in zip(order.tolist(), from_.tolist(), column.tolist(), strict=True):
            prefix = prefixes[i]
            if place < W:
                if symbol[i] >= blank[i]:
                    prefix = replace(prefix, active=state.frames)
                kept.append(prefix)
                continue
            index, prefix = int(tried[k]), state.prefixes[i]
            token = Token(index, state.frames, float(row[index]), state.frames - 1 - prefix.active)
            kept.append(
                _Prefix(
                    symbols=(*prefix.symbols, index),
                    tokens=(*prefix.tokens, token),
                    last=index,
                    active=state.frames,
                    history=words.get((i, k)) or self._spell(prefix.history, index),
                )
            )
        is_new = order >= W
        flat = np.append(extended.ravel(), _NONE)
        return BeamState(
            frames,
            np.where(is_new, _NONE, blank[from_]),
            np.where(is_new, flat[np.where(is_new, order - W, -1)], symbol[from_]),
            tuple(kept),
        )

    def _likely(self, row: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the symbols of a frame that are tried, in the order of their ids."""
        order = np.argsort(-row, kind="stable")
        count = len(row)
        if self.prune_probability < 1:
            reached = np.cumsum(np.exp(row[order]))
            count = int(np.searchsorted(reached, self.prune_probability)) + 1
        return np.sort(order[: min(count, self.prune_symbols)])

    def _merge(
        self,
        state: BeamState,
        symbol: NDArray[np.float64],
        extended: NDArray[np.float64],
        tried: NDArray[np.int64],
        total: NDArray[np.float64],
        row: NDArray[np.float64],
    ) -> list[_Prefix]:
        """Add the extensions that spell another hypothesis to it, in place; return the prefixes.

        A token begins anew where that is more probable than all its beginnings before.
        """
        places = {prefix.symbols: i for i, prefix in enumerate(state.prefixes)}
        columns = {index: k for k, index in enumerate(tried.tolist())}
        prefixes = list(state.prefixes)
        for j, prefix in enumerate(state.prefixes):
            if not prefix.symbols:
                continue
            i, k = places.get(prefix.symbols[:-1]), columns.get(prefix.last)
            if i is None or k is None:
                continue
            entering = float(extended[i, k])
            extended[i, k] = _NONE
            symbol[j] = np.logaddexp(symbol[j], entering)
            if entering > total[j]:
                parent = state.prefixes[i]
                silence = state.frames - 1 - parent.active
                token = Token(prefix.last, state.frames, float(row[prefix.last]), silence)
                tokens = (*parent.tokens, token)
                prefixes[j] = replace(prefix, tokens=tokens)
        return prefixes

    def _words(
        self, prefixes: list[_Prefix], tried: NDArray[np.int64], scores: NDArray[np.float64]
    ) -> dict[tuple[int, int], WordHistory]:
        """Add what the language model says of the words that a space ends, in place."""
        if self.fusion is None or self.fusion.space not in tried:
            return {}
        k = int(np.flatnonzero(tried == self.fusion.space)[0])
        histories = {}
        for i, prefix in enumerate(prefixes):
            if scores[i, k] > _NONE:
                after = histories[i, k] = self.fusion.close(prefix.history)
                scores[i, k] += after.bonus - prefix.history.bonus
        return histories

    def _spell(self, history: WordHistory, index: int) -> WordHistory:
        return history if self.fusion is None else self.fusion.spell(history, index)


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
        replace(prefix, symbols=prefix.symbols[shared:], tokens=prefix.tokens[shared:])
        for prefix in state.prefixes
    )
    return tokens, replace(state, prefixes=prefixes)
