"""What tests of trainings share."""

from pathlib import Path

import pytest


@pytest.fixture
def no_corpora(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No noises and rooms, which take seconds to load and change what is heard."""
    monkeypatch.setenv("NEARFUTURE_CORPORA", str(tmp_path))
