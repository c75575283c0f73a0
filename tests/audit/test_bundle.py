"""Our own bundles before the audit: the latency that they declare is the one that they have."""

from pathlib import Path

import numpy as np
import pytest

from nearfuture import NearfutureError, audit
from nearfuture.audit.adapters import BundleAdapter
from tests.errors import refuses


@pytest.mark.parametrize(
    ("head", "ms"),
    [
        *(
            pytest.param(head, ms, marks=pytest.mark.slow)
            for head, ms in [(0, 55), (4, 215), (8, 375)]
        ),
        (19, 815),
    ],
)
def test_every_head_keeps_what_it_declares_to_the_sample(head: int, ms: float) -> None:
    report = audit.model("digits", output=head)
    assert report.latency_ms == ms
    assert report.holds
    assert not report.lookahead_is_lower_bound
    assert f"whether the declared latency, {ms} ms, is kept" in report.checked


def test_the_budget_chooses_the_head() -> None:
    report = audit.model("digits", at_most_ms=400)
    assert (report.model, report.latency_ms, report.holds) == ("digits, lookahead 8", 375, True)
    broken = audit.model("digits", at_most_ms=50)
    assert (broken.latency_ms, broken.holds) == (55, False)


def test_a_bidirectional_bundle_waits_for_the_end() -> None:
    report = audit.model("digits-bidirectional")
    assert report.lookahead == float("inf")
    assert report.holds


def test_its_lookahead_alone() -> None:
    assert audit.lookahead("digits", None, output=4) == 215 * 8 - 1


def test_a_broken_promise_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    init = BundleAdapter.__init__

    def promises_less(self: BundleAdapter, *arguments: object) -> None:
        init(self, *arguments)  # type: ignore[arg-type]
        self.declared_ms = 54.9

    monkeypatch.setattr(BundleAdapter, "__init__", promises_less)
    report = audit.model("digits", output=0)
    assert [finding.kind for finding in report.findings] == ["latency"]
    assert "declares a latency of 54.9 ms, but needs 55 ms" in report.findings[0].message


def test_errors(tmp_path: Path) -> None:
    for output in (5, "logits"):
        with refuses("not_found", "output", "0, 4, 8, 19", repr(output)):
            audit.model("digits", output=output)
    with refuses("invalid", "lengths"):
        audit.model("digits", lengths=[16000])
    with refuses("invalid", "at_most", 8):
        audit.model("digits", at_most=8)
    with pytest.raises(NearfutureError):
        audit.model(tmp_path / "nothing")


def test_ones_own_recording_may_be_the_example() -> None:
    pcm = (0.1 * np.random.default_rng(1).standard_normal((1, 6000))).astype(np.float32)
    assert audit.model("digits", pcm, output=0).latency_ms == 55
