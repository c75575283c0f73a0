"""Every form in which recordings come, and everything in them that cannot be used, by name."""

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

from nearfuture.data import Cut, corpus_folder, read_source
from nearfuture.error import NearfutureError
from tests.data.sources import (
    DECOMPOSED,
    KOREAN,
    write_audio,
    write_hard_folder,
    write_json_lines,
    write_text,
)
from tests.errors import refuses


def by_stem(path: Path) -> dict[str, object]:
    return {item.path.stem: item for item in read_source(path).cuts}


@pytest.fixture(scope="module")
def hard(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_hard_folder(tmp_path_factory.mktemp("source") / "hard")


# A folder of recordings and text files ------------------------------------------------------------


def test_a_folder_lists_what_can_be_used(hard: Path) -> None:
    source = read_source(hard)
    texts = {item.path.relative_to(hard).as_posix(): item.text for item in source.cuts}
    assert texts == {
        "cut.wav": "its end is missing",
        "korean.flac": KOREAN,
        "long.wav": "a whole minute",
        "noise.wav": "what is it",
        "rate16000.wav": "three seconds at 16000",
        "rate44100.wav": "three seconds at 44100",
        "rate8000.wav": "three seconds at 8000",
        "short.wav": "far too many words for it",
        "sub folder/stereo.wav": "both channels",
        "windows.ogg": "saved by notepad",
    }
    assert len({item.name for item in source.cuts}) == len(source.cuts)


def test_what_a_folder_cannot_use_is_named(hard: Path) -> None:
    faults = {Path(fault.name).name: fault for fault in read_source(hard).skipped}
    assert {name: fault.code for name, fault in faults.items()} == {
        "silent.wav": "empty transcript",
        "untold.wav": "no transcript",
        "latin.txt": "not UTF-8",
        "utf16.txt": "not UTF-8",
        "alone.txt": "text without audio",
    }
    assert "byte 0xf6 in line 1" in faults["latin.txt"].reason
    assert "UTF-16" in faults["utf16.txt"].reason
    assert "no untold.txt" in faults["untold.wav"].reason
    problems = read_source(hard).problems
    assert len(problems) == len(faults)
    assert f"{hard}/silent.wav: its transcript has no words" in problems


def test_samples_come_at_the_rate_of_the_model(hard: Path) -> None:
    for item in read_source(hard).cuts:
        if item.path.stem in ("cut", "noise"):
            continue
        samples = item.load(8000).samples
        expected = {"long": 60.0, "short": 0.5}.get(item.path.stem, 3.0)
        assert (samples.dtype, samples.ndim) == (np.float32, 1)
        assert abs(samples.size - 8000 * expected) <= 1, item.name


@pytest.mark.parametrize(("stem", "told"), [("cut", "was cut off"), ("noise", "is no audio")])
def test_broken_audio_is_named_when_it_is_loaded(hard: Path, stem: str, told: str) -> None:
    item = by_stem(hard)[stem]
    for use in (lambda: item.load(8000).samples, lambda: item.probed()):
        with pytest.raises(NearfutureError, match=rf"{stem}\.wav: {told}"):
            use()


def test_a_header_knows_rate_and_duration(hard: Path) -> None:
    item = by_stem(hard)["rate44100"].probed()
    assert (item.rate, item.duration_s) == (44100, 3.0)


def test_a_file_of_no_samples_is_named(tmp_path: Path) -> None:
    soundfile.write(tmp_path / "none.wav", np.zeros(0, np.float32), 8000)
    write_text(tmp_path / "none.txt", "nothing")
    (item,) = read_source(tmp_path).cuts
    for use in (lambda: item.load(8000).samples, lambda: item.probed()):
        with pytest.raises(NearfutureError, match=r"none\.wav: it holds no samples"):
            use()


def test_librispeech(tmp_path: Path) -> None:
    for split, name in (("train-clean-5", "84-121-0000"), ("dev-clean-2", "174-50-0001")):
        reader, chapter, _ = name.split("-")
        folder = tmp_path / "LibriSpeech" / split / reader / chapter
        write_audio(folder / f"{name}.flac")
        write_text(folder / f"{reader}-{chapter}.trans.txt", f"{name} GO DO YOU HEAR\n")
    write_text(tmp_path / "LibriSpeech/READERS.TXT", "about them")
    source = read_source(tmp_path)
    told = [(item.path.stem, item.text, item.speaker, item.split) for item in source.cuts]
    assert told == [
        ("174-50-0001", "go do you hear", "174", "dev"),
        ("84-121-0000", "go do you hear", "84", "train"),
    ]
    assert source.problems == ()


# Tables ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "header", "row"),
    [
        ("a.tsv", "path\ttranscript\tspeaker\tsplit", 'x/1.wav\tsay "it\tanna\tvalid'),
        ("a.csv", "file,text,speaker,split", 'x/1.wav,"say ""it",anna,dev'),
        ("a.csv", '"audio";"sentence";"client_id";"split"', 'x/1.wav;"say ""it";anna;dev'),
        ("a.txt", "Transcript|Path|Split|Speaker", "say it|x/1.wav|validation|anna"),
    ],
)
@pytest.mark.parametrize(("mark", "end"), [("", "\n"), ("\ufeff", "\r\n")])
def test_a_table(tmp_path: Path, name: str, header: str, row: str, mark: str, end: str) -> None:
    write_audio(tmp_path / "x/1.wav")
    (item,) = read_source(write_text(tmp_path / name, mark + header + end + row + end)).cuts
    assert (item.path, item.text) == (tmp_path / "x/1.wav", "say it")
    assert (item.speaker, item.split, item.duration_s) == ("anna", "dev", None)


