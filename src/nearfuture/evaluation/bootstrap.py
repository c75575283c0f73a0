"""How sure an error rate is, and how sure a difference between two: bootstrap intervals.

Letters: `n` utterances, `G` groups that are drawn (utterances or speakers), `R` resamples.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nearfuture.error import NearfutureError
from nearfuture.text import ErrorRate

_Counts = NDArray[np.int64]

_LEVELS = (2.5, 97.5)
_AT_ONCE = 1 << 20  # numbers drawn at once: bounds the memory for large corpora


@dataclass(frozen=True)
class Interval:
    """A figure with its 95 % confidence interval.

    Args:
        value: the figure on the whole corpus.
        low: 2.5 % of the resamples lie below.
        high: 2.5 % of the resamples lie above.
    """

    value: float
    low: float
    high: float


def interval(
    units: Sequence[ErrorRate],
    groups: Sequence[str] | None = None,
    *,
    resamples: int = 2000,
    seed: int = 0,
) -> Interval:
    """An error rate with its 95 % interval: the percentile bootstrap over utterances or speakers.

        rate = Σ_u errors_u / Σ_u reference_u

    Each resample draws `G` of the `G` units with replacement and computes the same ratio of sums.
    Utterances of one speaker resemble each other, so for a statement about other *speakers* draw
    whole speakers: `groups`. With fewer than about 20 groups such an interval is too narrow.

    Args:
        units: the counts of each utterance.
        groups: of each utterance, e.g. its speaker: whole groups are drawn (cluster bootstrap).
        resamples: `R`.
        seed: the same seed gives the same interval.

    Raises:
        NearfutureError: for fewer than 2 units or groups, and without a reference to err against.

    Source: Efron and Tibshirani, "An introduction to the bootstrap", 1993; Bisani and Ney,
    "Bootstrap estimates for confidence intervals in ASR performance evaluation", 2004.

    >>> half = [ErrorRate(deletions=n % 2, reference=1) for n in range(100)]
    >>> interval(half)
    Interval(value=0.5, low=0.4, high=0.6)
    """
    errors, reference = _summed(units, groups)
    if reference.sum() == 0:
        raise NearfutureError("every reference is empty: there is nothing to be wrong about")
    rates = []
    for drawn in _draws(len(errors), resamples, seed):
        wrong, said = errors[drawn].sum(axis=1), reference[drawn].sum(axis=1)
        rates.append(wrong[said > 0] / said[said > 0])
    low, high = np.percentile(np.concatenate(rates), _LEVELS)
    return Interval(float(errors.sum() / reference.sum()), float(low), float(high))


def paired_relative(
    units_a: Sequence[ErrorRate],
    units_b: Sequence[ErrorRate],
    groups: Sequence[str] | None = None,
    *,
    resamples: int = 2000,
    seed: int = 0,
) -> Interval:
    """How much worse A is than B on the same utterances, in % of B, with its 95 % interval.

        d = 100 · (rate_A − rate_B) / rate_B = 100 · (Σ_u errors_A,u / Σ_u errors_B,u − 1)

    Every resample draws units *once* for both, so that what makes an utterance hard for both
    cancels: the interval is narrower than that of two unrelated samples. `low` and `high` are order
    statistics, rounded outwards. A resample in which B makes no error and A does counts as +∞; one
    in which neither does counts as 0. Read it so: A is shown to be within +2 % of B where
    `high ≤ 2`; that it is not is shown where `low > 2`; between them the data cannot tell.

    Args:
        units_a: the counts of each utterance by A, e.g. of characters.
        units_b: those of B, in the same order, against the same references.
        groups: as for `interval`.
        resamples: `R`.
        seed: the same seed gives the same interval.

    Raises:
        NearfutureError: for units that do not pair, for fewer than 2 units or groups, and where B
            makes no error at all: a share of nothing is not defined.

    Source: Bisani and Ney, 2004, who bootstrap the paired difference; here the ratio.

    >>> a = [ErrorRate(deletions=3, reference=10 + n) for n in range(50)]
    >>> b = [ErrorRate(deletions=2, reference=10 + n) for n in range(50)]
    >>> paired_relative(a, b)
    Interval(value=50.0, low=50.0, high=50.0)
    """
    if [unit.reference for unit in units_a] != [unit.reference for unit in units_b]:
        raise NearfutureError(
            f"paired units belong to the same utterances in the same order; these {len(units_a)} "
            f"and {len(units_b)} have different references"
        )
    (errors_a, _), (errors_b, _) = _summed(units_a, groups), _summed(units_b, groups)
    if errors_b.sum() == 0:
        raise NearfutureError(
            "the second makes no error at all, so a relative difference to it is not defined: "
            "compare on more recordings"
        )
    differences = np.sort(
        np.concatenate(
            [
                _relative(errors_a[drawn].sum(axis=1), errors_b[drawn].sum(axis=1))
                for drawn in _draws(len(errors_a), resamples, seed)
            ]
        )
    )
    below, above = (level / 100 * (len(differences) - 1) for level in _LEVELS)
    value = _relative(errors_a.sum(keepdims=True), errors_b.sum(keepdims=True))
    return Interval(
        float(value[0]),
        float(differences[math.floor(below)]),
        float(differences[math.ceil(above)]),
    )


def _relative(a: _Counts, b: _Counts) -> NDArray[np.float64]:
    relative = np.where((b == 0) & (a > 0), np.inf, 0.0)
    np.divide(100.0 * (a - b), b, out=relative, where=b > 0)
    return relative


def _summed(
    units: Sequence[ErrorRate], groups: Sequence[str] | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Errors and references (G,) of what is drawn."""
    errors = np.array([unit.errors for unit in units], np.int64)
    reference = np.array([unit.reference for unit in units], np.int64)
    what = "utterances"
    if groups is not None:
        if len(groups) != len(units):
            raise NearfutureError(f"{len(groups)} groups were given for {len(units)} utterances")
        what = "groups"
        numbers = {group: number for number, group in enumerate(dict.fromkeys(groups))}
        of = np.array([numbers[group] for group in groups], np.int64)
        errors, reference = (
            np.bincount(of, weights=counts, minlength=len(numbers)).astype(np.int64)
            for counts in (errors, reference)
        )
    if len(errors) < 2:
        raise NearfutureError(
            f"an interval needs at least 2 {what}, not {len(errors)}: one says nothing about the "
            f"others"
        )
    return errors, reference


def _draws(units: int, resamples: int, seed: int) -> Iterator[NDArray[np.int64]]:
    """Indices (some of R, units), all R in a few parts: the same numbers as in one."""
    if resamples < 1:
        raise NearfutureError(f"a bootstrap has at least 1 resample, not {resamples}")
    rng = np.random.default_rng(seed)
    rows = max(1, _AT_ONCE // units)
    for start in range(0, resamples, rows):
        yield rng.integers(0, units, (min(rows, resamples - start), units))
