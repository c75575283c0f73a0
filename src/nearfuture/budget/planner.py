"""The largest head that a budget in milliseconds allows."""

import math
from collections.abc import Mapping

from nearfuture.budget.latency import Latency
from nearfuture.error import NearfutureError

_ROUNDING_MS = 1e-6


def largest_lookahead(
    budget_ms: float,
    heads: Mapping[int, Latency | float],
) -> int:
    """The largest lookahead whose worst-case algorithmic latency fits the budget.

    `max {τ : worst_ms(τ) ≤ budget_ms}`

    Args:
        budget_ms: the promise, in ms.
        heads: for each lookahead in frames its latency, or the latency's worst case in ms.

    Returns:
        The lookahead in frames.

    Raises:
        NearfutureError: if there are no heads, or the budget is below the smallest that the
            model can keep; the message names it.

    >>> heads = {0: 55.0, 4: 215.0, 8: 375.0, 19: 815.0}
    >>> largest_lookahead(400, heads), largest_lookahead(375, heads), largest_lookahead(374, heads)
    (8, 8, 4)
    >>> largest_lookahead(40, heads)
    Traceback (most recent call last):
    nearfuture.error.NearfutureError: a budget of 40 ms is below the smallest this model can keep, \
55 ms; ask for 55 ms or more
    """
    worst_ms = {
        frames: latency.worst_ms if isinstance(latency, Latency) else latency
        for frames, latency in heads.items()
    }
    if not worst_ms:
        raise NearfutureError(
            "there is no head to choose from: a model has at least one lookahead",
            parameter="heads",
        )
    fitting = [frames for frames, ms in worst_ms.items() if ms <= budget_ms + _ROUNDING_MS]
    if fitting:
        return max(fitting)
    smallest = min(worst_ms.values())
    if math.isinf(smallest):
        raise NearfutureError(
            f"no budget can be kept, not even {budget_ms:g} ms: this model reads the whole "
            f"utterance before its first output; train a streaming model to have one",
            code="unsupported",
            parameter="budget_ms",
        )
    # Rounded up, so that the budget that the message asks for is accepted.
    smallest = math.ceil(round(smallest * 1000, 3)) / 1000
    raise NearfutureError(
        f"a budget of {budget_ms:g} ms is below the smallest this model can keep, "
        f"{smallest:.10g} ms; ask for {smallest:.10g} ms or more",
        code="out_of_range",
        parameter="budget_ms",
    )
