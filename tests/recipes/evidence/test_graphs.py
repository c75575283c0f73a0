"""What is exported says what the layers say, without torch."""

import itertools
import json
import warnings
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import soundfile
import torch

from recipes.evidence import graphs
from recipes.evidence.construction import LOOKAHEADS, SCHEDULES, decisions
from recipes.evidence.graphs import (
    CONTINUUM_MS,
    export_construction,
    export_taggers,
    write_continuum,
)
from recipes.evidence.sentences import ambiguous_word
from recipes.evidence.tagger import Tagger, build


def run(path: Path, x: np.ndarray) -> np.ndarray:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (p,) = session.run(None, {session.get_inputs()[0].name: x})
    return np.asarray(p)


def test_the_sounds_of_the_continuum_are_small_and_differ_in_the_onset_alone(
    tmp_path: Path,
) -> None:
    paths = write_continuum(tmp_path)
    assert [path.name for path in paths][:2] == ["vot-000.wav", "vot-010.wav"]
    assert len(paths) == len(CONTINUUM_MS)
    assert sum(path.stat().st_size for path in paths) < 100_000
    about = json.loads((tmp_path / "about.json").read_text("utf-8"))
    burst = 8 * about["burst_ms"]
    sounds = [soundfile.read(path)[0] for path in paths]
    for onset, (one, other) in zip(CONTINUUM_MS[1:], itertools.pairwise(sounds), strict=False):
        same = burst + 8 * (onset - 11)
        assert np.std(one[:same] - other[:same]) < 0.15 * np.std(one[:same]), onset


@pytest.mark.slow
def test_the_graph_of_the_construction_is_the_layer(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        export_construction(tmp_path)
    for schedule in SCHEDULES:
        p = run(tmp_path / "adding.onnx", np.array([schedule.evidence], np.float32))
        expected = [each.t for each in decisions(schedule)]
        assert p.shape == (1, len(LOOKAHEADS), len(schedule.evidence))
        assert p[0, :, 0] == pytest.approx(expected, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["lookahead 2", "both ways"])
def test_the_graph_of_a_tagger_is_the_tagger_for_any_number_of_words(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str
) -> None:
    monkeypatch.setattr(graphs, "compact", lambda model: None)  # the same weights to the last bit
    word = ambiguous_word("bank")
    torch.manual_seed(0)
    tagger = Tagger(build(kind, len(word.vocabulary)).eval(), word.vocabulary)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        export_taggers(word, {kind: tagger}, tmp_path)
    about = json.loads((tmp_path / "tagger-bank.json").read_text("utf-8"))
    assert tuple(about["vocabulary"]) == word.vocabulary
    for sentence in about["sentences"][:3]:
        words, target = sentence["words"], sentence["target"]
        expected = tagger.as_words_arrive(words, target)
        for end, value in zip(range(target + 1, len(words) + 1), expected, strict=True):
            x, _ = tagger.encode([words[:end]])
            p = run(tmp_path / f"tagger-bank-{kind.replace(' ', '-')}.onnx", x.numpy())
            assert p[0, target] == pytest.approx(value, abs=1e-5)
