"""Both presets of Deep Speech 2, narrow but whole, learn recordings; one streams what it learnt.

Whoever only learns which characters are frequent stays above 2 nats a character.
"""

import dataclasses
import math
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from nearfuture.budget import (
    RecognizerConfig,
    deep_speech_2_deployed,
    deep_speech_2_research,
)
from nearfuture.data import Utterance, load_utterances, read_source
from nearfuture.laws.stream import streamed, whole
from nearfuture.layers import Bidirectional, SequenceBatchNorm
from nearfuture.model import Recognizer
from nearfuture.runtime.bundle import MODELS
from nearfuture.training import Trainer
from nearfuture.training.local_batch import pad
from recipes.digits import symbols
from tests.laws.cuts import random_partition
from tests.training.settings import plain, training_options
from tests.training.tones import Listed

OPTIONS = training_options(steps=60, learning_rate=1e-2, warmup=5)
PRESETS: dict[str, Callable[..., RecognizerConfig]] = {
    "deployed": deep_speech_2_deployed,
    "research": deep_speech_2_research,
}


def narrow(preset: str) -> RecognizerConfig:
    """The same structure with fewer layers and channels, for telephone audio."""
    config = PRESETS[preset](symbols=symbols())
    shapes = tuple(dataclasses.replace(shape, channels=4) for shape in config.convolutions)
    return config.replace(rate=8000, convolutions=shapes, hidden=48, layers=2)


@pytest.fixture(scope="module")
def clips() -> list[Utterance]:
    """The shorter half of the committed samples."""
    manifest = MODELS.parent / "samples" / "manifest.tsv"
    every, _ = load_utterances(read_source(manifest).cuts, 8000)
    return sorted(every, key=lambda clip: len(clip.samples))[:4]


def trained(
    preset: str, utterances: list[Utterance], folder: Path
) -> tuple[Recognizer, list[float]]:
    torch.manual_seed(0)
    trainer = Trainer(Recognizer(narrow(preset)), plain(Listed(utterances)), OPTIONS, folder)
    losses: list[float] = []
    assert trainer.run(lambda progress: losses.append(progress.loss))
    return trainer.model.eval(), losses


def assert_learnt(model: Recognizer, losses: list[float]) -> None:
    assert all(map(math.isfinite, losses))
    assert np.mean(losses[-5:]) < 1.0 < 2.0 < np.mean(losses[:10])
    norms = [module for module in model.modules() if isinstance(module, SequenceBatchNorm)]
    assert len(norms) == 2 + 2
    for norm in norms:
        assert bool((norm.running_mean.abs() > 1e-3).any())
        assert bool(((norm.running_var - 1).abs() > 1e-2).any())


@pytest.mark.slow  # tests/model streams it, tests/training/test_trainer learns
def test_the_deployed_preset_learns_and_streams(clips: list[Utterance], tmp_path: Path) -> None:
    model, losses = trained("deployed", clips, tmp_path)
    assert_learnt(model, losses)
    layer = model.double().at(19)
    pcm, lengths = pad(clips)
    pcm, rows = pcm.double(), [*lengths.tolist()[:3], 0]
    expected = whole(layer, pcm, rows)
    assert [len(row) for row in expected] == [layer.field.total(n) for n in rows]
    for cut in ((tuple(rows),), random_partition(rows, random.Random(0))):
        for got, row in zip(streamed(layer, pcm, cut), expected, strict=True):
            torch.testing.assert_close(got, row, rtol=0, atol=1e-10)


@pytest.mark.slow
def test_the_research_preset_learns(clips: list[Utterance], tmp_path: Path) -> None:
    model, losses = trained("research", clips, tmp_path)
    assert_learnt(model, losses)
    recurrent = [layer for layer in model.encoder if isinstance(layer, Bidirectional)]
    assert all(layer.ahead.weight_ih is layer.back.weight_ih for layer in recurrent)
    assert all(layer.ahead.norm is layer.back.norm for layer in recurrent)
