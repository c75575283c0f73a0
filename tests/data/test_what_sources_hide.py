"""What a source hides is named as what it is: ids given twice, empty cells, pointers, links."""

import unicodedata
from pathlib import Path

import numpy as np
import pytest
import soundfile

from nearfuture.data import BucketingBatches, Source, check, read_source
from nearfuture.data.split import assign_splits, shared_speakers
from tests.data.sources import write_audio, write_text
from tests.errors import refuses

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 1234\n"
SECONDS = 0.5


def faults(source: Source) -> list[tuple[str, str, str]]:
    return [
        (fault.code, Path(fault.name).name, fault.reason.replace(str(source.path), "."))
        for fault in source.skipped
    ]


def texts(source: Source) -> dict[str, str]:
    return {item.path.name: item.text for item in source.cuts}


def kaldi(folder: Path, **files: str) -> Path:
    for name in ("a", "b", "c"):
        write_audio(folder / f"{name}.wav", SECONDS)
    write_text(folder / "wav.scp", files.pop("wav_scp", "a a.wav\nb b.wav\nc c.wav\n"))
    for name, text in files.items():
        write_text(folder / name, text)
    return folder


def test_an_id_given_twice_with_two_texts_has_none_in_kaldi(tmp_path: Path) -> None:
    source = read_source(kaldi(tmp_path, text="a one\nb two\nb three\nc four\nc four\n"))
    assert texts(source) == {"a.wav": "one", "c.wav": "four"}
    assert faults(source) == [
        (
            "listed twice",
            f"b of {tmp_path}".rpartition("/")[2],
            "line 3 of text says 'three', line 2 of text something else: keep one",
        ),
        (
            "listed twice",
            f"c of {tmp_path}".rpartition("/")[2],
            "line 5 of text repeats line 4 of text",
        ),
    ]


@pytest.mark.parametrize(
    ("files", "named"),
    [
        ({"wav_scp": "a a.wav\na b.wav\nc c.wav\n"}, "line 2 of wav.scp says 'b.wav'"),
        (
            {"segments": "a a 0 0.2\na a 0.2 0.4\nc c 0 0.5\n"},
            "line 2 of segments says 'a 0.2 0.4'",
        ),
    ],
)
def test_so_has_a_recording_or_a_segment(tmp_path: Path, files: dict, named: str) -> None:
    source = read_source(kaldi(tmp_path, text="a one\nc two\n", **files))
    assert texts(source) == {"c.wav": "two"}
    assert [
        one.reason.partition(",")[0] for one in source.skipped if one.code == "listed twice"
    ] == [named]


def test_a_speaker_given_twice_is_nobody(tmp_path: Path) -> None:
    folder = kaldi(tmp_path, text="a one\nb two\n", utt2spk="a anna\nb bert\nb cora\n")
    source = read_source(folder)
    assert [item.speaker for item in source.cuts] == ["anna", ""]
    assert "listed twice" in [fault.code for fault in source.skipped]


def test_a_recording_of_no_segment_is_named(tmp_path: Path) -> None:
    source = read_source(kaldi(tmp_path, text="u one\n", segments="u a 0 0.5\n"))
    assert [(fault.code, fault.reason) for fault in source.skipped] == [
        ("no transcript", "no segment is of it"),
        ("no transcript", "no segment is of it"),
    ]


def librispeech(folder: Path, lines: str) -> Path:
    for number in range(2):
        write_audio(folder / f"1-2-000{number}.flac", SECONDS, seed=number)
    write_text(folder / "1-2.trans.txt", lines)
    return folder


def test_an_id_given_twice_in_librispeech_has_no_text(tmp_path: Path) -> None:
    source = read_source(librispeech(tmp_path, "1-2-0000 ONE\n1-2-0001 TWO\n1-2-0000 THREE\n"))
    assert texts(source) == {"1-2-0001.flac": "two"}
    assert [(kind, reason) for kind, _, reason in faults(source)] == [
        (
            "listed twice",
            "line 3 of 1-2.trans.txt says 'THREE', line 1 of 1-2.trans.txt something else: keep "
            "one",
        )
    ]


