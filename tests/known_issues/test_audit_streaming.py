"""Streaming could not be told its chunks, and one check that raised ended the whole audit."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from nearfuture import audit


def features(frames: int = 48) -> Tensor:
    return torch.randn(1, frames, 4, generator=torch.Generator().manual_seed(0))


GRU = nn.GRU(4, 4, batch_first=True)


def forward(x: Tensor) -> Tensor:
    return GRU(x)[0]


def blocks_of_eight(chunk: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
    """Raises for anything but whole blocks."""
    if chunk.shape[1] % 8:
        raise ValueError(f"a chunk of {chunk.shape[1]} frames is no whole number of blocks")
    return GRU(chunk, state)


def exactly_eight(chunk: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
    """Answers to any other size with something wrong."""
    y, state = GRU(chunk, state)
    return (y if chunk.shape[1] == 8 else y * 1.5), state


def first_of_five(chunk: Tensor, state: Any) -> tuple[Tensor, Any]:
    """Wants five frames first, and four after them."""
    if chunk.shape[1] != (5 if state is None else 4):
        raise ValueError(f"not {chunk.shape[1]}")
    return GRU(chunk, state)


def state_first(state: Tensor | None, chunk: Tensor) -> tuple[Tensor, Tensor]:
    return GRU(chunk, state)


@pytest.mark.parametrize(
    "options",
    [
        {"step": blocks_of_eight, "chunks": 8},
        {"step": blocks_of_eight, "chunks": range(8, 33, 8)},
        {"step": exactly_eight, "chunks": [8]},
        {"step": first_of_five, "chunks": 4, "first_chunk": 5},
        {"step": state_first},
    ],
)
def test_chunks_are_those_that_the_model_accepts(options: dict[str, Any]) -> None:
    report = audit.model(forward, features(), **options)
    assert report.verdict == "holds"
    assert "whether streaming in chunks equals one call" in report.checked


def test_a_fault_in_accepted_chunks_is_found() -> None:
    def forgets(chunk: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
        y, after = blocks_of_eight(chunk, state)
        return y, after * (chunk.shape[1] == 8)

    assert audit.model(forward, features(), step=forgets, chunks=8).verdict == "holds"
    report = audit.model(forward, features(), step=forgets, chunks=[8, 16])
    assert [(f.kind, f.severity) for f in report.findings] == [("streaming", "broken")]


@pytest.mark.parametrize("step", [blocks_of_eight, first_of_five])
def test_chunks_that_raise_leave_the_report_and_are_undecided(step: Any) -> None:
    report = audit.model(forward, features(), step=step)
    assert report.verdict == "undecided"
    assert report.lookahead == 0
    (finding,) = report.findings
    assert (finding.kind, finding.severity) == ("streaming", "undecided")
    assert "ValueError" in finding.message
    assert "`chunks`" in finding.message


def test_a_probe_that_the_model_refuses_leaves_the_report() -> None:
    def bounded(x: np.ndarray) -> np.ndarray:
        if np.abs(x).max() > 8:
            raise ValueError("values beyond 8")
        return np.cumsum(x, axis=1)

    report = audit.model(bounded, features().numpy(), at_most=0)
    assert report.verdict == "undecided"
    assert report.lookahead is None
    assert "values beyond 8" in report.findings[0].message


@pytest.mark.parametrize("chunks", [0, [], [8, 0]])
def test_sizes_that_are_none_are_refused(chunks: Any) -> None:
    from tests.errors import refuses

    with refuses("out_of_range", "chunks"):
        audit.model(forward, features(), step=GRU, chunks=chunks)
