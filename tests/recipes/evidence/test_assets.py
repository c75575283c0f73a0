"""What the lab is given says what the layer and the synthesiser say."""

import json
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

import nearfuture
from recipes.evidence.construction import LOOKAHEADS, SCHEDULES, decisions
from recipes.evidence.graphs import write_continuum

FOLDER = Path(nearfuture.__file__).parent / "assets" / "lab" / "evidence"


def test_the_graph_of_the_construction_is_the_layer() -> None:
    session = onnxruntime.InferenceSession(
        FOLDER / "adding.onnx", providers=["CPUExecutionProvider"]
    )
    about = json.loads((FOLDER / "adding.json").read_text("utf-8"))
    assert about["lookaheads"] == list(LOOKAHEADS)
    for schedule in SCHEDULES:
        evidence = np.array([about["schedules"][schedule.name]], np.float32)
        (p,) = session.run(None, {"evidence": evidence})
        assert p.shape == (1, len(LOOKAHEADS), len(schedule.evidence))
        assert p[0, :, 0] == pytest.approx([each.t for each in decisions(schedule)], abs=1e-6)
        shorter = session.run(None, {"evidence": evidence[:, :2]})[0]
        assert shorter.shape == (1, len(LOOKAHEADS), 2)


def test_the_sounds_are_those_that_the_synthesiser_makes(tmp_path: Path) -> None:
    (path,) = write_continuum(tmp_path, [70])
    made, kept = (np.fromfile(each, "<i2") for each in (path, FOLDER / "continuum" / path.name))
    assert made == pytest.approx(kept, abs=1)  # the last digit may be another on other processors
    about = json.loads((FOLDER / "continuum" / "about.json").read_text("utf-8"))
    assert sorted(f"vot-{onset:03d}.wav" for onset in about["onsets_ms"]) == sorted(
        path.name for path in (FOLDER / "continuum").glob("*.wav")
    )
