"""Checks that numbers are log-probabilities, on which every confidence and every loss rests.

Shapes: `T` frames, `V` vocabulary with the blank.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from nearfuture.error import NearfutureError
from nearfuture.text import SUM_TOLERANCE

HIGHEST = math.log1p(SUM_TOLERANCE)
"""The greatest log-probability; above 0 by what the sum of a frame may be above 1."""


def check_log_probs(log_probs: NDArray[np.floating], *, first_frame: int = 0) -> None:
    """Refuse what no log-probability can be: a NaN, and anything above 0.

    Args:
        log_probs: (T, V).
        first_frame: of the stream, for the message.

    Raises:
        NearfutureError: naming the first frame that is wrong, and its greatest value.

    >>> check_log_probs(np.array([[-0.7, -0.7], [0.3, 0.9]]))
    Traceback (most recent call last):
    ...
    nearfuture.error.NearfutureError: frame 1 has the value 0.9, and a log-probability is at most \
0: pass natural logarithms of probabilities, e.g. a model's output through log_softmax
    """
    valid = log_probs <= HIGHEST
    if valid.all():
        return
    row = int(np.flatnonzero(~valid.all(axis=1))[0])
    frame, values = first_frame + row, log_probs[row]
    if np.isnan(values).any():
        raise NearfutureError(
            f"log_probs has a NaN in frame {frame}: the model's output is broken there",
            parameter="log_probs",
        )
    raise NearfutureError(
        f"frame {frame} has the value {values.max():.3g}, and a log-probability is at most 0: pass "
        f"natural logarithms of probabilities, e.g. a model's output through log_softmax",
        parameter="log_probs",
    )


def check_next_frames(log_probs: NDArray[np.floating], *, first_frame: int) -> None:
    """Refuse frames of a stream that are no distributions, at little cost where they come singly.

    Frames that come one by one, as they do live, are added up only where a stream begins; of the
    others the best symbol is looked at, whose probability lies between 1 / V and 1.

    Args:
        log_probs: (T, V), V above 0.
        first_frame: of the stream.

    Raises:
        NearfutureError: as `check_distributions`.
    """
    if len(log_probs) == 1 and first_frame > 0:
        lowest = -math.log(log_probs.shape[1]) - HIGHEST
        if lowest <= float(log_probs.max()) <= HIGHEST:  # not so for a NaN, which it is then
            return
    check_distributions(log_probs, first_frame=first_frame)


def check_distributions(log_probs: NDArray[np.floating], *, first_frame: int = 0) -> None:
    """Refuse frames that are no distributions: `|Σ_v p(t, v) − 1|` is at most 0.01.

    That is what 16 bits need; those of float32 are within 0.00001.

    Args:
        log_probs: (T, V).
        first_frame: of the stream, for the message.

    Raises:
        NearfutureError: as `check_log_probs`, and naming the first frame whose sum is another.

    >>> check_distributions(np.log([[0.5, 0.5], [0.2, 0.2]]))
    Traceback (most recent call last):
    ...
    nearfuture.error.NearfutureError: the probabilities of frame 1 add up to 0.4, not to 1: pass \
natural logarithms of probabilities, e.g. a model's output through log_softmax
    """
    check_log_probs(log_probs, first_frame=first_frame)
    sums = np.exp(log_probs).sum(axis=1, dtype=np.float64)
    wrong = np.abs(sums - 1.0) > SUM_TOLERANCE
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise NearfutureError(
            f"the probabilities of frame {first_frame + row} add up to {sums[row]:.3g}, not to 1: "
            f"pass natural logarithms of probabilities, e.g. a model's output through log_softmax",
            parameter="log_probs",
        )