def test_texts_without_recordings_and_recordings_without_texts_are_named(tmp_path: Path) -> None:
    source = read_source(librispeech(tmp_path, "1-2-0000 ONE\n1-2-0009 NINE\n"))
    assert texts(source) == {"1-2-0000.flac": "one"}
    assert faults(source) == [
        (
            "no transcript",
            "1-2-0001.flac",
            "there is no 1-2-0001.txt beside the recording and no line for it in 1-2.trans.txt",
        ),
        ("text without audio", "1-2-0009", "1-2.trans.txt has a text for it: no recording"),
    ]


@pytest.mark.parametrize("cell", ["nan", "NaN", "NULL", "None", "N/A", "#N/A", "<NA>"])
@pytest.mark.parametrize("form", ["table", "folder", "lines"])
def test_a_cell_of_nothing_is_no_transcript(tmp_path: Path, cell: str, form: str) -> None:
    write_audio(tmp_path / "a.wav", SECONDS)
    path = tmp_path
    if form == "table":
        path = write_text(tmp_path / "a.csv", f"path,text\na.wav,{cell}\n")
    elif form == "lines":
        path = write_text(
            tmp_path / "a.jsonl", f'{{"audio_filepath": "a.wav", "text": "{cell}"}}\n'
        )
    else:
        write_text(tmp_path / "a.txt", cell)
    source = read_source(path)
    assert source.cuts == ()
    assert [fault.code for fault in source.skipped] == ["empty transcript"]
    assert f"its transcript is {cell!r}, which programs write" in source.skipped[0].reason


@pytest.mark.parametrize("word", ["null", "none", "nan bread", "no"])
def test_words_that_look_like_nothing_are_words(tmp_path: Path, word: str) -> None:
    write_audio(tmp_path / "a.wav", SECONDS)
    path = write_text(tmp_path / "a.csv", f"path,text\na.wav,{word}\n")
    assert texts(read_source(path)) == {"a.wav": word}


def test_other_cells_of_nothing_tell_nothing(tmp_path: Path) -> None:
    write_audio(tmp_path / "a.wav", SECONDS)
    rows = "path,text,speaker,split\na.wav,one,nan,NULL\n"
    (item,) = read_source(write_text(tmp_path / "a.csv", rows)).cuts
    assert (item.speaker, item.split) == ("", "")
    source = read_source(write_text(tmp_path / "b.csv", "path,text\nnan,one\n"))
    assert [fault.reason for fault in source.skipped] == ["a row needs a path and a transcript"]


@pytest.mark.parametrize(("audio", "text"), [("NFC", "NFD"), ("NFD", "NFC")])
def test_a_text_belongs_to_a_recording_in_another_normal_form(
    tmp_path: Path, audio: str, text: str
) -> None:
    write_audio(tmp_path / f"{unicodedata.normalize(audio, '안녕')}.wav", SECONDS)
    write_text(tmp_path / f"{unicodedata.normalize(text, '안녕')}.txt", "hello")
    source = read_source(tmp_path)
    assert (list(texts(source).values()), source.skipped) == (["hello"], ())
    table = f"path\ttext\n{unicodedata.normalize(text, '안녕')}.wav\thello\n"
    source = read_source(write_text(tmp_path / "list.tsv", table))
    assert (list(texts(source).values()), source.skipped) == (["hello"], ())


def test_two_names_that_look_the_same_are_named(tmp_path: Path) -> None:
    for seed, form in enumerate(("NFC", "NFD")):
        name = unicodedata.normalize(form, "café")
        write_audio(tmp_path / f"{name}.wav", SECONDS, seed=seed)
        write_text(tmp_path / f"{name}.txt", form.lower())
    report = check(tmp_path)
    assert {Path(item.name).stem: item.text for item in report.cuts} == {
        unicodedata.normalize(form, "café"): form.lower() for form in ("NFC", "NFD")
    }
    (finding,) = report.issues
    assert (finding.kind, finding.wrong) == ("two names that look the same", False)


