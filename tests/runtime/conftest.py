"""Models that tests of the runtime share."""

import shutil
from pathlib import Path

import pytest

from nearfuture.export import quantize
from nearfuture.runtime.bundle import MODELS


@pytest.fixture(scope="session")
def int8_digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundled model with a twin in int8."""
    folder = shutil.copytree(MODELS / "digits", tmp_path_factory.mktemp("twins") / "digits")
    quantize(folder, ["int8"])
    return Path(folder)
