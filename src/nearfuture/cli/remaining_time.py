"""How long something that goes on in steps will still take, without jumps."""

import time
from collections import deque
from collections.abc import Callable

_MAX_STAMPS = 512


class RemainingTime:
    """Estimates by the second half of what was done, whatever was done between its steps included.

    A slow step moves the estimate by its share of that half and no more, and a machine that becomes
    faster or slower is noticed by the time as much again has been done.

    Args:
        clock: Seconds.

    >>> seconds = iter([0.0, 1.0, 2.0, 3.0])
    >>> remaining = RemainingTime(clock=lambda: next(seconds))
    >>> [remaining.after(step, 10) for step in (0, 1, 2, 3)]
    [None, 9.0, 8.0, 7.0]
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._stamps: deque[tuple[int, float]] = deque()
        self._every = 1

    def after(self, step: int, steps: int) -> float | None:
        """Estimate seconds from a step that was just done to the last one; None without a guess."""
        now = self._clock()
        if not self._stamps or step - self._stamps[-1][0] >= self._every:
            self._stamps.append((step, now))
        if len(self._stamps) > _MAX_STAMPS:  # every other one: as good, and takes no more room
            self._every *= 2
            self._stamps = deque(list(self._stamps)[::2])
        first = self._stamps[0][0]
        middle = first + (step - first) // 2
        begun, at = max(stamp for stamp in self._stamps if stamp[0] <= middle)
        return None if step == begun else (now - at) / (step - begun) * (steps - step)


def remaining_text(seconds: float | None) -> str:
    """Write minutes, and hours where there are any.

    >>> [remaining_text(seconds) for seconds in (None, 20, 61, 3600 * 2 + 60 * 4)]
    ['', '1 min left', '2 min left', '2 h 04 min left']
    """
    if seconds is None:
        return ""
    hours, minutes = divmod(max(0, -int(-seconds // 60)), 60)
    return f"{hours} h {minutes:02d} min left" if hours else f"{minutes} min left"