def test_a_git_lfs_pointer_is_one_wherever_it_lies(tmp_path: Path) -> None:
    write_text(tmp_path / "audio/a.wav", POINTER)
    write_text(tmp_path / "audio/a.txt", "one")
    write_audio(tmp_path / "audio/b.wav", SECONDS)
    write_text(tmp_path / "audio/b.txt", POINTER)
    report = check(tmp_path / "audio")
    assert sorted((f.kind, "Git LFS pointer" in f.examples[0][1]) for f in report.issues) == [
        ("Git LFS pointer", True),
        ("cannot be read", True),
    ]
    for name in ("list.tsv", "list.csv", "lines.jsonl", "cuts.jsonl.gz"):
        path = write_text(tmp_path / name, POINTER)
        with refuses("unsupported", "path", name, "git lfs pull"):
            read_source(path)
    write_text(tmp_path / "kaldi/wav.scp", POINTER)
    write_text(tmp_path / "kaldi/text", "a one\n")
    with refuses("unsupported", "path", "wav.scp", "git lfs pull"):
        read_source(tmp_path / "kaldi")


def people(folder: Path, *places: str) -> Path:
    for seed, place in enumerate(places):
        write_audio(folder / place / "a.wav", SECONDS, seed=seed)
        write_text(folder / place / "a.txt", "one")
    return folder


def test_folders_name_speakers_where_they_are_said_to(tmp_path: Path) -> None:
    folder = people(tmp_path, "train/anna/monday", "train/bert", "test/cora", ".")
    source = read_source(folder, speaker_folders=True)
    assert [(item.speaker, item.split) for item in source.cuts] == [
        ("", ""),
        ("cora", "test"),
        ("anna", "train"),
        ("bert", "train"),
    ]
    assert {item.speaker for item in read_source(folder).cuts} == {""}


def test_where_a_list_tells_folders_do_not(tmp_path: Path) -> None:
    people(tmp_path, "anna")
    path = write_text(tmp_path / "manifest.tsv", "path\ttranscript\nanna/a.wav\tone\n")
    for source in (path, tmp_path):
        with refuses("conflict", "speaker_folders", source):
            read_source(source, speaker_folders=True)


def test_a_split_at_random_says_whose_voices_are_on_both_sides(tmp_path: Path) -> None:
    for speaker in "ab":
        for number in range(4):
            write_audio(tmp_path / speaker / f"{number}.wav", SECONDS, seed=number)
            write_text(tmp_path / speaker / f"{number}.txt", "one")
    items = check(read_source(tmp_path, speaker_folders=True)).cuts
    said = shared_speakers(assign_splits(items, by="random", dev=0.3, test=0.3))
    assert said.startswith("split at random: 2 of 2 speakers are in more than one split")
    unknown = check(read_source(tmp_path)).cuts
    assert "does not name all speakers" in shared_speakers(assign_splits(unknown, by="random"))


def test_links_are_followed_once(tmp_path: Path) -> None:
    people(tmp_path / "elsewhere", "anna")
    people(tmp_path / "mine", "bert")
    (tmp_path / "mine/linked").symlink_to(tmp_path / "elsewhere/anna")
    (tmp_path / "mine/bert/loop").symlink_to(tmp_path / "mine")
    (tmp_path / "mine/gone.wav").symlink_to(tmp_path / "nowhere.wav")
    write_text(tmp_path / "mine/gone.txt", "two")
    source = read_source(tmp_path / "mine")
    assert sorted(item.path.parent.name for item in source.cuts) == ["bert", "linked"]
    assert [(kind, name) for kind, name, _ in faults(source)] == [("no such file", "gone.wav")]