def test_a_table_of_parts(tmp_path: Path) -> None:
    write_audio(tmp_path / "1.wav", 2.0)
    rows = "path,text,start,duration,age\n1.wav,one,,0.5,7\n1.wav,two,0.5,1.5,8\n1.wav,two,0.5,1,\n"
    source = read_source(write_text(tmp_path / "parts.csv", rows))
    assert [item.load(8000).samples.size for item in source.cuts] == [4000, 12000, 8000]
    assert [dict(item.fields) for item in source.cuts] == [{"age": "7"}, {"age": "8"}, {"age": ""}]
    assert len({item.name for item in source.cuts}) == 3
    whole = source.cuts[1].load(8000).samples
    assert np.array_equal(whole[:8000], source.cuts[2].load(8000).samples)


def test_a_table_of_parts_with_their_ends(tmp_path: Path) -> None:
    write_audio(tmp_path / "1.wav", 2.0)
    rows = "path,text,start,end\n1.wav,one,,0.5\n1.wav,two,0.5,2\n1.wav,two,1,0.5\n"
    source = read_source(write_text(tmp_path / "parts.csv", rows))
    assert [item.load(8000).samples.size for item in source.cuts] == [4000, 12000]
    assert "no part starts at 1.0 s and lasts -0.5 s" in source.problems[0]


@pytest.mark.parametrize("number", ["nan", "inf"])
def test_times_are_finite(tmp_path: Path, number: str) -> None:
    write_audio(tmp_path / "1.wav")
    rows = f"path,text,start\n1.wav,one,{number}\n"
    line = '{"audio_filepath": "1.wav", "text": "one", "offset": NUMBER}\n'
    named = {"nan": "NaN", "inf": "Infinity"}[number]
    for name, content in (("a.csv", rows), ("a.jsonl", line.replace("NUMBER", named))):
        source = read_source(write_text(tmp_path / name, content))
        assert not source.cuts
        assert f"no part starts at {number} s" in source.problems[0]


def test_a_text_that_was_not_put_in_quotes_is_not_cut(tmp_path: Path) -> None:
    write_audio(tmp_path / "1.wav")
    rows = "path,text\n1.wav,hello, world\n1.wav,hello\n"
    source = read_source(write_text(tmp_path / "a.csv", rows))
    assert [item.text for item in source.cuts] == ["hello"]
    assert "line 2: it has more cells than the first line (' world' is over)" in source.problems[0]


def test_a_row_that_cannot_be_used_is_named_by_its_line(tmp_path: Path) -> None:
    write_audio(tmp_path / "1.wav")
    rows = [
        "path\ttranscript\tstart\tduration",
        "1.wav\tone",
        "2.wav\ttwo",
        "1.wav",
        "1.wav\t[!]",
        "1.wav\tone\tsoon",
        "1.wav\tone\t-1",
        "1.wav\tone\t0\t0",
        ".\tone",
    ]
    path = write_text(tmp_path / "a.tsv", "\n".join(rows) + "\n")
    source = read_source(path)
    assert len(source.cuts) == 1
    assert [fault.code for fault in source.skipped] == [
        "no such file",
        "not usable",
        "empty transcript",
        "not usable",
        "not usable",
        "not usable",
        "no such file",
    ]
    assert source.problems[0] == f"{tmp_path}/2.wav: it is not there"
    assert source.problems[1].startswith(f"{path}, line 4: a row needs")
    assert "'[!]'" in source.problems[2]
    assert "line 6" in source.problems[3]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("path,words\n1.wav,one\n", "columns path, words; it also needs transcript"),
        ("1.wav\tone\n", "also needs path and transcript"),
        ("", r"columns \(none\)"),
        ("path,text\n1.wav,schön\n".encode("cp1252"), "not UTF-8 .byte 0xf6 in line 2.: .* iconv"),
        ("path,text\n".encode("utf-16"), "is UTF-16"),
        ('path,text\n1.wav,"one\n', "after line 1: unexpected end of data: is a quotation mark"),
    ],
)
def test_a_table_that_is_none_is_refused(tmp_path: Path, content: str | bytes, told: str) -> None:
    path = write_text(tmp_path / "a.csv", content)
    with pytest.raises(NearfutureError, match=told) as error:
        read_source(path)
    assert str(path) in str(error.value)


