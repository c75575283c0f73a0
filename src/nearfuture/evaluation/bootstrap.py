"""Bootstrap confidence intervals of an error rate, and of the difference between two.

Letters: `n` utterances, `G` groups that are drawn (utterances or speakers), `R` resamples.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nearfuture.error import NearfutureError
from nearfuture.text import ErrorRate

_Counts = NDArray[np.int64]

_LOW, _HIGH = 2.5, 97.5
_BLOCK = 1 << 20
"""Indices that are drawn in one block: it bounds the memory for large corpora."""


@dataclass(frozen=True)
class ConfidenceInterval:
    """An estimate with its 95 % confidence interval.

    Args:
        value: the estimate on the whole corpus.
        low: 2.5 % of the resamples lie below.
        high: 2.5 % of the resamples lie above.
    """

    value: float
    low: float
    high: float


def bootstrap_interval(
    utterances: Sequence[ErrorRate],
    groups: Sequence[str] | None = None,
    *,
    resamples: int = 2000,
    seed: int = 0,
) -> ConfidenceInterval:
    """Estimate an error rate with its 95 % percentile bootstrap interval.

        rate = Σ_u errors_u / Σ_u reference_u

    Each resample draws `G` of the `G` groups with replacement and computes the same ratio of sums.
    Utterances of one speaker resemble each other, so for a statement about other *speakers* draw
    whole speakers: `groups`. With fewer than about 20 groups such an interval is too narrow.

    Args:
        utterances: the counts of each utterance.
        groups: the group of each utterance, e.g. its speaker: whole groups are drawn (cluster
            bootstrap). By default each utterance is a group of its own.
        resamples: `R`.
        seed: the same seed gives the same interval.

    Raises:
        NearfutureError: for fewer than 2 utterances or groups, and where every reference is empty.

    Source: Efron and Tibshirani, "An introduction to the bootstrap", 1993; Bisani and Ney,
    "Bootstrap estimates for confidence intervals in ASR performance evaluation", 2004.

    >>> half = [ErrorRate(deletions=n % 2, reference=1) for n in range(100)]
    >>> bootstrap_interval(half)
    ConfidenceInterval(value=0.5, low=0.4, high=0.6)
    """
    errors, reference = _sum_groups(utterances, groups)
    if reference.sum() == 0:
        raise NearfutureError("every reference is empty: an error rate is not defined")
    rates = []
    for indices in _resample(len(errors), resamples, seed):
        total_errors, total = errors[indices].sum(axis=1), reference[indices].sum(axis=1)
        rates.append(total_errors[total > 0] / total[total > 0])
    low, high = np.percentile(np.concatenate(rates), (_LOW, _HIGH))
    return ConfidenceInterval(float(errors.sum() / reference.sum()), float(low), float(high))


def paired_bootstrap(
    utterances_a: Sequence[ErrorRate],
    utterances_b: Sequence[ErrorRate],
    groups: Sequence[str] | None = None,
    *,
    resamples: int = 2000,
    seed: int = 0,
) -> ConfidenceInterval:
    """Estimate how much worse A is than B on the same utterances, in % of B.

        d = 100 · (rate_A − rate_B) / rate_B = 100 · (Σ_u errors_A,u / Σ_u errors_B,u − 1)

    Every resample draws utterances *once* for both, so that what makes an utterance hard for both
    cancels: the interval is narrower than that of two unrelated samples. `low` and `high` are order
    statistics, rounded outwards. A resample in which B makes no error and A does counts as +∞; one
    in which neither does counts as 0. Read it so: A is shown to be within +2 % of B where
    `high ≤ 2`; that it is not is shown where `low > 2`; between them the data cannot tell.

    Args:
        utterances_a: the counts of each utterance by A, e.g. of characters.
        utterances_b: those of B, in the same order, against the same references.
        groups: as for `bootstrap_interval`.
        resamples: `R`.
        seed: the same seed gives the same interval.

    Raises:
        NearfutureError: for utterances that do not pair, for fewer than 2 utterances or groups, and
            where B makes no error at all: a share of nothing is not defined.

    Source: Bisani and Ney, 2004, who bootstrap the paired difference; here the ratio.

    >>> a = [ErrorRate(deletions=3, reference=10 + n) for n in range(50)]
    >>> b = [ErrorRate(deletions=2, reference=10 + n) for n in range(50)]
    >>> paired_bootstrap(a, b)
    ConfidenceInterval(value=50.0, low=50.0, high=50.0)
    """
    if [a.reference for a in utterances_a] != [b.reference for b in utterances_b]:
        raise NearfutureError(
            f"paired counts belong to the same utterances in the same order; these "
            f"{len(utterances_a)} and {len(utterances_b)} have different references"
        )
    errors_a, _ = _sum_groups(utterances_a, groups)
    errors_b, _ = _sum_groups(utterances_b, groups)
    if errors_b.sum() == 0:
        raise NearfutureError(
            "the second makes no error at all, so a relative difference to it is not defined: "
            "compare on more recordings"
        )
    differences = np.concatenate(
        [
            _relative_difference(errors_a[indices].sum(axis=1), errors_b[indices].sum(axis=1))
            for indices in _resample(len(errors_a), resamples, seed)
        ]
    )
    return ConfidenceInterval(
        float(_relative_difference(errors_a.sum(), errors_b.sum())),
        float(np.percentile(differences, _LOW, method="lower")),
        float(np.percentile(differences, _HIGH, method="higher")),
    )


def _relative_difference(a: _Counts, b: _Counts) -> NDArray[np.float64]:
    relative = np.where((b == 0) & (a > 0), np.inf, 0.0)
    np.divide(100.0 * (a - b), b, out=relative, where=b > 0)
    return relative


def _sum_groups(
    utterances: Sequence[ErrorRate], groups: Sequence[str] | None
) -> tuple[_Counts, _Counts]:
    """The errors and the reference lengths (G,) of each group."""
    errors = np.array([counts.errors for counts in utterances], np.int64)
    reference = np.array([counts.reference for counts in utterances], np.int64)
    if groups is not None:
        if len(groups) != len(utterances):
            raise NearfutureError(
                f"`groups` has {len(groups)} entries for {len(utterances)} utterances: name one "
                f"for each",
                parameter="groups",
            )
        numbers = {group: number for number, group in enumerate(dict.fromkeys(groups))}
        index = np.array([numbers[group] for group in groups], np.int64)
        errors, reference = (
            np.bincount(index, weights=counts, minlength=len(numbers)).astype(np.int64)
            for counts in (errors, reference)
        )
    if len(errors) < 2:
        raise NearfutureError(
            f"an interval needs at least 2 {'utterances' if groups is None else 'groups'}, not "
            f"{len(errors)}: one has no information about the others"
        )
    return errors, reference


def _resample(groups: int, resamples: int, seed: int) -> Iterator[_Counts]:
    """Indices (some of R, G) in blocks; the numbers do not depend on the size of a block."""
    if resamples < 1:
        raise NearfutureError(
            f"a bootstrap has at least 1 resample: `resamples` cannot be {resamples}",
            code="out_of_range",
            parameter="resamples",
        )
    rng = np.random.default_rng(seed)
    rows = max(1, _BLOCK // groups)
    for start in range(0, resamples, rows):
        yield rng.integers(0, groups, (min(rows, resamples - start), groups))
