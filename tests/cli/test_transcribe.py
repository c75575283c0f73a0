"""`nearfuture transcribe` on files as people have them, sound and broken."""

import json
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

from nearfuture.audio import read, resample
from nearfuture.cli import main
from nearfuture.runtime.bundle import MODELS
from tests.patience import PATIENCE_S

CLIP = MODELS.parent / "samples" / "flite-rms-3602.flac"
SAID = "three six zero two"


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
    assert (code, out.strip(), err) == (0, f"{path}: {SAID}", "")


def test_ten_milliseconds_say_nothing(
    samples: np.ndarray, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = wav(tmp_path / "short.wav", samples[4000:4080])
    code, out, err = run(capsys, path)
    assert (code, out.strip(), err) == (0, f"{path}:", "")


def test_a_recording_that_was_cut_off_is_named_and_read_as_far_as_it_goes(
    samples: np.ndarray, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = wav(tmp_path / "a.wav", samples)
    path.write_bytes(path.read_bytes()[:-4000])
    code, out, err = run(capsys, path)
    assert (code, out.startswith(f"{path}: three six")) == (0, True)
    assert err.count("\n") == 1
    assert f"{path} was cut off: " in err


def broken(folder: Path) -> dict[str, Path]:
    empty, text = folder / "empty.wav", folder / "text.wav"
    empty.touch()
    text.write_text("These are words, but nobody speaks them.")
    return {"empty": empty, "text": text, "missing": folder / "missing.wav", "folder": folder}


@pytest.mark.parametrize("kind", ["empty", "text", "missing", "folder"])
def test_one_line_of_error_and_exit_code_2(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = broken(tmp_path)[kind]
    code, out, err = run(capsys, path)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert str(path) in err


def test_one_bad_file_does_not_stop_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = broken(tmp_path)
    code, out, err = run(capsys, bad["empty"], CLIP, bad["text"], CLIP)
    assert code == 2
    assert out.splitlines() == [f"{CLIP}: {SAID}"] * 2
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
    code, out, _ = run(capsys, CLIP, "--budget", "400", "--json")
    assert code == 0
    told = json.loads(out)
    assert told["text"] == SAID
    assert [word["text"] for word in told["words"]] == SAID.split()
    starts = [word["start_ms"] for word in told["words"]]
    assert starts == sorted(starts)
    assert told["words"][-1]["end_ms"] <= told["audio_ms"]
    assert told["latency_ms"]["worst"] == 375.0
    assert sum(told["latency_ms"]["items"].values()) == 375.0


def test_live_shows_the_same_text(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, CLIP, "--budget", "400", "--live")
    assert code == 0
    assert SAID in out


def test_live_and_json_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, CLIP, "--live", "--json")
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