# NeMo --------------------------------------------------------------------------------------------


def test_nemo(tmp_path: Path) -> None:
    write_audio(tmp_path / "1.wav", 2.0)
    rows: list[dict[str, object]] = [
        {"audio_filepath": "1.wav", "text": DECOMPOSED, "duration": 2.0, "lang": "ko"},
        {"audio_filepath": str(tmp_path / "1.wav"), "text": "b", "offset": 0.5, "duration": 1},
        {"audio_filepath": "1.wav", "duration": 2.0},
        {"audio_filepath": "1.wav", "text": ""},
        {"audio_filepath": "2.wav", "text": "c"},
        {"audio_filepath": "1.wav", "text": "d", "duration": "2"},
        {"text": "e"},
    ]
    path = write_json_lines(tmp_path / "train.json", rows)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes() + b'{"broken": \n\n')
    source = read_source(path)
    assert [(item.text, item.start_s, item.duration_s) for item in source.cuts] == [
        (KOREAN, 0.0, 2.0),
        ("b", 0.5, 1.0),
    ]
    assert source.cuts[0].fields == {"lang": "ko"}
    assert source.cuts[1].load(16000).samples.size == 16000
    assert [fault.code for fault in source.skipped] == [
        "no transcript",
        "empty transcript",
        "no such file",
        "not usable",
        "not usable",
        "not usable",
    ]
    assert f"{path}, line 8: it is no JSON" in source.problems[-1]


def test_a_single_recording_is_no_list(tmp_path: Path) -> None:
    write_audio(tmp_path / "a.wav")
    with refuses("unsupported", "path", "a.wav"):
        read_source(tmp_path / "a.wav")


def test_a_json_array_is_told_apart_from_lines(tmp_path: Path) -> None:
    path = write_text(tmp_path / "a.json", '[{"audio_filepath": "a.wav", "text": "one"}]')
    with refuses("unsupported", "path", "one JSON object a line"):
        read_source(path)


# Kaldi -------------------------------------------------------------------------------------------


def write_kaldi(folder: Path, *, segments: bool) -> Path:
    write_audio(folder / "audio/call one.wav", 4.0)
    recordings = ["call audio/call one.wav", "piped sph2pipe -f wav x.sph |", "gone nowhere.wav"]
    write_text(folder / "wav.scp", "\n".join([*recordings, "mute nowhere.wav\n"]))
    if segments:
        parts = ("call 0.5 1.5", "call 2.0 -1", "other 0 1", "call 3 2", "piped 0 1", "call x 1")
        lines = "".join(f"u{n} {part}\n" for n, part in enumerate(parts, 1))
        write_text(folder / "segments", lines)
        write_text(folder / "text", "".join(f"u{n} words {n}\n" for n in range(1, 8)))
        write_text(folder / "utt2spk", "u1 anna\nu2 bert\n")
    else:
        write_text(folder / "text", "call Hello there\npiped One\ngone Two\nextra Three\n")
    return folder


def test_kaldi(tmp_path: Path) -> None:
    folder = write_kaldi(tmp_path / "train", segments=False)
    source = read_source(folder)
    (item,) = source.cuts
    assert (item.path, item.text, item.split) == (
        folder / "audio/call one.wav",
        "hello there",
        "train",
    )
    assert {fault.name.split()[0]: fault.code for fault in source.skipped} == {
        "piped": "not usable",
        "gone": "no such file",
        "mute": "no transcript",
        "extra": "text without audio",
    }
    (piped,) = (line for line in source.problems if line.startswith("piped"))
    assert "sph2pipe -f wav x.sph |" in piped
    assert "not run" in piped
    assert any("extra" in line and "no line in wav.scp" in line for line in source.problems)
    assert read_source(folder / "wav.scp").cuts == source.cuts


