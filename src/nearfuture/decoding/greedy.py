"""CTC greedy decoding, chunk by chunk: the best symbol of each frame, repeats and blanks removed.

Shapes: `T` frames of the chunk, `V` vocabulary with the blank.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nearfuture.decoding.distribution import HIGHEST, check_distributions
from nearfuture.error import NearfutureError


@dataclass(frozen=True)
class Token:
    """One symbol, at the frame where its run begins.

    Args:
        index: id of the symbol in the vocabulary; never the blank.
        frame: frame of the stream, counted from 0.
        log_prob: natural logarithm of its probability in that frame.
        silence: frames of blanks right before its run; they divide words where they are many.
    """

    index: int
    frame: int
    log_prob: float
    silence: int = 0


@dataclass(frozen=True)
class GreedyState:
    """The state of greedy decoding in a stream.

    Args:
        frames: frames seen so far.
        last: the best symbol of the last frame; the blank before the first.
        silence: how many frames of blanks it ends with.
    """

    frames: int
    last: int
    silence: int = 0


@dataclass(frozen=True)
class GreedyDecoder:
    """CTC best-path decoding: the best symbol of each frame, repeats merged, blanks dropped.

        π_t = argmax_v log p(t, v);   a token at t  where  π_t ≠ blank  and  π_t ≠ π_{t-1}

    A token appears with the frame where its run begins, so nothing ever waits and nothing is left
    for the end of the stream. Any partition into chunks gives the same tokens. Of equal best
    symbols the lowest id is taken.

    Args:
        blank: id of the blank.

    Source: Graves et al., "Connectionist temporal classification", 2006, best path decoding.

    >>> greedy = GreedyDecoder()
    >>> best = [1, 1, 0, 1, 2, 2]
    >>> log_probs = np.log(np.full((6, 3), 0.1) + 0.7 * np.eye(3)[best])
    >>> first, state = greedy.step(log_probs[:2], greedy.start())
    >>> second, state = greedy.step(log_probs[2:], state)
    >>> [(token.index, token.frame, token.silence) for token in first + second], state
    ([(1, 0, 0), (1, 3, 1), (2, 4, 0)], GreedyState(frames=6, last=2, silence=0))
    """

    blank: int = 0

    def start(self) -> GreedyState:
        """Return the state of a stream that has not begun."""
        return GreedyState(frames=0, last=self.blank)

    def step(
        self, log_probs: NDArray[np.floating], state: GreedyState
    ) -> tuple[list[Token], GreedyState]:
        """Return the tokens of the next `T` frames, and the state after them.

        Args:
            log_probs: (T, V) natural logarithms, `T` ≥ 0; only those of one stream, unpadded.
            state: from `start`, or from the step before.

        Raises:
            NearfutureError: if `log_probs` is not (T, V) with the blank in `V`; for a NaN; and for
                what are no log-probabilities: a value above 0, or a frame whose probabilities do
                not add up to 1, within 0.01. Frames that come one by one, as they do live, are
                added up only where a stream begins; of the others the best symbol is looked at,
                whose probability lies between 1 / V and 1.
        """
        log_probs = np.asarray(log_probs)
        if log_probs.ndim != 2 or not 0 <= self.blank < log_probs.shape[1]:
            raise NearfutureError(
                f"log_probs has shape {log_probs.shape}: greedy decoding takes (frames, "
                f"vocabulary) of one stream, with the blank, {self.blank}, in the vocabulary",
                parameter="log_probs",
            )
        frames = len(log_probs)
        if frames == 0:
            return [], state
        if frames == 1:  # as in every live stream: a tenth of the work, the same values
            return self._step_frame(log_probs[0], state)
        check_distributions(log_probs, first_frame=state.frames)
        best = log_probs.argmax(axis=1)
        score = log_probs[np.arange(frames), best]
        before = np.concatenate(([state.last], best[:-1]))
        starts = np.flatnonzero((best != self.blank) & (best != before))
        # How many blanks end at each frame: frames since the last symbol, which may lie before.
        t = np.arange(frames)
        silent = t - np.maximum.accumulate(np.where(best != self.blank, t, -1 - state.silence))
        silence = np.concatenate(([state.silence], silent[:-1]))
        tokens = [
            Token(int(best[t]), state.frames + int(t), float(score[t]), int(silence[t]))
            for t in starts
        ]
        return tokens, GreedyState(state.frames + frames, int(best[-1]), int(silent[-1]))

    def _step_frame(
        self, log_probs: NDArray[np.floating], state: GreedyState
    ) -> tuple[list[Token], GreedyState]:
        best = int(log_probs.argmax())
        score = float(log_probs[best])
        # Live, this is most of what is done. A NaN, at which argmax points, is in no range.
        if state.frames == 0 or not -math.log(len(log_probs)) - HIGHEST <= score <= HIGHEST:
            check_distributions(log_probs[None], first_frame=state.frames)
        silence = state.silence + 1 if best == self.blank else 0
        after = GreedyState(state.frames + 1, best, silence)
        if best in (self.blank, state.last):
            return [], after
        return [Token(best, state.frames, score, state.silence)], after
