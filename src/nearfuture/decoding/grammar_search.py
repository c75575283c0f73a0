"""The best text of a grammar in a stream, with whatever is said before and behind it.

Method (Viterbi). The score of an arc is that of the best path which is on it now; one of a state,
of the best path that waits there on a blank. A *filler* path explains any frame by its best symbol
at a small price, before the text and behind it. Every frame updates all scores at once; their
arrays are kept while somebody speaks, and the best path is read from them backwards.

Example, the text "on", and "uh on" is heard: the filler takes "uh " at three prices, the arcs o and
n take the rest for nothing; all in filler would cost five prices, "on" from the start two
impossible letters.

Shapes: `T` frames of the chunk, `V` vocabulary with the blank, `A` arcs, `S` states of the grammar.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from nearfuture.decoding.alignment import AlignedToken, AlignedWord, Alignment, aligned_words
from nearfuture.decoding.distribution import check_next_frames
from nearfuture.decoding.endpoint import Endpoint
from nearfuture.decoding.grammar import Grammar
from nearfuture.error import NearfutureError
from nearfuture.text import BLANK

_BEFORE, _AFTER = -1, -2  # places of the path in the filler
_QUIET = math.log(0.9)  # a blank of this probability begins no utterance


@dataclass(frozen=True)
class GrammarResult:
    """What was said between two silences.

    Args:
        text: the best text of the grammar; empty where it was not understood.
        words: of the text, with times.
        confidence: in [0, 1], the geometric mean of the probabilities of the path in frames of
            speech: those where it, or the best symbol, is not the blank; fillers at their price.
        understood: whether the confidence reaches the threshold.
        score: natural logarithm of the probability of the path, the prices of fillers included.
        start_ms: of the speech, understood or not.
        end_ms: of the speech.
    """

    text: str
    words: tuple[AlignedWord, ...]
    confidence: float
    understood: bool
    score: float
    start_ms: float
    end_ms: float


@dataclass(frozen=True, eq=False)
class _Scores:
    """The scores of all places behind a frame, and the frame."""

    frame: NDArray[np.float64]
    arc: NDArray[np.float64]
    blank: NDArray[np.float64]  # of the states but the start
    before: float
    after: float


@dataclass(frozen=True, eq=False)
class GrammarState:
    """The state of a search in a stream; no step changes it.

    Args:
        frames: frames seen so far.
        history: the scores of the utterance; empty while nobody speaks.
        spoken: the first and the last frame of the utterance whose best symbol was not the blank or
            a space; None before the first.
        ended: the frame in which the best complete text ended, where fillers follow it.
    """

    frames: int = 0
    history: tuple[_Scores, ...] = ()
    spoken: tuple[int, int] | None = None
    ended: int = 0


@dataclass(frozen=True, kw_only=True)
class GrammarSearch:
    """Viterbi search of a grammar over log-probabilities: `filler* text filler*` in each utterance.

        score = max over paths π of Σ_t log p(t, π_t);    a filler frame has
                max(log p(t, blank), max_v log p(t, v) − price)

    Any partition into chunks gives the same results, bit for bit. An utterance begins with the
    first frame whose blank is below 0.9, and ends by the rule of `endpoint`, or where a text is
    complete and only fillers follow it for so long as the silence of that rule. Of equally probable
    paths the one that stays where it is, then the one from the lowest arc, is taken.

    Args:
        grammar: compiled for the vocabulary of the model.
        frame_ms: milliseconds from one frame to the next.
        centre_ms: milliseconds from the start of the audio to the centre of the window of frame 0.
        price: of a frame in the filler, in natural logarithms, at least 0.
        threshold: the confidence from which on a text is understood, in [0, 1].
        endpoint: when an utterance ends; its longest bounds the memory.

    Raises:
        NearfutureError: for a price below 0 and a threshold outside [0, 1].

    >>> from nearfuture.decoding import Automaton
    >>> from nearfuture.text import Vocabulary
    >>> grammar = Grammar.compile(Automaton.of(["on", "off"]), Vocabulary(("f", "n", "o", "u")))
    >>> search = GrammarSearch(grammar=grammar, frame_ms=40, centre_ms=27.5, threshold=0.6)
    >>> best = [0, 4, 0, 3, 2, 0]  # uon
    >>> results, state = search.step(np.log(np.eye(5)[best] * 0.9 + 0.02), search.start())
    >>> search.provisional(state), [(r.text, round(r.confidence, 2)) for r in search.finish(state)]
    ('on', [('on', 0.66)])
    """

    grammar: Grammar
    frame_ms: float
    centre_ms: float
    price: float = 1.0
    threshold: float = 0.8
    endpoint: Endpoint = field(default_factory=Endpoint)

    def __post_init__(self) -> None:
        if not (0 <= self.price < math.inf):
            raise NearfutureError(
                f"`price` must be at least 0 and finite, not {self.price:g}",
                code="out_of_range",
                parameter="price",
            )
        if not 0 <= self.threshold <= 1:
            raise NearfutureError(
                f"`threshold` must be from 0 to 1, not {self.threshold:g}",
                code="out_of_range",
                parameter="threshold",
            )

    def start(self) -> GrammarState:
        """Return the state of a stream that has not begun."""
        return GrammarState()

    def step(
        self, log_probs: NDArray[np.floating], state: GrammarState
    ) -> tuple[list[GrammarResult], GrammarState]:
        """Return the utterances that end in the next `T` frames, and the state after them.

        Args:
            log_probs: (T, V) natural logarithms, `T` ≥ 0; only those of one stream, unpadded.
            state: from `start`, or from the step before.

        Raises:
            NearfutureError: if `log_probs` is not (T, V) with the V of the vocabulary, has a NaN
                or a value above 0, or a frame whose probabilities do not add up to 1; of frames
                that come one by one only the first is added up.
        """
        values = np.asarray(log_probs)
        V = len(self.grammar.vocabulary)
        if values.ndim != 2 or values.shape[1] != V:
            raise NearfutureError(
                f"log_probs has shape {values.shape}: this grammar takes (frames, {V}) of one "
                "stream",
                parameter="log_probs",
            )
        check_next_frames(values, first_frame=state.frames)
        results = []
        for row in values.astype(np.float64, copy=False):
            state = self._frame(row, state)
            if state.history and self._ends(state):
                results += self.finish(state)
                state = GrammarState(state.frames)
        return results, state

    def finish(self, state: GrammarState) -> list[GrammarResult]:
        """Return the utterance that has not ended, as if it ended here: one, or none."""
        if state.spoken is None:
            return []
        scores = state.history[-1]
        score, place = self._complete(scores)
        if scores.after > score:
            score, place = scores.after, _AFTER
        first, last = state.spoken
        times = [self.centre_ms + self.frame_ms * frame for frame in (first, last + 0.5)]
        if score == -math.inf:
            return [GrammarResult("", (), 0.0, False, -math.inf, *times)]
        path, tokens = self._path(state, place)
        confidence = self._confidence(state.history, path)
        text = self.grammar.vocabulary.decode([token.index for token in tokens])
        understood = confidence >= self.threshold
        if not understood:
            return [GrammarResult("", (), confidence, False, score, *times)]
        alignment = Alignment(path, tokens, score)
        words = aligned_words(
            alignment, text.split(), frame_ms=self.frame_ms, centre_ms=self.centre_ms
        )
        return [GrammarResult(text, words, confidence, True, score, *times)]

    def provisional(self, state: GrammarState) -> str:
        """Return the text of the best path so far, complete or not, understood or not."""
        if not state.history:
            return ""
        scores = state.history[-1]
        places = [(scores.before, _BEFORE), (scores.after, _AFTER)]
        for values, begin in ((scores.arc, 0), (scores.blank, len(scores.arc))):
            best = int(values.argmax())
            places.append((float(values[best]), begin + best))
        _, place = max(places, key=lambda found: found[0])
        _, tokens = self._path(state, place)
        return self.grammar.vocabulary.decode([token.index for token in tokens])

    def _frame(self, row: NDArray[np.float64], state: GrammarState) -> GrammarState:
        best = int(row.argmax())
        frame, frames = state.frames, state.frames + 1
        if not state.history and row[BLANK] >= _QUIET:
            return replace(state, frames=frames)
        spoken = state.spoken
        if best != BLANK and not self.grammar.vocabulary.decode([best]).isspace():
            spoken = (spoken[0] if spoken else frame, frame)

        grammar, last = self.grammar, self._last(state)
        inside = self._all_inside(last)
        filler = max(float(row[BLANK]), float(row[best]) - self.price)
        sources = np.concatenate(([last.before], inside, [last.before], last.blank))
        arc = np.maximum(last.arc, sources[grammar.source])
        arc += row[grammar.label]
        complete = float(inside[grammar.final - 1].max())
        ended = frame if complete > last.after else state.ended
        scores = _Scores(
            frame=row,
            arc=arc,
            blank=inside + row[BLANK],
            before=last.before + filler,
            after=max(last.after, complete) + filler,
        )
        return GrammarState(frames, (*state.history, scores), spoken, ended)

    def _last(self, state: GrammarState) -> _Scores:
        if state.history:
            return state.history[-1]
        arcs, states = len(self.grammar.label), len(self.grammar.first)
        return _Scores(
            frame=np.zeros(0),
            arc=np.full(arcs, -np.inf),
            blank=np.full(states, -np.inf),
            before=0.0,
            after=-math.inf,
        )

    def _ends(self, state: GrammarState) -> bool:
        """Whether the utterance ends with the last frame."""
        if state.spoken is None:
            silence = self.frame_ms * len(state.history)
            return silence >= self.endpoint.silence_ms
        first, last = state.spoken
        scores = state.history[-1]
        silence = self.frame_ms * (state.frames - 1 - last)
        follows = self.frame_ms * (state.frames - state.ended)
        if follows >= self.endpoint.silence_ms > silence:
            best = max(scores.before, float(scores.arc.max()), float(scores.blank.max()))
            if scores.after >= best:
                silence = follows
        speech = self.frame_ms * (state.frames - first)
        return self.endpoint.reached(speech_ms=speech, silence_ms=silence, between_words=False)

    def _all_inside(self, scores: _Scores) -> NDArray[np.float64]:
        """Return the score of the best path in each state but the start, entering or waiting."""
        entering = np.maximum.reduceat(scores.arc, self.grammar.first)
        return np.maximum(scores.blank, entering, out=entering)

    def _complete(self, scores: _Scores) -> tuple[float, int]:
        """Return the score of the best complete path that no filler follows, and its place."""
        inside = self._all_inside(scores)[self.grammar.final - 1]
        best = int(inside.argmax())
        return float(inside[best]), self._inside(scores, int(self.grammar.final[best]))

    def _score(self, scores: _Scores, place: int) -> float:
        arcs = len(scores.arc)
        return float(scores.arc[place] if place < arcs else scores.blank[place - arcs])

    def _entering(self, state: int) -> range:
        """The arcs that enter a state."""
        first, states = self.grammar.first, len(self.grammar.first)
        end = int(first[state]) if state < states else len(self.grammar.label)
        return range(int(first[state - 1]), end) if state else range(0)

    def _path(
        self, state: GrammarState, place: int
    ) -> tuple[NDArray[np.int64], tuple[AlignedToken, ...]]:
        """Read the best path to a place backwards.

        Returns:
            The symbol of every frame of the utterance, −1 in the filler; and the tokens, whose
            frames are those of the stream.
        """
        arcs = len(self.grammar.label)
        path = np.full(len(state.history), -1, np.int64)
        runs: list[tuple[int, int, int]] = []  # an arc, its first and its last frame
        for t in range(len(state.history) - 1, -1, -1):
            last = state.history[t - 1] if t else self._last(GrammarState())
            if place == _BEFORE:
                break
            if place == _AFTER:
                complete, came = self._complete(last)
                place = came if complete > last.after else _AFTER
            elif place >= arcs:
                path[t] = BLANK
                place = self._inside(last, place - arcs + 1)
            else:
                path[t] = self.grammar.label[place]
                runs.append(
                    (
                        place,
                        t,
                        runs.pop()[2]
                        if runs and runs[-1][1] == t + 1 and runs[-1][0] == place
                        else t,
                    )
                )
                place = self._came(last, place)
        offset = state.frames - len(state.history)
        tokens = []
        for arc, first, end in reversed(runs):
            symbol = int(self.grammar.label[arc])
            frames = [state.history[t].frame[symbol] for t in range(first, end + 1)]
            tokens.append(
                AlignedToken(symbol, offset + first, offset + end, math.fsum(frames) / len(frames))
            )
        return path, tuple(tokens)

    def _inside(self, last: _Scores, state: int) -> int:
        """Return where the best path that is inside a state is: on its blank, or an arc into it."""
        entering = self._entering(state)
        scores = last.arc[entering.start : entering.stop]
        best = int(scores.argmax())
        if last.blank[state - 1] >= scores[best]:
            return len(last.arc) + state - 1
        return entering.start + best

    def _came(self, last: _Scores, arc: int) -> int:
        """Return where the best path that is on an arc was a frame before."""
        origin, states = int(self.grammar.origin[arc]), 1 + len(last.blank)
        if origin == 0:
            return arc if last.arc[arc] >= last.before else _BEFORE
        only_blank = self.grammar.source[arc] >= states
        place = len(last.arc) + origin - 1 if only_blank else self._inside(last, origin)
        return arc if last.arc[arc] >= self._score(last, place) else place

    def _confidence(self, history: tuple[_Scores, ...], path: NDArray[np.int64]) -> float:
        total, frames = 0.0, 0
        for symbol, scores in zip(path.tolist(), history, strict=True):
            best = int(scores.frame.argmax())
            if best == BLANK and symbol <= BLANK:
                continue
            frames += 1
            if symbol < 0:
                total += max(float(scores.frame[BLANK]), float(scores.frame[best]) - self.price)
            else:
                total += float(scores.frame[symbol])
        return math.exp(min(0.0, total / max(frames, 1)))  # rounding can put it above 0