def test_kaldi_with_segments_and_splits(tmp_path: Path) -> None:
    write_kaldi(tmp_path / "train_960", segments=True)
    write_kaldi(tmp_path / "dev", segments=False)
    source = read_source(tmp_path)
    told = [(one.text, one.start_s, one.duration_s, one.speaker, one.split) for one in source.cuts]
    assert told == [
        ("hello there", 0.0, None, "", "dev"),
        ("words 1", 0.5, 1.0, "anna", "train"),
        ("words 2", 2.0, None, "bert", "train"),
    ]
    assert [item.load(8000).samples.size for item in source.cuts] == [32000, 8000, 16000]
    train = [line for line in source.problems if "train_960" in line]
    assert [line.split()[0] for line in train] == [
        "u3",
        "u4",
        "u5",
        "u6",
        "gone",
        "mute",
        "u7",
    ]
    assert "no line in segments" in train[-1]


def test_kaldi_without_texts(tmp_path: Path) -> None:
    write_text(tmp_path / "wav.scp", "a a.wav\n")
    with refuses("not_found", "path", "'text'"):
        read_source(tmp_path)


# Lhotse ------------------------------------------------------------------------------------------


def recording(path: Path, *, channels: int = 1, **more: object) -> dict[str, object]:
    source = {"type": "file", "channels": list(range(channels)), "source": str(path)}
    return {
        "id": path.stem,
        "sources": [source],
        "sampling_rate": 8000,
        "num_samples": 32000,
        "duration": 4.0,
        **more,
    }


def supervision(name: str, start: float, duration: float, text: str | None = "words") -> dict:
    told = {"id": name, "recording_id": "1", "start": start, "duration": duration, "channel": 0}
    return {**told, "speaker": "anna", **({} if text is None else {"text": text})}


def cut(name: str, its_recording: dict, supervisions: list[dict], **more: object) -> dict:
    told = {"id": name, "start": 1.0, "duration": 2.0, "channel": 0, "type": "MonoCut"}
    return {**told, "supervisions": supervisions, "recording": its_recording, **more}


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.gz"])
def test_cuts_of_lhotse(tmp_path: Path, ending: str) -> None:
    path = write_audio(tmp_path / "1.wav", 4.0)
    both = write_audio(tmp_path / "both.wav", 4.0, channels=2)
    here = recording(path)
    rows = [
        cut("whole", here, [supervision("s1", 0.0, 2.0, "Hello!")], custom={"split": "test"}),
        cut("two", here, [supervision("s2", -0.5, 1.0), supervision("s3", 1.5, 1.0)]),
        cut("relative", recording(Path("1.wav")), [supervision("s4", 0, 2)]),
        cut("right", recording(both, channels=2), [supervision("s5", 0, 2)], channel=1),
        cut(
            "stereo",
            recording(both, channels=2),
            [supervision("s6", 0, 2)],
            channel=[0, 1],
            type="MultiCut",
        ),
        cut("silent", here, []),
        cut("untold", here, [supervision("s7", 0, 2, None)]),
        cut(
            "fast",
            recording(path, transforms=[{"name": "Speed", "kwargs": {"factor": 1.1}}]),
            [supervision("s8", 0, 2)],
        ),
        cut(
            "piped",
            {**here, "sources": [{"type": "command", "channels": [0], "source": "cat"}]},
            [supervision("s9", 0, 2)],
        ),
        {"id": "mixed", "tracks": [], "type": "MixedCut"},
        {"id": "odd", "type": "MonoCut", "supervisions": []},
    ]
    source = read_source(write_json_lines(tmp_path / f"cuts_train{ending}", rows))
    told = {item.name: item for item in source.cuts}
    assert list(told) == ["whole", "two, s2", "two, s3", "relative", "right", "stereo"]
    parts = {name: (item.start_s, item.duration_s) for name, item in told.items()}
    assert parts == {
        "whole": (1.0, 2.0),
        "two, s2": (1.0, 0.5),
        "two, s3": (2.5, 0.5),
        "relative": (1.0, 2.0),
        "right": (1.0, 2.0),
        "stereo": (1.0, 2.0),
    }
    assert (told["whole"].text, told["whole"].speaker) == ("hello", "anna")
    assert (told["whole"].split, told["right"].split) == ("test", "train")
    assert (told["right"].channel, told["stereo"].channel) == (1, None)
    stereo, _ = soundfile.read(both, dtype="float32")
    assert np.array_equal(told["right"].load(8000).samples, stereo[8000:24000, 1])
    assert np.allclose(
        told["stereo"].load(8000).samples, stereo[8000:24000].mean(axis=1), atol=1e-7
    )
    assert [fault.code for fault in source.skipped] == [
        "no transcript",
        "no transcript",
        "not usable",
        "not usable",
        "not usable",
        "not usable",
    ]
    reasons = "\n".join(source.problems)
    for word in ("Speed", "no file but a command", "MixedCut", "line 11"):
        assert word in reasons


