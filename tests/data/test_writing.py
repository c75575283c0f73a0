"""A corpus that was written is read again, by Lhotse alone and here; nothing is half-written."""

import shutil
from pathlib import Path

import lhotse
import numpy as np
import pytest

from nearfuture.data import check, read_source
from nearfuture.data.corpora import write_corpus, writing
from nearfuture.error import NearfutureError
from tests.data.sources import KOREAN, write_audio, write_hard_folder, write_text
from tests.errors import refuses


@pytest.fixture(scope="module")
def hard(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_hard_folder(tmp_path_factory.mktemp("import") / "hard")


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    write_audio(tmp_path / "in/stereo.wav", channels=2)
    rows = (
        "path,text,start,duration,speaker,split,age\nstereo.wav,one,0.5,1,anna,train,7\n"
        "stereo.wav,two,1.5,,bert,test,8\n"
    )
    return write_text(tmp_path / "in/parts.csv", rows)


@pytest.mark.parametrize("copy", [False, True])
def test_lhotse_alone_reads_it(hard: Path, tmp_path: Path, copy: bool) -> None:
    items = check(hard).cuts
    path = write_corpus(items, tmp_path / "out", root=hard, copy=copy)
    cuts = list(lhotse.CutSet.from_file(path))
    assert [cut.id for cut in cuts] == [item.path.relative_to(hard).as_posix() for item in items]
    for cut, item in zip(cuts, items, strict=True):
        assert cut.supervisions[0].text == item.text
        assert cut.sampling_rate == item.rate
        samples = cut.load_audio()
        assert np.allclose(samples.mean(axis=0), item.read().samples, atol=1e-6)
        inside = Path(cut.recording.sources[0].source).is_relative_to(tmp_path)
        assert inside is copy
    assert KOREAN in {cut.supervisions[0].text for cut in cuts}


def test_it_is_a_source_with_the_same_items(parts: Path, tmp_path: Path) -> None:
    before = check(parts)
    write_corpus(before.cuts, tmp_path / "out")
    after = read_source(tmp_path / "out")
    assert after.problems == ()
    for one, other in zip(before.cuts, after.cuts, strict=True):
        for name in ("text", "start_s", "duration_s", "rate", "channel", "speaker", "split"):
            assert getattr(one, name) == getattr(other, name), name
        assert dict(one.fields) == dict(other.fields)
        assert np.array_equal(one.load(8000).samples, other.load(8000).samples)
    assert check(after).seconds == before.seconds


def test_copies_move_with_their_folder(parts: Path, tmp_path: Path) -> None:
    items = check(parts).cuts
    write_corpus(items, tmp_path / "out", root=parts.parent, copy=True)
    assert [path.name for path in (tmp_path / "out/audio").rglob("*")] == ["stereo.wav"]
    (tmp_path / "out").rename(tmp_path / "moved")
    shutil.rmtree(parts.parent)
    source = read_source(tmp_path / "moved")
    assert [item.path for item in source.cuts] == [tmp_path / "moved/audio/stereo.wav"] * 2
    assert source.cuts[0].load(8000).samples.size == 8000


def test_files_of_one_name_are_copied_apart(tmp_path: Path) -> None:
    for number, folder in enumerate(("a", "b")):
        write_audio(tmp_path / folder / "1.wav", seed=number)
        write_text(tmp_path / folder / "1.txt", f"text {folder}")
    items = check(tmp_path).cuts
    write_corpus(items, tmp_path / "out", copy=True)  # without a root
    read = read_source(tmp_path / "out").cuts
    assert len({item.path for item in read}) == 2
    for one, other in zip(items, read, strict=True):
        assert np.array_equal(one.load(8000).samples, other.load(8000).samples)


def test_an_interrupt_leaves_what_was_there(
    hard: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = check(hard).cuts
    out = tmp_path / "out"

    def stop(done: int, total: int) -> None:
        if done == total // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_corpus(items, out, copy=True, progress=stop)
    assert not out.exists()
    before = write_corpus(items[:2], out).read_bytes()
    with pytest.raises(KeyboardInterrupt):
        write_corpus(items, out, progress=stop)
    assert [path.name for path in out.iterdir()] == ["cuts.jsonl.gz"]
    assert (out / "cuts.jsonl.gz").read_bytes() == before
    write_corpus(items, out)
    assert len(read_source(out).cuts) == len(items)


def test_copies_without_their_manifest_do_not_stay(
    parts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    items = check(parts).cuts
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", stop)
        with pytest.raises(KeyboardInterrupt):
            write_corpus(items, tmp_path / "out", copy=True)
    assert not (tmp_path / "out").exists()
    write_corpus(items, tmp_path / "out", copy=True)


def test_it_is_not_written_over_copies(parts: Path, tmp_path: Path) -> None:
    items = check(parts).cuts
    write_corpus(items, tmp_path / "out", copy=True)
    with refuses("conflict", "out", "audio"):
        write_corpus(items, tmp_path / "out", copy=True)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["audio", "cuts.jsonl.gz"]


def test_where_it_cannot_be_written(parts: Path, tmp_path: Path) -> None:
    items = check(parts).cuts
    with refuses("unavailable", "out", "parts.csv"):
        write_corpus(items, parts)
    with refuses("not_found", "cuts"):
        write_corpus([], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_without_lhotse_nothing_is_begun(
    parts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> None:
        raise NearfutureError("no lhotse")

    monkeypatch.setattr(writing, "import_lhotse", missing)
    with pytest.raises(NearfutureError, match="no lhotse"):
        write_corpus(check(parts).cuts, tmp_path / "out")
    assert not (tmp_path / "out").exists()
