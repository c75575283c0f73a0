"""`nearfuture transcribe` on files as people have them, sound and broken."""

import json
import signal
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from nearfuture.audio import read, resample
from nearfuture.cli import main
from nearfuture.cli.results import SUFFIXES
from nearfuture.runtime.bundle import MODELS
from tests.patience import PATIENCE_S
from tests.text.test_timed import parse_textgrid

CLIP = MODELS.parent / "samples" / "flite-rms-3602.flac"
OTHER = CLIP.with_name("flite-rms-991.flac")
TEXT = "three six zero two"


@pytest.fixture(scope="module")
def samples() -> np.ndarray:
    return read(CLIP).samples


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    code = 0
    try:
        main(["transcribe", *map(str, arguments)])
    except SystemExit as stopped:
        code = int(stopped.code or 0)
    out, err = capsys.readouterr()
    return code, out, err


def wav(path: Path, samples: np.ndarray, rate: int = 8000, **options: str) -> Path:
    soundfile.write(path, samples, rate, **options)
    return path


def stereo_24_bit(path: Path, samples: np.ndarray) -> Path:
    high = resample(samples, 8000, 44100)
    return wav(path, np.stack([high, high], axis=1), 44100, subtype="PCM_24")


def streamed_header(path: Path, samples: np.ndarray) -> Path:
    wav(path, samples, subtype="PCM_16")
    data = bytearray(path.read_bytes())
    at = data.index(b"data") + 4
    data[at : at + 4] = struct.pack("<I", 0xFFFFFFFF)
    data[4:8] = struct.pack("<I", 0xFFFFFFFF)
    path.write_bytes(data)
    return path


def odd_last_byte(path: Path, samples: np.ndarray) -> Path:
    wav(path, samples, subtype="PCM_16")
    path.write_bytes(path.read_bytes() + b"\x01")
    return path


UNDERSTOOD = {
    "24-bit stereo 44.1 kHz": stereo_24_bit,
    "8-bit": lambda path, x: wav(path, x, subtype="PCM_U8"),
    "float": lambda path, x: wav(path, x, subtype="FLOAT"),
    "extensible": lambda path, x: wav(path, x, format="WAVEX", subtype="PCM_16"),
    "endless data chunk": streamed_header,
    "odd last byte": odd_last_byte,
    "ogg": lambda path, x: wav(path, resample(x, 8000, 16000), 16000, format="OGG"),
    "mp3": lambda path, x: wav(path, resample(x, 8000, 16000), 16000, format="MP3"),
}


