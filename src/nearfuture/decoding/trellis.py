"""The best path through CTC's states: exact, in memory that hours of audio fit in.

Shapes: `T` frames, `V` vocabulary with the blank, `L` target symbols, `S` = 2L + 1 states, `K`
frames of a block.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def best_path(log_probs: Floats, labels: NDArray[np.int64]) -> tuple[NDArray[np.int64], float]:
    """Find the most probable sequence of states, from the first two to the last two.

        v(t, s) = log p(t, label_s) + max(v(t-1, s), v(t-1, s-1), v(t-1, s-2))

    The last of the three, over a blank, is there only for a symbol that differs from the one
    before it. Of equally probable paths, walking back from the end, the one that ends in the blank
    is taken, and one that stays in its state before one that moves, by as little as possible.

    Nothing is pruned. The scores are kept only every K frames; each block of K frames is then
    computed again, from the last to the first, for the 2K states that can lead to where the path
    goes on. That costs `8·S·T/K + 2·K²` bytes instead of `S·T`, least for `K³ = 2·S·T`.

    Args:
        log_probs: (T, V), `T` ≥ 1, without NaN.
        labels: (S,) the symbol of every state; blanks at even places.

    Returns:
        The states (T,), and the log-probability of their labels; -inf where no path has any.

    Source: Viterbi, 1967, over the states of Graves et al., 2006, section 4.1; blocks as in
    Grice, Hughey and Speck, "Reduced space sequence alignment", 1997.

    >>> log_probs = np.log([[0.6, 0.4], [0.6, 0.4], [0.1, 0.9]])
    >>> states, score = best_path(log_probs, np.array([0, 1, 0]))
    >>> states.tolist(), round(float(np.exp(score)), 3)
    ([0, 0, 1], 0.324)
    """
    T, S = len(log_probs), len(labels)
    K = max(1, round((2 * S * T) ** (1 / 3)))
    over = np.full(S, -np.inf)  # what it costs to skip the blank before a state
    over[3::2][labels[3::2] != labels[1:-2:2]] = 0.0

    # Two states in front, without probability, stand for what lies before the first.
    scores = np.full(S + 2, -np.inf)
    scores[2] = 0.0  # as if in the first blank before frame 0
    kept = []
    for t in range(T):
        if t % K == 0:
            kept.append(scores[2:].copy())
        # States that neither the start can have reached nor the end can be reached from are left.
        low, high = max(0, S - 2 * (T - t)), min(S, 2 * t + 2)
        best = _best(scores[low : high + 2], over[low:high])
        best += log_probs[t].take(labels[low:high])
        scores[low + 2 : high + 2] = best

    state = S - 1 if S == 1 or scores[S + 1] >= scores[S] else S - 2
    score = float(scores[state + 2])
    states = np.empty(T, np.int64)
    while kept:
        begin, end = K * (len(kept) - 1), min(T, K * len(kept))
        low, high = max(0, state - 2 * (end - begin)), state + 1
        moves = _moves(log_probs[begin:end], labels[low:high], over[low:high], kept.pop()[low:high])
        for t in range(end - 1, begin - 1, -1):
            states[t] = state
            state -= int(moves[t - begin, state - low])
    return states, score


def _best(scores: Floats, over: Floats) -> Floats:
    best = np.maximum(scores[2:], scores[1:-1])
    return np.maximum(best, scores[:-2] + over, out=best)


def _moves(
    log_probs: Floats, labels: NDArray[np.int64], over: Floats, start: Floats
) -> NDArray[np.uint8]:
    """Compute by how many states the best path into each state moved, for each frame of a block.

    What lies below the given states is taken for unreachable. That is wrong, but what it spoils
    climbs by two states a frame, and the path that is looked for stays above it.
    """
    moves = np.empty((len(log_probs), len(labels)), np.uint8)
    scores = np.full(len(labels) + 2, -np.inf)
    scores[2:] = start
    for t, row in enumerate(log_probs):
        best = _best(scores, over)
        moves[t] = np.where(best == scores[2:], 0, np.where(best == scores[1:-1], 1, 2))
        best += row.take(labels)
        scores[2:] = best
    return moves