def test_recordings_and_supervisions_of_lhotse(tmp_path: Path) -> None:
    for split in ("dev-clean", "train-clean-5"):
        path = write_audio(tmp_path / f"{split}/1.wav", 4.0)
        write_json_lines(tmp_path / f"libri_recordings_{split}.jsonl.gz", [recording(path)])
        spoken = [supervision("s1", 0.5, 1.0), {**supervision("s2", 0, 1), "recording_id": "2"}]
        write_json_lines(tmp_path / f"libri_supervisions_{split}.jsonl.gz", spoken)
    source = read_source(tmp_path)
    assert [(item.split, item.start_s, item.duration_s) for item in source.cuts] == [
        ("dev", 0.5, 1.0),
        ("train", 0.5, 1.0),
    ]
    assert [fault.code for fault in source.skipped] == ["no such file"] * 2
    for kind in ("recordings", "supervisions"):
        with refuses("unsupported", "path", kind):
            read_source(tmp_path / f"libri_{kind}_dev-clean.jsonl.gz")


def test_a_manifest_that_was_cut_off(tmp_path: Path) -> None:
    path = write_json_lines(tmp_path / "cuts.jsonl.gz", [{"id": str(n)} for n in range(1000)])
    path.write_bytes(path.read_bytes()[:-100])
    with refuses("damaged", "path", "cuts.jsonl.gz"):
        read_source(tmp_path)


def test_without_lhotse_the_way_to_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_json_lines(tmp_path / "cuts.jsonl", [{"supervisions": []}])
    monkeypatch.setitem(sys.modules, "lhotse", None)
    with refuses("missing_dependency", None, "nearfuture[train]"):
        read_source(tmp_path)


# Whatever it is ----------------------------------------------------------------------------------


def test_nothing_there(tmp_path: Path) -> None:
    with refuses("not_found", "path", "nowhere"):
        read_source(tmp_path / "nowhere")
    with refuses("not_found", "path", tmp_path):
        read_source(tmp_path)


@pytest.mark.parametrize("corpus", ["fsdd", "speechocean762", "kokoro", "grid"])
def test_real_corpora_have_no_fault(corpus: str) -> None:
    folder = corpus_folder(corpus)
    if folder is None:
        pytest.skip(f"needs the corpus '{corpus}' under NEARFUTURE_CORPORA")
    source = read_source(folder)
    assert source.problems == ()
    for item in source.cuts[:: len(source.cuts) // 30]:
        told = float(item.fields["seconds"])
        assert abs((item.probed().duration_s or 0) - told) < 0.03, item.name


def test_reading_a_source_loads_no_torch(tmp_path: Path) -> None:
    write_hard_folder(tmp_path)
    script = (
        "import sys; from pathlib import Path; from nearfuture.data import check; "
        f"check(Path({str(tmp_path)!r})); print({{'torch', 'lhotse'}} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "set()", done.stderr


def test_a_recording_that_may_not_be_read_is_not_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, mode: str) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    cut = Cut(name="a", path=write_audio(tmp_path / "a.wav"), text="a")
    monkeypatch.setattr(Path, "open", refuse)
    with refuses("unavailable", None, "permission denied") as caught:
        cut.read()
    assert caught.value.skipped.code == "cannot be read"


def test_a_part_that_is_not_in_its_file_has_one_code(tmp_path: Path) -> None:
    path = write_audio(tmp_path / "a.wav")
    for cut, code, error in (
        (Cut(name="late", path=path, text="a", start_s=5.0, duration_s=1.0), "out_of_range", ""),
        (Cut(name="gone", path=tmp_path / "b.wav", text="a"), "not_found", "no such file"),
    ):
        for use in (cut.probed, cut.read):
            with refuses(code, None, cut.name) as caught:
                use()
            assert caught.value.skipped.code == (error or "not in its file")
            assert pickle.loads(pickle.dumps(caught.value)).skipped == caught.value.skipped
