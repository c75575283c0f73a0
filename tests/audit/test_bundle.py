"""Our own bundles before the audit: the latency that they declare is the one that they have."""

from pathlib import Path

import numpy as np
import pytest

from nearfuture import NearfutureError, audit
from nearfuture.audit.bundle import BundleTarget


@pytest.mark.parametrize(("head", "ms"), [(0, 55), (4, 215), (8, 375), (19, 815)])
def test_every_head_keeps_what_it_declares_to_the_sample(head: int, ms: float) -> None:
    report = audit.model("digits", output=head)
    assert report.latency_ms == ms
    assert report.holds
    assert not report.fades_ahead
    assert f"whether the latency it declares, {ms} ms, is kept" in report.checked


def test_the_budget_chooses_the_head() -> None:
    report = audit.model("digits", at_most_ms=400)
    assert (report.target, report.latency_ms, report.holds) == ("digits, lookahead 8", 375, True)
    broken = audit.model("digits", at_most_ms=50)
    assert (broken.latency_ms, broken.holds) == (55, False)


def test_a_bidirectional_bundle_waits_for_the_end() -> None:
    report = audit.model("digits-bidirectional")
    assert report.lookahead == float("inf")
    assert report.holds


def test_its_lookahead_alone() -> None:
    assert audit.lookahead("digits", None, output=4) == 215 * 8 - 1


def test_a_broken_promise_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    init = BundleTarget.__init__

    def promises_less(self: BundleTarget, *arguments: object) -> None:
        init(self, *arguments)  # type: ignore[arg-type]
        self.declared_ms = 54.9

    monkeypatch.setattr(BundleTarget, "__init__", promises_less)
    report = audit.model("digits", output=0)
    assert [finding.kind for finding in report.findings] == ["latency"]
    assert "declares a latency of 54.9 ms, but needs 55 ms" in report.findings[0].message


def test_errors(tmp_path: Path) -> None:
    with pytest.raises(NearfutureError, match="0, 4, 8, 19 frames, not 5"):
        audit.model("digits", output=5)
    with pytest.raises(NearfutureError, match="in frames, not 'logits'"):
        audit.model("digits", output="logits")
    with pytest.raises(NearfutureError, match="told no lengths"):
        audit.model("digits", lengths=[16000])
    with pytest.raises(NearfutureError, match="at_most_ms"):
        audit.model("digits", at_most=8)
    with pytest.raises(NearfutureError):
        audit.model(tmp_path / "nothing")


def test_ones_own_recording_may_be_the_example() -> None:
    pcm = (0.1 * np.random.default_rng(1).standard_normal((1, 6000))).astype(np.float32)
    assert audit.model("digits", pcm, output=0).latency_ms == 55
