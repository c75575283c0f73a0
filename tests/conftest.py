"""Settings that all tests share, models exported once for all, and the recordings some need."""

from pathlib import Path

import pytest
import torch
from hypothesis import settings

from nearfuture.data import DigitRecordings, corpus_folder
from nearfuture.runtime import Model, load
from nearfuture.speech import Recognizer
from tests.waveform import tiny_model

settings.register_profile("nearfuture", derandomize=True, deadline=None)
settings.load_profile("nearfuture")
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _fixed_seed() -> None:
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def fsdd() -> DigitRecordings:
    """The Free Spoken Digit Dataset, where it is at hand."""
    if corpus_folder("fsdd") is None:
        pytest.skip("needs the corpus 'fsdd' under NEARFUTURE_CORPORA")
    return DigitRecordings.load()


@pytest.fixture(scope="session")
def recognizer() -> Recognizer:
    return tiny_model()


@pytest.fixture(scope="session")
def twin() -> Recognizer:
    return tiny_model(bidirectional=True)


@pytest.fixture(scope="session")
def bundle_folder(recognizer: Recognizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from nearfuture.export import export_bundle

    return export_bundle(
        recognizer,
        tmp_path_factory.mktemp("bundle") / "tiny",
        name="tiny",
        description="Random weights, for tests.",
        training={"data": [], "seed": 0},
        trainable=True,
    )


@pytest.fixture(scope="session")
def twin_folder(twin: Recognizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from nearfuture.export import export_bundle

    return export_bundle(
        twin,
        tmp_path_factory.mktemp("bundle") / "tiny-bidirectional",
        name="tiny-bidirectional",
        description="Random weights, for tests.",
        training={"data": [], "seed": 0},
    )


@pytest.fixture(scope="session")
def model(bundle_folder: Path) -> Model:
    return load(bundle_folder)


@pytest.fixture(scope="session")
def offline_model(twin_folder: Path) -> Model:
    return load(twin_folder)
