"""Bundles that are made once a session, or once for several: on this processor, for others.

`make processors` lets a processor that is emulated hear what was exported on this one.
"""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

_FOLDER = "NEARFUTURE_TEST_BUNDLES"


def prepared(name: str, make: Callable[[Path], Path], factory: pytest.TempPathFactory) -> Path:
    """A bundle in a folder of its own; where the environment names one for all, made only once.

    Args:
        name: of the folder.
        make: writes the bundle there.
        factory: of folders that go with the session.
    """
    kept = os.environ.get(_FOLDER)
    if kept is None:
        return make(factory.mktemp("bundle") / name)
    folder = Path(kept) / name
    return folder if folder.exists() else make(folder)
