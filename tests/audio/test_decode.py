"""Reading recordings: every usual kind, headers that lie, and errors that say what is there."""

import io
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from nearfuture.audio import Audio, AudioError, read
from tests.errors import refuses

PCM, FLOAT, A_LAW, MU_LAW, EXTENSIBLE = 1, 3, 6, 7, 0xFFFE
GUID_TAIL = bytes.fromhex("000000001000800000aa00389b71")
RAMP = np.arange(1, 101, dtype="<i2")


def wav(
    samples: bytes,
    *,
    kind: int = PCM,
    extends: int | None = None,
    channels: int = 1,
    rate: int = 8000,
    bits: int = 16,
    length: int | None = None,
    riff_length: int | None = None,
    before: bytes = b"",
    behind: bytes = b"",
) -> bytes:
    """A WAV file, byte by byte, with whatever lengths are wanted in its headers."""
    width = channels * bits // 8
    form = struct.pack("<HHIIHH", kind, channels, rate, rate * width, width, bits)
    if extends is not None:
        form += struct.pack("<HHIH", 22, bits, 0, extends) + GUID_TAIL
    announced = len(samples) if length is None else length
    body = b"WAVEfmt " + struct.pack("<I", len(form)) + form + before
    body += b"data" + struct.pack("<I", announced) + samples + behind
    return b"RIFF" + struct.pack("<I", len(body) if riff_length is None else riff_length) + body


def chunk(name: bytes, content: bytes) -> bytes:
    return name + struct.pack("<I", len(content)) + content + bytes(len(content) % 2)


def packed_24_bit(values: list[int]) -> bytes:
    return b"".join(value.to_bytes(3, "little", signed=True) for value in values)


def tone(rate: int = 16000, seconds: float = 0.5) -> np.ndarray:
    return (0.5 * np.sin(2 * np.pi * 440 * np.arange(int(rate * seconds)) / rate)).astype("f4")


def file_of(samples: np.ndarray, rate: int, **options: Any) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, samples, rate, **options)
    return file.getvalue()


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (wav(bytes([0, 128, 192]), bits=8), [-1, 0, 0.5]),
        (wav(np.array([-32768, 16384], "<i2").tobytes()), [-1, 0.5]),
        (wav(packed_24_bit([-(2**23), 2**22]), bits=24), [-1, 0.5]),
        (wav(np.array([-(2**31), 2**30], "<i4").tobytes(), bits=32), [-1, 0.5]),
        (wav(np.array([-0.5, 0.25], "<f4").tobytes(), kind=FLOAT, bits=32), [-0.5, 0.25]),
        (wav(np.array([-0.5, 0.25], "<f8").tobytes(), kind=FLOAT, bits=64), [-0.5, 0.25]),
        (wav(bytes([0xFF, 0x80]), kind=MU_LAW, bits=8), [0, 0.980346680]),
        (wav(bytes([0x55, 0xAA]), kind=A_LAW, bits=8), [-8 / 32768, 0.984375]),
        (wav(RAMP[:2].tobytes(), kind=EXTENSIBLE, extends=PCM), [1 / 32768, 2 / 32768]),
        (
            wav(np.array([0.5], "<f4").tobytes(), kind=EXTENSIBLE, extends=FLOAT, bits=32),
            [0.5],
        ),
    ],
    ids=["u8", "s16", "s24", "s32", "f32", "f64", "mu-law", "a-law", "ext", "ext-float"],
)
def test_every_width_has_the_same_full_scale(data: bytes, expected: list[float]) -> None:
    audio = read(data)
    np.testing.assert_allclose(audio.samples, expected, rtol=0, atol=1e-7)
    assert audio.samples.dtype == np.float32
    assert audio.rate == 8000


def test_channels_are_averaged() -> None:
    stereo = packed_24_bit([2**22, 0, -(2**22), -(2**22), 1, 1])
    audio = read(wav(stereo, bits=24, channels=2, rate=44100))
    assert audio.rate == 44100
    np.testing.assert_allclose(audio.samples, [0.25, -0.5, 2**-23], rtol=0, atol=1e-9)
    seven = np.tile(np.arange(7, dtype="<i2") * 1000, 5).tobytes()
    np.testing.assert_allclose(read(wav(seven, channels=7)).samples, 3000 / 32768, atol=1e-7)


