"""Here the small models are exported, once for all tests."""

from pathlib import Path

import pytest

from nearfuture.model import Recognizer
from tests import bundles


@pytest.fixture(scope="session")
def bundle_folder(recognizer: Recognizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bundles.export(recognizer, "tiny", tmp_path_factory.mktemp("exported"))


@pytest.fixture(scope="session")
def twin_folder(twin: Recognizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bundles.export(twin, "tiny-bidirectional", tmp_path_factory.mktemp("exported"))