@pytest.mark.parametrize("kind", UNDERSTOOD)
def test_the_right_text(
    kind: str, samples: np.ndarray, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = UNDERSTOOD[kind](tmp_path / "a.wav", samples)
    code, out, err = run(capsys, path)
    assert (code, out, err) == (0, f"{TEXT}\n", "")


def test_ten_milliseconds_say_nothing(
    samples: np.ndarray, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = wav(tmp_path / "short.wav", samples[4000:4080])
    code, out, err = run(capsys, path)
    assert (code, out, err) == (0, "", f"nearfuture: {path}: no words were recognised\n")
    assert run(capsys, path, "--quiet") == (0, "", "")


def test_a_recording_that_was_cut_off_is_named_and_read_as_far_as_it_goes(
    samples: np.ndarray, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = wav(tmp_path / "a.wav", samples)
    path.write_bytes(path.read_bytes()[:-4000])
    code, out, err = run(capsys, path)
    assert (code, out.startswith("three six")) == (1, True)
    assert err.count("\n") == 1
    assert f"{path} was cut off: " in err


def broken(folder: Path) -> dict[str, Path]:
    empty, text = folder / "empty.wav", folder / "text.wav"
    empty.touch()
    text.write_text("These are words, but nobody speaks them.")
    (folder / "none").mkdir()
    return {
        "empty": empty,
        "text": text,
        "missing": folder / "missing.wav",
        "folder without recordings": folder / "none",
    }


@pytest.mark.parametrize("kind", ["empty", "text", "missing", "folder without recordings"])
def test_one_line_of_error_and_exit_code_1(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = broken(tmp_path)[kind]
    code, out, err = run(capsys, path)
    assert (code, out) == (1, "")
    assert err.count("\n") == 1
    assert str(path) in err


def test_one_bad_file_does_not_stop_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = broken(tmp_path)
    code, out, err = run(capsys, bad["empty"], CLIP, bad["text"], OTHER)
    assert code == 1
    assert out.splitlines() == [f"{CLIP}: {TEXT}", f"{OTHER}: nine nine one"]
    assert len(err.splitlines()) == 2


def test_a_budget_that_cannot_be_kept_names_the_smallest(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out, err = run(capsys, CLIP, "--budget", "40")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "40 ms" in err
    assert "55 ms" in err


def test_json_has_word_times_and_the_latency_itemised(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, CLIP, "--budget", "400", "--format", "json")
    assert code == 0
    row = json.loads(out)
    assert row["text"] == TEXT
    assert [utterance["text"] for utterance in row["utterances"]] == [TEXT]
    assert row["utterances"][0]["start_ms"] == row["words"][0]["start_ms"]
    assert [word["text"] for word in row["words"]] == TEXT.split()
    starts = [word["start_ms"] for word in row["words"]]
    assert starts == sorted(starts)
    assert row["words"][-1]["end_ms"] <= row["audio_ms"]
    assert row["latency_ms"]["worst"] == 375.0
    assert sum(row["latency_ms"]["items"].values()) == 375.0


def test_live_shows_the_same_text(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, CLIP, "--budget", "400", "--live")
    assert code == 0
    assert TEXT in out


@pytest.mark.parametrize("other", [("--format", "json"), ("--out", "a.txt"), ("--quiet",)])
def test_live_is_for_eyes(other: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, CLIP, "--live", *other)
    assert code == 2
    assert err.count("\n") == 1


def test_a_name_with_brackets_is_shown_as_it_is(
    samples: np.ndarray, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "[red]"
    folder.mkdir()
    path = wav(folder / "a[b].wav", samples[:800])
    code, out, _ = run(capsys, path, "--live")
    assert code == 0
    assert "a[b].wav" in "".join(out.split())
    assert run(capsys, path)[2] == f"nearfuture: {path}: no words were recognised\n"


def test_a_reader_that_leaves_is_no_traceback(tmp_path: Path) -> None:
    code = "from nearfuture.cli import main; main()"
    done = subprocess.run(
        f'("{sys.executable}" -c "{code}" transcribe "{CLIP}" "{CLIP}"; echo $? >&2) | true',
        shell=True,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.stderr == "141\n"


@pytest.fixture(scope="module")
def paused(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two utterances."""
    parts = [read(CLIP).samples, np.zeros(12_000, np.float32), read(OTHER).samples]
    return wav(tmp_path_factory.mktemp("paused") / "a.wav", np.concatenate(parts))


def test_an_utterance_is_a_line(paused: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, paused) == (0, f"{TEXT}\nnine nine one\n", "")


def test_every_format_says_the_same_in_a_file_and_on_standard_output(
    paused: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = {}
    for form, suffix in SUFFIXES.items():
        code, texts[form], err = run(capsys, paused, "--format", form)
        assert (code, err) == (0, "")
        assert run(capsys, paused, "--out", tmp_path / f"a{suffix}") == (0, "", "")
        assert (tmp_path / f"a{suffix}").read_text(encoding="utf-8") == texts[form]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        f"a{suffix}" for suffix in SUFFIXES.values()
    )
    assert texts["srt"].count(" --> ") == texts["vtt"].count(" --> ") == 2
    assert texts["vtt"].startswith("WEBVTT\n\n00:00:00.308 --> ")
    assert [
        line.split()[4] for line in texts["ctm"].splitlines()
    ] == f"{TEXT} nine nine one".split()
    end, tiers = parse_textgrid(texts["textgrid"])
    assert end == pytest.approx(soundfile.info(paused).duration, abs=1e-3)
    assert [text for *_, text in tiers["words"] if text] == f"{TEXT} nine nine one".split()


def test_a_folder_and_a_pattern_are_all_their_recordings(
    samples: np.ndarray, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "calls"
    (folder / "b").mkdir(parents=True)
    for name in ("b/a.wav", "a.flac", "z.wav", ".hidden.wav"):
        wav(folder / name, samples)
    (folder / "notes.txt").write_text("nothing to hear")
    code, out, _ = run(capsys, folder, folder / "*.wav")
    assert code == 0
    assert out.splitlines() == [
        f"{folder / name}: {TEXT}" for name in ("a.flac", "z.wav", "b/a.wav")
    ]
    texts = tmp_path / "texts"
    assert run(capsys, folder, "--out", texts, "--format", "srt")[0] == 0
    assert sorted(path.name for path in texts.iterdir()) == ["a.srt", "b_a.srt", "z.srt"]
    code, out, err = run(capsys, folder / "*.mp3", texts, folder / "a.flac")
    assert (code, out) == (1, f"{TEXT}\n")
    assert err.splitlines() == [
        f"nearfuture: no file matches {folder / '*.mp3'}",
        f"nearfuture: {texts} has no recordings in it (.wav, .flac, .ogg, .mp3 and others)",
    ]


def test_two_that_only_their_suffix_tells_apart_have_two_files(
    samples: np.ndarray, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a.wav", "a.flac"):
        wav(tmp_path / name, samples)
    assert run(capsys, tmp_path / "a.wav", tmp_path / "a.flac", "--out", tmp_path / "new")[0] == 0
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["a.flac.txt", "a.wav.txt"]


def command(*arguments: str | Path, **options: Any) -> subprocess.Popen[bytes]:
    code = "from nearfuture.cli import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", code, "transcribe", *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,
    )


@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
def test_standard_input_is_read_as_it_comes_and_ctrl_c_keeps_the_text_so_far(
    name: str, paused: Path
) -> None:
    data = paused.read_bytes()
    with command(name) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(data[:-8000])
        process.stdin.flush()
        assert process.stdout.readline() == f"{TEXT}\n".encode()  # long before the end
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert "nine nine one".startswith(out.decode().strip())
    assert b"Traceback" not in err
    assert b"nearfuture: stopped at 0:0" in err


def test_a_recording_without_words_in_a_pipe(paused: Path) -> None:
    process = command("-")
    out, err = process.communicate(b"", timeout=PATIENCE_S)
    assert (process.returncode, out) == (1, b"")
    assert b"standard input is empty" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--out", "a.doc"), "a file is one of .txt, .srt"),
        (("--out", "a.srt", "--format", "vtt"), "omit one of them"),
        ((OTHER, "--format", "srt"), "name a folder with --out"),
        ((OTHER, "--out", "a.vtt"), "name a folder with --out"),
        (("--bugdet", "400"), "no option --bugdet"),
        (("-x",), "no option -x"),
    ],
)
def test_what_cannot_be_is_exit_code_2(
    arguments: tuple[str | Path, ...],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, CLIP, *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("form", ["txt", "ctm", "json"])
def test_where_nothing_could_be_read_the_old_file_stays(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.wav").write_text("hello")
    out = tmp_path / f"text{SUFFIXES[form]}"
    assert run(capsys, tmp_path / "bad.wav", tmp_path / "none.wav", "--out", out)[0] == 1
    assert not out.exists()
    out.write_text("old")
    assert run(capsys, tmp_path / "bad.wav", "--out", out)[0] == 1
    assert out.read_text() == "old"
    assert run(capsys, tmp_path / "bad.wav", CLIP, "--out", out)[0] == 1
    assert "three" in out.read_text()
    assert {path.name for path in tmp_path.iterdir()} == {"bad.wav", out.name}


def test_folders_above_the_output_are_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "a" / "b" / "c.txt"
    assert run(capsys, CLIP, "--out", out) == (0, "", "")
    assert out.read_text() == TEXT + "\n"
    code, _, err = run(capsys, CLIP, "--out", out / "d.txt")
    assert (code, err) == (1, f"nearfuture: cannot use {out / 'd.txt'}: not a directory\n")


def test_standard_input_that_is_closed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    code, _, err = run(capsys, "-")
    assert (code, err) == (1, "nearfuture: standard input is closed: pipe a recording into it\n")


@pytest.mark.parametrize(
    ("head", "remedy"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid", "fetch it with git lfs pull"),
        (b"PK\x03\x04" + bytes(40), "unpack it first"),
        (b"%PDF-1.7" + bytes(40), "convert it to WAV, FLAC, Ogg or MP3 first"),
    ],
)
def test_what_is_no_audio_says_its_way_out(
    head: bytes, remedy: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.wav").write_bytes(head)
    code, _, err = run(capsys, tmp_path / "a.wav")
    assert code == 1
    assert err.endswith(f": {remedy}\n")


def test_a_file_may_begin_with_a_hyphen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "-3602.flac").write_bytes(CLIP.read_bytes())
    assert run(capsys, "-3602.flac") == (0, TEXT + "\n", "")


def test_a_file_that_is_damaged_later_keeps_the_text_before(
    paused: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    samples, _ = soundfile.read(paused, dtype="float32")
    samples[-1] = np.nan
    path = wav(tmp_path / "b.wav", samples, subtype="FLOAT")
    code, _, err = run(capsys, path, paused, "--out", tmp_path / "new", "--format", "json")
    assert (code, err.count("\n"), str(path) in err) == (1, 1, True)
    rows = [json.loads(file.read_text()) for file in (tmp_path / "new").iterdir()]
    assert sorted(row["file"] for row in rows) == sorted(map(str, (path, paused)))
    assert all(row["text"].startswith(TEXT) for row in rows)


def test_a_grammar_gives_intents_and_slots(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    grammar = tmp_path / "dial.yaml"
    grammar.write_text(
        "language: en\n"
        "intents: {Dial: {data: [{sentences: ['{d:a} {d:b} {d:c} {d:e}']}]}}\n"
        "lists: {d: {range: {from: 0, to: 9}}}\n",
        encoding="utf-8",
    )
    arguments = (CLIP, OTHER, "--grammar", grammar)
    code, out, _ = run(capsys, *arguments, "--format", "json")
    first, second = map(json.loads, out.splitlines())
    assert (code, first["text"]) == (0, TEXT)
    (command,) = first["commands"]
    assert (command["intent"], command["understood"]) == ("Dial", True)
    assert {name: slot["value"] for name, slot in command["slots"].items()} == {
        "a": 3, "b": 6, "c": 0, "e": 2
    }  # fmt: skip
    assert command["slots"]["b"]["start_ms"] == first["words"][1]["start_ms"]
    # The other has three digits, and is no sentence of the grammar.
    assert [command["understood"] for command in second["commands"]] == [False]
    assert second["text"] == ""

    code, out, err = run(capsys, OTHER, "--grammar", grammar, "--threshold", "0")
    assert (code, len(out.split())) == (0, 4)
    code, out, err = run(capsys, OTHER, "--grammar", grammar, "--threshold", "0.99")
    assert (code, out) == (0, "")
    assert "nothing was understood" in err