@pytest.mark.parametrize(
    "options",
    [
        {"format": "FLAC"},
        {"format": "FLAC", "subtype": "PCM_24"},
        {"format": "WAV"},
        {"format": "WAVEX"},
        {"format": "RF64"},
        {"format": "AIFF"},
        {"format": "W64"},
    ],
    ids=str,
)
def test_lossless_files_read_back(options: dict[str, str]) -> None:
    audio = read(file_of(tone(), 16000, **options))
    assert audio.rate == 16000
    np.testing.assert_allclose(audio.samples, tone(), rtol=0, atol=1 / 32768)


@pytest.mark.parametrize(
    "options",
    [
        {"format": "OGG", "subtype": "VORBIS"},
        {"format": "OGG", "subtype": "OPUS"},
        {"format": "MP3"},
    ],
    ids=str,
)
def test_lossy_files_sound_the_same(options: dict[str, str]) -> None:
    audio = read(file_of(tone(), 16000, **options))
    assert audio.rate == 16000
    assert len(audio.samples) == 8000
    inside = slice(1000, -1000)
    assert np.corrcoef(audio.samples[inside], tone()[inside])[0, 1] > 0.99


@pytest.mark.parametrize("length", [0, 200, 0x7FFFFFFF, 0xFFFFFFFF])
@pytest.mark.parametrize("riff_length", [0, 36, 0x7FFFFFFF, 0xFFFFFFFF, None])
def test_wrong_lengths_in_the_header_lose_nothing(length: int, riff_length: int | None) -> None:
    data = wav(RAMP.tobytes(), length=length, riff_length=riff_length)
    np.testing.assert_array_equal(read(data).samples * 32768, RAMP)


@pytest.mark.parametrize("length", [0, 201, 0xFFFFFFFF])
def test_half_a_sample_at_the_end_is_dropped(length: int) -> None:
    data = wav(RAMP.tobytes() + b"\x07", length=length)
    np.testing.assert_array_equal(read(data).samples * 32768, RAMP)


def test_half_a_frame_at_the_end_is_dropped() -> None:
    stereo = wav(RAMP.tobytes() + b"\x07\x01", channels=2)
    np.testing.assert_array_equal(read(stereo).samples * 65536, RAMP[::2] + RAMP[1::2])


@pytest.mark.parametrize("length", [0, 0xFFFFFFFF])
def test_a_streamed_header_with_other_chunks_before(length: int) -> None:
    data = wav(RAMP.tobytes(), before=chunk(b"junk", b"abcde"), length=length)
    np.testing.assert_array_equal(read(data).samples * 32768, RAMP)


def test_other_chunks_are_no_samples() -> None:
    listed = chunk(b"LIST", b"INFOabcd")
    assert len(read(wav(RAMP.tobytes(), before=listed, behind=listed)).samples) == 100
    assert len(read(wav(b"", behind=listed)).samples) == 0
    assert len(read(wav(b"", behind=listed + chunk(b"id3 ", b"odd"))).samples) == 0


def test_a_header_without_samples_is_a_recording_of_nothing() -> None:
    audio = read(wav(b"", rate=16000))
    assert audio.samples.shape == (0,)
    assert audio.samples.dtype == np.float32
    assert (audio.rate, audio.seconds) == (16000, 0.0)


def test_ten_milliseconds_are_enough() -> None:
    audio = read(wav(RAMP[:80].tobytes()))
    assert audio.seconds == pytest.approx(0.01)


def test_a_flac_stream_of_unknown_length() -> None:
    data = bytearray(file_of(tone(), 16000, format="FLAC"))
    data[21] &= 0xF0  # the last 36 bits of STREAMINFO's counts: samples in the stream
    data[22:26] = bytes(4)
    np.testing.assert_allclose(read(bytes(data)).samples, tone(), rtol=0, atol=1 / 32768)


def test_longer_than_one_block() -> None:
    long = np.tile(tone(), 80)
    np.testing.assert_allclose(
        read(file_of(long, 16000, format="FLAC")).samples, long, rtol=0, atol=1 / 32768
    )


