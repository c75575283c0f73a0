"""Outputs that nobody had examined passed silently."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nearfuture import audit


def features(frames: int = 24) -> Tensor:
    return torch.randn(2, frames, 4, generator=torch.Generator().manual_seed(0))


BOTH = nn.GRU(4, 3, batch_first=True, bidirectional=True)


def two(x: Tensor) -> tuple[Tensor, Tensor]:
    return x.cumsum(1), BOTH(x)[0]


def pooled_first(x: Tensor) -> dict[str, Tensor]:
    return {"pooled": x.mean(1), "frames": x + F.pad(x, (0, 0, 0, 2))[:, 2:]}


def nested(x: Tensor) -> tuple[Tensor, dict[str, list[Tensor]]]:
    return x, {"hidden": [x.cumsum(1), x.flip(1)]}


def at_half_the_rate(x: Tensor) -> tuple[Tensor, Tensor]:
    return x, F.avg_pool1d(x.transpose(1, 2), 4, 2).transpose(1, 2)


@pytest.mark.parametrize(
    ("model", "name"),
    [(two, "1"), (pooled_first, "frames"), (nested, "1.hidden.1"), (at_half_the_rate, "1")],
)
def test_every_output_is_examined_by_name(model: Any, name: str) -> None:
    report = audit.model(model, features(), at_most=0)
    assert report.verdict == "broken"
    futures = [finding for finding in report.findings if finding.kind == "future"]
    assert [finding.evidence["name"] for finding in futures] == [name]
    assert f"output {name!r}" in futures[0].message


def test_an_output_that_was_chosen_is_the_only_one() -> None:
    assert audit.model(two, features(), at_most=0, output=0).verdict == "holds"
    assert audit.model(pooled_first, features(), at_most=2, output="frames").verdict == "holds"


def test_outputs_that_hold_are_listed() -> None:
    def causal(x: Tensor) -> dict[str, Any]:
        return {"scores": x.cumsum(1), "hidden": (x, 2 * x), "state": x[:, -1], "count": 3}

    report = audit.model(causal, features(), at_most=0)
    assert report.verdict == "holds"
    assert "the lookahead of outputs 'hidden.0', 'hidden.1'" in report.checked
    assert any("'state'" in note and "whole sequence" in note for note in report.notes)


@pytest.mark.parametrize("rnn", [nn.GRU, nn.LSTM])
def test_the_last_state_of_a_recurrent_layer_is_no_frame(rnn: Any) -> None:
    report = audit.model(rnn(4, 4, 2, batch_first=True), features(), at_most=0)
    assert report.verdict == "holds"


def test_an_output_that_mixes_rows_is_found() -> None:
    def mixes(x: Tensor) -> tuple[Tensor, Tensor]:
        return x, x - x.mean(0, keepdim=True)

    report = audit.model(mixes, features())
    (finding,) = report.findings
    assert (finding.kind, finding.evidence["name"]) == ("batch", "1")


def test_an_output_that_cannot_be_read_is_undecided() -> None:
    def packed(x: Tensor) -> tuple[Tensor, Any]:
        return x, nn.utils.rnn.pack_sequence(list(x))

    report = audit.model(packed, features(), at_most=0)
    assert report.verdict == "undecided"
    assert "PackedSequence" in report.findings[0].message


def test_a_finding_that_all_outputs_share_is_one() -> None:
    def both(x: Tensor) -> dict[str, Tensor]:
        y = BOTH(x)[0]
        return {"scores": y, "hidden": y + 1}

    report = audit.model(both, features(), at_most=0)
    assert [finding.kind for finding in report.findings] == ["future"]
    assert any("outputs 'hidden' too" in note for note in report.notes)
