"""Settings and small models that all tests share, and the recordings that some need."""

import gc
import os
from pathlib import Path

import pytest
import torch
from hypothesis import settings

from nearfuture.data import corpus_folder
from nearfuture.layers.random import manual_seed
from nearfuture.model import Recognizer
from nearfuture.runtime import Model, load
from recipes.digits import DigitRecordings
from tests import bundles

settings.register_profile("nearfuture", derandomize=True, deadline=None)
settings.load_profile("nearfuture")
torch.set_num_threads(1)
CORPORA = Path(__file__).parents[2] / "shared" / "data"  # beside the project, where it is
if CORPORA.is_dir():
    os.environ.setdefault("NEARFUTURE_CORPORA", str(CORPORA))


gc.disable()  # while millions of objects are loaded that stay


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """Let the collector look only at what tests make: not at libraries, over and over."""
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def _fixed_seed() -> None:
    manual_seed(0)


@pytest.fixture(scope="session")
def fsdd() -> DigitRecordings:
    """The Free Spoken Digit Dataset, where it is at hand."""
    if corpus_folder("fsdd") is None:
        pytest.skip("needs the corpus 'fsdd' under NEARFUTURE_CORPORA")
    return DigitRecordings.load()


@pytest.fixture(scope="session")
def recognizer() -> Recognizer:
    return bundles.trained("tiny")


@pytest.fixture(scope="session")
def twin() -> Recognizer:
    return bundles.trained("tiny-bidirectional")


@pytest.fixture(scope="session")
def bundle_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What was once exported from `recognizer`; where exporting is tested, what is now."""
    return bundles.committed("tiny", tmp_path_factory.mktemp("bundle"))


@pytest.fixture(scope="session")
def twin_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bundles.committed("tiny-bidirectional", tmp_path_factory.mktemp("bundle"))


@pytest.fixture(scope="session")
def model(bundle_folder: Path) -> Model:
    return load(bundle_folder)


@pytest.fixture(scope="session")
def offline_model(twin_folder: Path) -> Model:
    return load(twin_folder)
