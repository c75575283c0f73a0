"""A grammar searched in the log-probabilities of a model, recording by recording or live."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from numpy.typing import ArrayLike

from nearfuture.decoding import Automaton, Endpoint, Grammar, GrammarResult, GrammarSearch
from nearfuture.runtime.model import Model


def grammar_search(
    model: Model,
    automaton: Automaton,
    *,
    price: float | None = None,
    threshold: float | None = None,
    endpoint: Endpoint | None = None,
) -> GrammarSearch:
    """Return the search of a grammar in what a model computes.

    Args:
        model: any whose vocabulary can write some of the texts; the others are left out.
        automaton: of the texts.
        price: as of `GrammarSearch`; its default.
        threshold: as of `GrammarSearch`; its default.
        endpoint: as of `GrammarSearch`; its default.

    Raises:
        NearfutureError: if the model can write none of the texts, and for a price or a threshold
            out of range.

    >>> from nearfuture.runtime import load
    >>> search = grammar_search(load("digits"), Automaton.of(["one two", "three"]))
    >>> search.grammar.automaton.count, search.frame_ms
    (2, 40.0)
    """
    options = {"price": price, "threshold": threshold, "endpoint": endpoint}
    return GrammarSearch(
        grammar=Grammar.compile(automaton, model.manifest.vocabulary),
        frame_ms=model.manifest.frame_ms,
        centre_ms=model.manifest.centre_ms,
        **{name: value for name, value in options.items() if value is not None},  # type: ignore[arg-type]
    )


def search_blocks(
    model: Model,
    blocks: Iterable[ArrayLike],
    search: GrammarSearch,
    rate: int | None = None,
) -> Iterator[GrammarResult]:
    """Search a recording that comes in blocks; yield each utterance as it ends.

    The sizes of the blocks change nothing, and memory does not grow with the length of the
    recording.

    Args:
        model: that the search was made for.
        blocks: (n,) floating point in [-1, 1] or int16, one behind another.
        search: made by `grammar_search`.
        rate: samples per second of the blocks; by default the model's own.

    Raises:
        NearfutureError: for samples of another kind or not finite.
    """
    state = search.start()
    for log_probs in model.log_prob_blocks(blocks, rate):
        results, state = search.step(log_probs, state)
        yield from results
    yield from search.finish(state)
