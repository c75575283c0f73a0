"""States of an engine put together and taken apart, row by row."""

from collections.abc import Iterable, Sequence

import numpy as np

from nearfuture.runtime import Engine
from nearfuture.runtime.engine import State, row


def gather(states: Sequence[State]) -> State:
    """Several states as one, their rows one after another."""
    return {name: np.concatenate([state[name] for state in states]) for name in states[0]}


def scatter(state: State) -> list[State]:
    """Each row as a state of its own, sharing no memory: the inverse of `gather`."""
    rows = len(next(iter(state.values())))
    return [{name: x[b : b + 1].copy() for name, x in state.items()} for b in range(rows)]


def assert_rows_are_strangers(
    engine: Engine,
    pcm: np.ndarray,
    lengths: np.ndarray,
    state: State,
    batches: Iterable[int],
    random: np.random.Generator,
) -> None:
    """Each row's outputs, state and tail are those it has alone, bit by bit, in any company.

    Args:
        engine: of a streaming bundle.
        pcm: (N, quantum) samples of N rows.
        lengths: (N,) how many of them are there.
        state: of the N rows.
        batches: sizes; the rows of each are drawn.
        random: draws them.
    """
    parts = scatter(state)
    alone = []
    for b, own in enumerate(parts):
        outputs, after = engine.step(pcm[b : b + 1], lengths[b : b + 1], own)
        alone.append((row(outputs, 0), after, row(engine.finish(after), 0)))
    for batch in batches:
        mates = random.permutation(len(parts))[:batch]
        before = gather([parts[b] for b in mates])
        outputs, after = engine.step(pcm[mates], lengths[mates], before)
        tails = engine.finish(after)
        for place, (b, own) in enumerate(zip(mates, scatter(after), strict=True)):
            expected, expected_state, expected_tail = alone[b]
            for tau in engine.heads:
                assert np.array_equal(row(outputs, place)[tau], expected[tau])
                assert np.array_equal(row(tails, place)[tau], expected_tail[tau])
            for name, values in own.items():
                assert np.array_equal(values, expected_state[name]), name
