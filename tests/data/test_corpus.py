"""Manifests and where corpora lie."""

from pathlib import Path

import numpy as np
import pytest
import soundfile

from nearfuture.data import Utterance, corpus_folder, load_audio, read_manifest
from nearfuture.error import NearfutureError
from tests.data.fixtures import tone, write_manifest


def manifest(folder: Path, content: str | bytes) -> Path:
    path = folder / "manifest.tsv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_a_manifest_is_read(tmp_path: Path) -> None:
    path = manifest(tmp_path, "speaker\tpath\ttranscript\na\tx/1.wav\tone two\nb\t2.wav\t\n")
    first, second = read_manifest(path)
    assert (first.path, first.transcript) == (tmp_path / "x/1.wav", "one two")
    assert dict(first.fields) == {"speaker": "a"}
    assert (second.transcript, dict(second.fields)) == ("", {"speaker": "b"})


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_bom_and_line_ends_do_not_matter(tmp_path: Path, mark: str, end: str) -> None:
    lines = ["path\ttranscript\tsplit", '1.wav\tsay "it\ttrain', "", "2.wav\t안녕\ttest"]
    first, second = read_manifest(manifest(tmp_path, mark + end.join(lines) + end))
    assert (first.path.name, first.transcript, first.fields["split"]) == (
        "1.wav",
        'say "it',
        "train",
    )
    assert (second.transcript, second.fields["split"]) == ("안녕", "test")


@pytest.mark.parametrize("character", ["\u2028", "\x85", "\x0b", "\x1c"])
def test_only_line_ends_end_a_line(tmp_path: Path, character: str) -> None:
    path = manifest(tmp_path, f"path\ttranscript\n1.wav\tone{character}two\n")
    assert [entry.transcript for entry in read_manifest(path)] == [f"one{character}two"]


def test_short_and_long_rows(tmp_path: Path) -> None:
    path = manifest(tmp_path, "path\ttranscript\tsplit\n1.wav\tone\n2.wav\ttwo\ttrain\tmore\n")
    first, second = read_manifest(path)
    assert dict(first.fields) == {"split": ""}
    assert dict(second.fields) == {"split": "train"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("path\ttext\n1.wav\tone\n", "columns path, text; it also needs transcript"),
        ("path,transcript\n1.wav,one\n", "needs path and transcript, tab-separated"),
        ("", r"columns \(none\)"),
        ("path\ttranscript\n\n1.wav\tone\n2.wav\n", "line 4: a row needs"),
        ("path\ttranscript\n\tone\n", "line 2: a row needs"),
        ("path\ttranscript\n1.wav\tü\n".encode("latin-1"), "cannot read the manifest"),
        ("path\ttranscript\n".encode("utf-16"), "cannot read the manifest"),
    ],
)
def test_a_manifest_that_is_none_is_refused(
    tmp_path: Path, content: str | bytes, message: str
) -> None:
    path = manifest(tmp_path, content)
    with pytest.raises(NearfutureError, match=message) as error:
        read_manifest(path)
    assert str(path) in str(error.value)


def test_no_manifest(tmp_path: Path) -> None:
    for path in (tmp_path / "none.tsv", tmp_path):
        with pytest.raises(NearfutureError, match="cannot read the manifest") as error:
            read_manifest(path)
        assert str(path) in str(error.value)


def test_a_header_alone_has_no_rows(tmp_path: Path) -> None:
    assert read_manifest(manifest(tmp_path, "path\ttranscript\n")) == []


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
def test_corpora_lie_beside_the_project_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unset: bool
) -> None:
    if unset:
        monkeypatch.delenv("NEARFUTURE_CORPORA", raising=False)
    else:
        monkeypatch.setenv("NEARFUTURE_CORPORA", "")
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    assert corpus_folder("tones") is None
    write_manifest(tmp_path / "shared/data/tones", [{"path": "1.wav", "transcript": "a"}])
    assert corpus_folder("tones") == Path("../shared/data/tones")


def test_audio_comes_at_the_rate_that_is_asked(tmp_path: Path) -> None:
    soundfile.write(tmp_path / "a.wav", tone(440, 0.5, 16000), 16000)
    samples = load_audio(tmp_path / "a.wav", 8000)
    assert (samples.size, samples.dtype) == (4000, np.float32)
    assert np.argmax(abs(np.fft.rfft(samples))) == 220
    with pytest.raises(NearfutureError, match=r"b\.wav"):
        load_audio(tmp_path / "b.wav", 8000)


def test_utterances_are_themselves() -> None:
    one = Utterance(name="a", samples=np.zeros(3, np.float32), text="a")
    twin = Utterance(name="a", samples=np.zeros(3, np.float32), text="a")
    assert one.speaker == ""
    assert one != twin  # and not an error about the truth of an array
    assert len({one, twin, one}) == 2
