"""Manifests and where corpora lie."""

from pathlib import Path

import numpy as np
import pytest

from nearfuture.data import Utterance, corpus_folder
from tests.data.fixtures import write_manifest


def test_corpora_are_found_by_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_manifest(tmp_path / "here/tones", [{"path": "1.wav", "transcript": "a"}])
    (tmp_path / "here/empty").mkdir()
    monkeypatch.setenv("NEARFUTURE_CORPORA", str(tmp_path / "here"))
    assert corpus_folder("tones") == tmp_path / "here/tones"
    assert corpus_folder("empty") is None
    assert corpus_folder("none") is None


@pytest.mark.parametrize("unset", [True, False])
def test_without_a_folder_there_are_no_corpora(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unset: bool
) -> None:
    if unset:
        monkeypatch.delenv("NEARFUTURE_CORPORA", raising=False)
    else:
        monkeypatch.setenv("NEARFUTURE_CORPORA", "")
    write_manifest(tmp_path / "tones", [{"path": "1.wav", "transcript": "a"}])
    monkeypatch.chdir(tmp_path)
    assert corpus_folder("tones") is None
    assert corpus_folder("tones", tmp_path) == tmp_path / "tones"


def test_utterances_are_themselves() -> None:
    one = Utterance(name="a", samples=np.zeros(3, np.float32), text="a")
    twin = Utterance(name="a", samples=np.zeros(3, np.float32), text="a")
    assert one.speaker == ""
    assert one != twin  # and not an error about the truth of an array
    assert len({one, twin, one}) == 2
