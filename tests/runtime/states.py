"""States of an engine put together and taken apart, row by row."""

from collections.abc import Sequence

import numpy as np

from nearfuture.runtime.engine import State


def gather(states: Sequence[State]) -> State:
    """Several states as one, their rows one after another."""
    return {name: np.concatenate([state[name] for state in states]) for name in states[0]}


def scatter(state: State) -> list[State]:
    """Each row as a state of its own, sharing no memory: the inverse of `gather`."""
    rows = len(next(iter(state.values())))
    return [{name: x[b : b + 1].copy() for name, x in state.items()} for b in range(rows)]