def test_float_samples_beyond_full_scale_are_kept() -> None:
    loud = np.array([-3.5, 2.0], "<f4")
    np.testing.assert_array_equal(read(wav(loud.tobytes(), kind=FLOAT, bits=32)).samples, loud)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_samples_that_are_no_numbers_are_refused(bad: float) -> None:
    samples = np.array([0, 0.5, bad, 0, bad], "<f4")
    with refuses("invalid", None, "at 2", bad):
        read(wav(samples.tobytes(), kind=FLOAT, bits=32))


def test_paths_bytes_and_open_files_are_the_same(tmp_path: Path) -> None:
    path = tmp_path / "clip.wav"
    path.write_bytes(wav(RAMP.tobytes()))
    with path.open("rb") as file:
        read_in = [read(path), read(str(path)), read(path.read_bytes()), read(file)]
        assert not file.closed
    for audio in read_in:
        assert isinstance(audio, Audio)
        np.testing.assert_array_equal(audio.samples * 32768, RAMP)


def error_of(source: Any) -> AudioError:
    """The error, whose message must be one line."""
    with pytest.raises(AudioError) as caught:
        read(source)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 300
    return caught.value


@pytest.mark.parametrize(
    ("data", "code", "reason"),
    [
        (b"", "invalid", "0 bytes"),
        (b"seven two zero\nnine\n" * 9, "unsupported", r"'seven two zero\nnine\nseve'…"),
        (b"<!DOCTYPE html>\n<html>" * 9, "unsupported", "found text, '<!DOCTYPE html>"),
        (b"\x89PNG\r\n\x1a\n" + bytes(99), "unsupported", "bytes 89 50 4e 47 0d 0a 1a 0a…"),
        (b"R", "unsupported", "found text, 'R'…"),
        (b"wvpk" + bytes(99), "unsupported", "is WavPack: convert it"),
        (b"%PDF-1.7" + bytes(99), "unsupported", "is PDF: convert it"),
        (wav(b"")[:20], "damaged", "was cut off: it ends before its samples begin"),
        (wav(b"")[:36], "damaged", "was cut off: it ends before its samples begin"),
        (wav(b"", rate=0), "damaged", "damaged"),
        (wav(b"", channels=0), "damaged", "Channel count is zero"),
        (file_of(tone(), 16000, format="FLAC")[:4000], "damaged", "flac decoder lost sync"),
        (file_of(tone(), 16000, format="OGG")[:3000], "damaged", "was cut off: its last page"),
    ],
)
def test_what_is_no_audio_is_refused_by_name(
    tmp_path: Path, data: bytes, code: str, reason: str
) -> None:
    path = tmp_path / "clip.wav"
    path.write_bytes(data)
    for source in (path, data):
        error = error_of(source)
        assert error.code == code
        assert reason in str(error)
        assert str(path) in str(error) or source is data


def test_missing_files_and_directories_are_named(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.wav", tmp_path):
        error = error_of(path)
        assert error.code == "not_found"
        assert str(path) in str(error)


def test_a_file_that_may_not_be_read_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, mode: str) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "open", refuse)
    error = error_of("secret.wav")
    assert str(error) == "cannot read secret.wav: permission denied"
    assert error.code == "unavailable"


def test_a_file_opened_as_text_is_refused() -> None:
    with refuses("invalid", None, "binary mode"):
        read(io.StringIO("RIFF"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "data",
    [
        wav(RAMP.tobytes(), before=chunk(b"LIST", b"INFO" + chunk(b"ISFT", b"abcd"))),
        file_of(tone(seconds=0.05), 16000, format="FLAC"),
        file_of(tone(seconds=0.05), 16000, format="OGG"),
    ],
    ids=["wav", "flac", "ogg"],
)
def test_a_file_cut_off_or_damaged_anywhere_is_read_or_refused(data: bytes) -> None:
    random = np.random.default_rng(0)
    broken = [data[:cut] for cut in range(0, len(data), 1 + len(data) // 200)]
    for _ in range(200):
        damaged = bytearray(data)
        for place in random.integers(0, min(len(data), 400), 3):
            damaged[place] = random.integers(256)
        broken.append(bytes(damaged))
    for each in broken:
        try:
            assert np.isfinite(read(each).samples).all()
        except AudioError as error:
            assert "\n" not in str(error)  # noqa: PT017 (either outcome will do)
