"""Each kind of model is exported once for all tests, and all workers."""

import dataclasses
from pathlib import Path

import pytest
import torch

from nearfuture.budget import RecognizerConfig, deep_speech_2_deployed, small_conformer
from nearfuture.export import ModelCard, export_bundle
from nearfuture.layers import SequenceBatchNorm
from nearfuture.model import Recognizer
from tests import bundles
from tests.prepared import prepared
from tests.processor import OFFERED


@pytest.fixture(scope="session")
def bundle_folder(recognizer: Recognizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    def make(folder: Path) -> Path:
        return bundles.export(recognizer, folder.name, folder.parent)

    return prepared("tiny", make, tmp_path_factory)


@pytest.fixture(scope="session")
def twin_folder(twin: Recognizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    def make(folder: Path) -> Path:
        return bundles.export(twin, folder.name, folder.parent)

    return prepared("tiny-bidirectional", make, tmp_path_factory)


def settled(
    config: RecognizerConfig, *, hidden: int = 8, layers: int = 1, channels: int = 2
) -> Recognizer:
    """A narrow model whose batch norms have seen some noise."""
    torch.manual_seed(0)
    shapes = tuple(dataclasses.replace(shape, channels=channels) for shape in config.convolutions)
    model = Recognizer(config.replace(rate=8000, convolutions=shapes, hidden=hidden, layers=layers))
    features, n = model.features(0.1 * torch.randn(2, 8000, 1), torch.tensor([8000, 5000]))
    model.features.fit(features[0])
    for _ in range(5):
        model(2 * torch.randn_like(features) + 1, n)
    norms = [module for module in model.modules() if isinstance(module, SequenceBatchNorm)]
    assert all(bool((norm.running_var != 1).all()) for norm in norms)
    return model.eval()


@pytest.fixture(scope="session")
def deep_speech_2() -> Recognizer:
    """The deployed model, as small as its large products and convolutions allow."""
    config = deep_speech_2_deployed(symbols=tuple("abc")).replace(heads=(3,))
    return settled(config, hidden=144, layers=2, channels=16)


@pytest.fixture(scope="session")
def deep_speech_2_folder(
    deep_speech_2: Recognizer, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Its bundle, also in low precision; its finish runs the cells several times."""

    def make(folder: Path) -> Path:
        card = ModelCard(name="deep speech 2")
        return export_bundle(deep_speech_2, folder, card, trainable=True, precisions=OFFERED)

    return prepared("deep-speech-2", make, tmp_path_factory)


@pytest.fixture(scope="session")
def attention() -> Recognizer:
    """A Conformer in chunks of two frames, as small as its large products allow."""
    torch.manual_seed(0)
    config = small_conformer(symbols=tuple("abc")).replace(
        hidden=80,
        layers=1,
        attention_heads=2,
        chunk=2,
        left_chunks=2,
        right_context=1,
        kernel=3,
        expansion=1,
        heads=(0, 3),
    )
    return Recognizer(config).eval()


@pytest.fixture(scope="session")
def attention_folder(attention: Recognizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its bundle, also in low precision."""

    def make(folder: Path) -> Path:
        return export_bundle(attention, folder, ModelCard(name="attention"), precisions=OFFERED)

    return prepared("attention", make, tmp_path_factory)
