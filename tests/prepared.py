"""Bundles that are made once for all workers of a test run, or once for several processors.

`make processors` lets an emulated processor run what this one exported.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock

_FOLDER = "NEARFUTURE_TEST_BUNDLES"


def prepared(name: str, make: Callable[[Path], Path], factory: pytest.TempPathFactory) -> Path:
    """Make a bundle once; the other workers of the run wait for it. Tests leave it as it is.

    Args:
        name: of the folder.
        make: writes the bundle to a folder of this name, and returns the folder.
        factory: of folders that go with the session.
    """
    base = factory.getbasetemp()
    run = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    shared = Path(os.environ.get(_FOLDER, run))
    shared.mkdir(parents=True, exist_ok=True)
    folder, draft = shared / name, shared / "draft" / name
    with FileLock(shared / f"{name}.lock"):
        if not folder.exists():
            shutil.rmtree(draft, ignore_errors=True)  # of a worker that was stopped
            make(draft).rename(folder)
    return folder
