"""Every model of the gallery gets the verdict that its structure implies, here and as ONNX."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn

from nearfuture import audit
from tests.audit.gallery import GALLERY, Case, Encoder, features, relu_rnn_backwards, unmasked
from tests.errors import refuses

# An export takes seconds: a quick one stands for the others.
QUICK = ("padded on the left",)


def _exported() -> list[Any]:
    cases = [case for case in GALLERY if case.node is not None]
    slow = [not any(part in case.name for part in QUICK) for case in cases]
    return [
        pytest.param(case, id=case.name, marks=[pytest.mark.slow] * is_slow)
        for case, is_slow in zip(cases, slow, strict=True)
    ]


@pytest.mark.parametrize("case", GALLERY, ids=lambda case: case.name)
def test_the_verdict_is_right(case: Case, tmp_path: Path) -> None:
    assert case.faults(case.report(tmp_path)) == []


# One in six stands for the others, whose lookahead the test above has seen beside the matrix.
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case.name, marks=[pytest.mark.slow] * (number % 6 > 0))
        for number, case in enumerate(GALLERY)
    ],
)
def test_the_lookahead_alone_is_the_same(case: Case, tmp_path: Path) -> None:
    report = replace(case, options={**case.options, "matrix": False}).report(tmp_path)
    assert report.matrix is None
    assert report.lookahead == case.lookahead
    assert {f.kind for f in report.findings if f.severity == "broken"} == set(case.breaks)


@pytest.mark.parametrize("case", _exported())
def test_the_exported_graph_gets_the_same_verdict(case: Case, tmp_path: Path) -> None:
    assert case.faults(case.graph_report(tmp_path), graph=True) == []


def test_a_wrong_verdict_is_noticed(tmp_path: Path) -> None:
    case = next(case for case in GALLERY if case.name == "nn.GroupNorm")
    report = case.report(tmp_path)
    wrong = {"lookahead": 0, "lookback": 3, "breaks": (), "tells": ("state",), "culprit": None}
    for what, value in wrong.items():
        faults = replace(case, **{what: value}).faults(report)
        assert [fault.split(":")[0] for fault in faults] == [what]


def test_a_relu_rnn_of_onnx_runtime_drops_nan() -> None:
    """Its dependence on the future shows in values only, so the audit probes with values."""
    model = relu_rnn_backwards().SerializeToString()
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    x = features().numpy()
    poisoned, changed = x.copy(), x.copy()
    poisoned[:, -1] = np.nan
    changed[:, -1] += 1
    (y,), (after_nan,), (after_one,) = (session.run(None, {"x": v}) for v in (x, poisoned, changed))
    assert np.isfinite(after_nan).all()
    assert (y != after_one).any(axis=-1).all()


@pytest.mark.parametrize(
    ("mask", "padding"),
    [
        pytest.param(lambda frames: torch.ones(frames, frames).tril().bool(), None, id="causal"),
        pytest.param(unmasked, "mask", id="padding"),
    ],
)
def test_a_mask_that_hides_everything_is_refused_by_name(mask: Any, padding: Any) -> None:
    """True means "ignore" here. Inverted, some frame attends to none, and attention is NaN."""
    form = {} if padding is None else {"takes": padding, "keyword": "padding"}
    with refuses("invalid", None, "NaN", "mask"):
        audit.model(Encoder(mask), features(rows=2), [12, 8] if padding else None, **form)


def test_lengths_for_a_model_that_takes_none_are_refused_by_name() -> None:
    with refuses("invalid", "takes"):
        audit.model(nn.LSTM(4, 6, batch_first=True), features(rows=2), [12, 8])
