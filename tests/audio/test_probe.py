"""Headers, ends and parts of recordings; a file that was cut off is none of them."""

import io
from pathlib import Path

import numpy as np
import pytest
import soundfile

from nearfuture.audio import read
from nearfuture.audio.probe import Probe, TruncatedAudioError, probe, read_part
from nearfuture.audio.reader import open_audio
from tests.errors import refuses

RATE = 16000
DETECTED = [
    ("WAV", "PCM_16"),
    ("WAV", "FLOAT"),
    ("WAV", "ULAW"),
    ("RF64", "PCM_16"),
    ("AIFF", "PCM_16"),
    ("AU", "PCM_16"),
    ("FLAC", "PCM_16"),
    ("OGG", "VORBIS"),
    ("OGG", "OPUS"),
    ("MP3", "MPEG_LAYER_III"),
]


def noise(seconds: float = 3.0, channels: int = 1) -> np.ndarray:
    rng = np.random.default_rng(0)
    return (0.2 * rng.standard_normal((round(seconds * RATE), channels))).astype(np.float32)


def encoded(kind: str, subtype: str, samples: np.ndarray | None = None) -> bytes:
    file = io.BytesIO()
    samples = noise() if samples is None else samples
    soundfile.write(file, samples, RATE, format=kind, subtype=subtype)
    return file.getvalue()


def damage(data: bytes) -> str | None:
    with open_audio(data) as reader:
        for _ in reader.blocks():
            pass
        return None if reader.damage is None else reader.damage.reason


@pytest.mark.parametrize(("kind", "subtype"), DETECTED, ids=str)
def test_a_file_that_was_cut_off_is_refused(tmp_path: Path, kind: str, subtype: str) -> None:
    data = encoded(kind, subtype)
    path = tmp_path / "clip"
    path.write_bytes(data)
    assert abs(probe(path).seconds - 3.0) < 0.1
    for share in (0.1, 0.5, 0.9, 0.999):
        path.write_bytes(data[: int(len(data) * share)])
        for function in (probe, read_part):
            with refuses("damaged", None, path, "cut off"):
                function(path)


@pytest.mark.parametrize(("kind", "subtype"), DETECTED, ids=str)
def test_a_last_byte_is_enough(tmp_path: Path, kind: str, subtype: str) -> None:
    path = tmp_path / "clip"
    path.write_bytes(encoded(kind, subtype)[:-1])
    with pytest.raises(TruncatedAudioError, match="cut off"):
        probe(path)


@pytest.mark.parametrize("subtype", ["VORBIS", "OPUS"])
def test_a_whole_page_is_no_end(subtype: str) -> None:
    data = encoded("OGG", subtype)
    assert damage(data) is None
    assert data.count(b"OggS\0") > 3
    assert damage(data[: data.rindex(b"OggS\0")]) is not None


@pytest.mark.parametrize("length", [0, 0xFFFFFFFF, 0x7FFFF024])
def test_streamed_headers_promise_nothing(tmp_path: Path, length: int) -> None:
    data = bytearray(encoded("WAV", "PCM_16"))
    at = data.index(b"data") + 4
    data[at : at + 4] = length.to_bytes(4, "little")
    path = tmp_path / "streamed.wav"
    path.write_bytes(data)
    assert probe(path) == Probe(frames=3 * RATE, rate=RATE, channels=1)
    assert np.array_equal(
        read_part(path, start_s=1.0, duration_s=0.5).samples,
        read(path).samples[RATE : RATE + RATE // 2],
    )


def test_what_stands_behind_the_samples_does_not_matter(tmp_path: Path) -> None:
    data = encoded("WAV", "PCM_16") + b"LIST" + (4).to_bytes(4, "little") + b"INFO"
    assert damage(data) is None
    tagged = b"ID3\x04\x00\x00\x00\x00\x02\x01" + bytes(257) + encoded("MP3", "MPEG_LAYER_III")
    assert damage(tagged) is None
    assert damage(tagged[:-1]) is not None


@pytest.mark.parametrize(("kind", "subtype"), [("WAV", "PCM_16"), ("FLAC", "PCM_16")])
def test_a_part_is_the_same_as_in_the_whole(tmp_path: Path, kind: str, subtype: str) -> None:
    path = tmp_path / "clip"
    samples = noise(channels=2)
    path.write_bytes(encoded(kind, subtype, samples))
    whole, _ = soundfile.read(path, dtype="float32")
    for start, duration in ((0.0, 0.25), (1.0, 0.5), (2.9, 0.1), (1.5, None)):
        begin = round(start * RATE)
        end = len(whole) if duration is None else begin + round(duration * RATE)
        for channel in (0, 1):
            part = read_part(path, start_s=start, duration_s=duration, channel=channel)
            assert np.array_equal(part.samples, whole[begin:end, channel])
        part = read_part(path, start_s=start, duration_s=duration)
        assert np.allclose(part.samples, whole[begin:end].mean(axis=1), atol=1e-7)
    assert np.array_equal(read_part(path, channel=1).samples, whole[:, 1])


def test_lists_round_but_not_more(tmp_path: Path) -> None:
    path = tmp_path / "clip.wav"
    path.write_bytes(encoded("WAV", "PCM_16"))
    assert len(read_part(path, start_s=2.0, duration_s=1.04).samples) == RATE
    for start, duration in ((2.0, 1.06), (3.1, None), (5.0, 1.0)):
        with refuses("out_of_range", "start_s", "lasts 3.000 s", f"{start:.3f} s"):
            read_part(path, start_s=start, duration_s=duration)


def test_no_such_channel(tmp_path: Path) -> None:
    path = tmp_path / "clip.wav"
    path.write_bytes(encoded("WAV", "PCM_16"))
    with refuses("out_of_range", "channel", "1 channels", "no channel 1"):
        read_part(path, channel=1)


def test_what_is_no_audio(tmp_path: Path) -> None:
    for name, data, code, reason in (
        ("text.wav", b"hello", "unsupported", "found text, 'hello'"),
        ("empty.wav", b"", "invalid", "0 bytes"),
        ("call.m4a", b"\0\0\0\x20ftypM4A ", "damaged", "MPEG-4 (m4a, mp4)"),
    ):
        (tmp_path / name).write_bytes(data)
        for function in (probe, read_part):
            with refuses(code, None, name, reason):
                function(tmp_path / name)
    with refuses("not_found", None, "none.wav"):
        probe(tmp_path / "none.wav")


def test_a_header_without_samples(tmp_path: Path) -> None:
    path = tmp_path / "none.wav"
    path.write_bytes(encoded("WAV", "PCM_16", np.zeros((0, 1), np.float32)))
    assert probe(path).frames == 0
    assert read_part(path).samples.size == 0
