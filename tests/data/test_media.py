"""BucketingBatches in containers are data like any other; without the extra they are named."""

import sys
from pathlib import Path

import av
import numpy as np
import pytest

from nearfuture.data import check, read_source


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with av.open(str(tmp_path / "call.m4a"), "w", format="ipod") as writer:
        stream = writer.add_stream("aac", rate=16_000, layout="mono")
        tone = np.sin(np.arange(16_000, dtype=np.float32) / 9)[None] / 2
        resampler = av.AudioResampler("fltp", "mono", 16_000, 1024)
        frame = av.AudioFrame.from_ndarray(tone, format="flt", layout="mono")
        frame.sample_rate, frame.pts = 16_000, 0
        for piece in [*resampler.resample(frame), *resampler.resample(None), None]:
            writer.mux(stream.encode(piece))
    (tmp_path / "call.txt").write_text("seven two")
    return tmp_path


def test_a_recording_in_a_container_is_checked_and_loaded(folder: Path) -> None:
    report = check(folder)
    assert [finding.kind for finding in report.issues if finding.wrong] == []
    (item,) = report.cuts
    assert item.duration_s == pytest.approx(1, abs=0.1)
    assert item.load(8000).samples.size == pytest.approx(8000, abs=800)


def test_without_the_extra_it_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "av", None)
    (finding,) = check(read_source(folder)).issues
    assert finding.kind == "cannot be read"
    assert "needs the extra media: pip install 'nearfuture[media]'" in finding.examples[0][1]
