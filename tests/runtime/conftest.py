"""Models that tests of the runtime share."""

import shutil
from pathlib import Path

import pytest

from nearfuture.export import quantize
from nearfuture.runtime.bundle import MODELS
from tests.prepared import prepared


@pytest.fixture(scope="session")
def int8_digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundled model, also in int8."""

    def make(folder: Path) -> Path:
        quantize(shutil.copytree(MODELS / "digits", folder), ["int8"])
        return folder

    return prepared("digits", make, tmp_path_factory)