def test_what_is_no_audio_is_named_as_what_it_is(tmp_path: Path) -> None:
    write_text(tmp_path / "empty.wav", b"")
    write_text(tmp_path / "page.wav", "<!DOCTYPE html><title>404 Not Found</title>")
    for name in ("empty", "page"):
        write_text(tmp_path / f"{name}.txt", "one")
    (finding,) = check(tmp_path).issues
    assert finding.kind == "cannot be read"
    said = {Path(name).name: reason for name, reason in finding.examples}
    assert "empty (0 bytes)" in said["empty.wav"]
    assert "<!DOCTYPE html>" in said["page.wav"]


def test_levels_that_are_no_sound_are_named(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    sound = (0.1 * rng.standard_normal(8000)).astype(np.float32)
    for name, samples in (
        ("good", sound),
        ("spike", np.where(np.arange(8000) == 4000, 1e20, sound)),
        ("integers", np.rint(sound * 32767)),
        ("nan", np.where(np.arange(8000) == 4000, np.nan, sound)),
    ):
        soundfile.write(tmp_path / f"{name}.wav", samples.astype(np.float32), 8000, subtype="FLOAT")
        write_text(tmp_path / f"{name}.txt", "one")
    source = read_source(tmp_path)
    report = check(source)
    assert [Path(item.name).stem for item in report.cuts] == ["good"]
    (finding,) = report.issues
    assert sorted(Path(name).stem for name, _ in finding.examples) == ["integers", "nan", "spike"]
    recordings = BucketingBatches(source.cuts, rate=8000)
    assert [Path(item.name).stem for item in recordings.cuts] == ["good"]
    assert [Path(one.name).stem for one in recordings.skipped] == ["integers", "nan", "spike"]


def test_silence_with_a_text_and_channels_that_cancel_are_named(tmp_path: Path) -> None:
    voice = (0.1 * np.random.default_rng(0).standard_normal(8000)).astype(np.float32)
    nothing = np.zeros_like(voice)
    for name, samples in (
        ("good", np.stack([voice, voice[::-1]], axis=1)),
        ("cancels", np.stack([voice, -voice], axis=1)),
        ("nearly", np.stack([voice, -0.95 * voice], axis=1)),
        ("dead", np.stack([nothing, voice], axis=1)),
        ("silent", nothing),
        ("dither", np.float32(3e-5) * np.sign(voice)),
    ):
        soundfile.write(tmp_path / f"{name}.wav", samples, 8000)
        write_text(tmp_path / f"{name}.txt", "one")
    source = read_source(tmp_path)
    found = {
        finding.kind: (finding.wrong, [Path(name).stem for name, _ in finding.examples])
        for finding in check(source).issues
    }
    assert found == {
        "silent": (True, ["dither", "silent"]),
        "channels that cancel each other": (False, ["cancels", "nearly"]),
        "silent channels": (False, ["dead"]),
    }
    for item in source.cuts:
        heard = np.abs(item.load(8000).samples).max()
        assert (heard > 0.1) == (item.path.stem not in ("silent", "dither"))
    batch = BucketingBatches(source.cuts, rate=8000).batch(0)
    assert sorted(Path(one.name).stem for one in batch.skipped) == ["dither", "silent"]
    assert "it is silent" in batch.skipped[0].reason


def test_a_silent_part_of_a_recording_is_named(tmp_path: Path) -> None:
    voice = 0.1 * np.random.default_rng(0).standard_normal(8000)
    soundfile.write(tmp_path / "a.wav", np.concatenate([voice, 0 * voice]), 8000)
    rows = "path,text,start,duration\na.wav,one,0,1\na.wav,two,1,1\n"
    (finding,) = check(write_text(tmp_path / "a.csv", rows)).issues
    assert finding.kind == "silent"
    assert [reason for _, reason in finding.examples] == [
        "it is silent: no sample is beyond 0.0001 of full scale, but its text is 'two'"
    ]
