"""What the lab is given says what the layer and the synthesiser say."""

import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

import nearfuture
from nearfuture.audio import read
from nearfuture.layers import GRU, Bidirectional
from recipes.compact import weights
from recipes.evidence.construction import LOOKAHEADS, SCHEDULES, decisions
from recipes.evidence.graphs import write_continuum
from recipes.evidence.tagger import KINDS, Tagger, build

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


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("word", ["bank", "gamsa"])
def test_the_graph_of_a_tagger_is_its_layers_with_its_weights(word: str, kind: str) -> None:
    path = FOLDER / f"tagger-{word}-{kind.replace(' ', '-')}.onnx"
    about = json.loads((FOLDER / f"tagger-{word}.json").read_text("utf-8"))
    tagger = Tagger(build(kind, len(about["vocabulary"])).eval(), about["vocabulary"])
    stored = {name: value.copy() for name, value in weights(onnx.load(path)).items()}
    with_weights_of(tagger, stored)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    for sentence in about["sentences"][:3]:
        expected = tagger.as_words_arrive(sentence["words"], sentence["target"])
        for end, value in enumerate(expected, sentence["target"] + 1):
            x, _ = tagger.encode([sentence["words"][:end]])
            p = session.run(None, {"words": x.numpy()})[0]
            assert p[0, sentence["target"]] == pytest.approx(value, abs=1e-5)


def with_weights_of(tagger: Tagger, stored: dict[str, np.ndarray]) -> None:
    """Give a tagger the weights of a graph, in torch's order of gates and of axes."""
    first, recurrent, *lookahead, last = tagger.layer.layers
    (bias,) = [value for name, value in stored.items() if name.endswith("module.bias")]
    matrices = {value.shape: value for value in stored.values() if value.ndim == 2}
    with torch.no_grad():
        first.module.weight.copy_(torch.from_numpy(matrices[first.module.weight.shape[::-1]].T))
        last.module.weight.copy_(torch.from_numpy(matrices[last.module.weight.shape[::-1]].T))
        last.module.bias.copy_(torch.from_numpy(bias))
        for direction, cell in enumerate(directions(recurrent)):
            biases = gates(stored["layer.layers.1.bias"][direction], 6)
            cell.weight_ih.copy_(gates(stored["layer.layers.1.weight"][direction], 3))
            cell.weight_hh.copy_(gates(stored["layer.layers.1.recurrence"][direction], 3))
            cell.bias_ih.copy_(biases[: len(biases) // 2])
            cell.bias_hh.copy_(biases[len(biases) // 2 :])
        for layer in lookahead:
            (rows,) = [v for v in stored.values() if v.squeeze().shape == layer.weights[0].shape]
            layer.weights[0].copy_(torch.from_numpy(rows.squeeze()))


def directions(layer: torch.nn.Module) -> list[GRU]:
    """The cells of a recurrent layer."""
    return [layer.ahead, layer.back] if isinstance(layer, Bidirectional) else [layer]  # type: ignore[list-item]


def gates(stacked: np.ndarray, count: int) -> torch.Tensor:
    """z, r, n of ONNX as r, z, n of torch; twice, for a pair of biases."""
    z_r_n = torch.from_numpy(stacked).chunk(count)
    return torch.cat(
        [z_r_n[at] for start in range(0, count, 3) for at in (start + 1, start, start + 2)]
    )


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
