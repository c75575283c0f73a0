"""What the lab is given says what the layer and the synthesiser say."""

import json
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

import nearfuture
from nearfuture.audio import read
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


def test_the_recogniser_turns_around_when_it_hears_the_voice() -> None:
    model = nearfuture.load(FOLDER / "voicing")
    about = json.loads((FOLDER / "continuum" / "about.json").read_text("utf-8"))
    burst = round(about["burst_ms"] / model.manifest.frame_ms)

    def t_by_lookahead(onset: int) -> list[float]:
        samples = read(FOLDER / "continuum" / f"vot-{onset:03d}.wav").samples
        parts: list[dict[int, np.ndarray]] = []
        stream = model.stream(on_log_probs=parts.append)
        stream.accept(samples)
        stream.finish()
        heads = [np.concatenate([part[tau] for part in parts])[burst] for tau in range(7)]
        return [float(1 / (1 + np.exp(d - t))) for _, d, t in heads]

    early, late = t_by_lookahead(20), t_by_lookahead(70)
    assert [t > 0.5 for t in early] == [True, True, False, False, False, False, False]
    assert early[1] > early[0]  # wrong more firmly before it turns around
    assert min(late[3:]) > 0.99
    assert early[:2] == pytest.approx(late[:2], abs=0.01)  # the same sound so far
    assert [
        model.transcribe(read(FOLDER / "continuum" / f"vot-{onset:03d}.wav")).text
        for onset in (0, 20, 40, 100)
    ] == ["d", "d", "t", "t"]
