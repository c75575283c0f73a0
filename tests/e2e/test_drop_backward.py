"""A26: train as you will stream. A direction cannot be taken away afterwards."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from nearfuture.runtime.bundle import MODELS
from tests.patience import PATIENCE_S

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "drop_backward.py"
SAMPLES = MODELS.parent / "samples" / "manifest.tsv"


@pytest.mark.slow
def test_without_its_backward_direction_a_bidirectional_model_collapses() -> None:
    done = subprocess.run(
        [sys.executable, str(BENCHMARK), "--manifest", str(SAMPLES)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    report = json.loads(done.stdout.splitlines()[-1])
    assert {"commit", "processor", "command"} <= report.keys()
    both, alone, *streaming = report["results"]
    assert (both["model"], alone["model"]) == ("both directions", "its forward direction alone")
    assert both["wer"] < 15
    assert alone["wer"] > 60
    assert alone["cer"] > 10 * both["cer"]
    # The model that was trained unidirectional keeps its word at every budget.
    assert len(streaming) == 4
    assert all(model["wer"] < 15 for model in streaming)
