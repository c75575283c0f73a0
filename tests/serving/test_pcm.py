"""Bytes to samples: any cut gives the same, with and without a WAV header."""

import io
import struct

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from nearfuture.serving.limits import Refused
from nearfuture.serving.pcm import PcmReader, as_rate

RAMP = np.arange(-32768, 32768, 97).astype(np.int16)


def heard(reader: PcmReader, data: bytes, sizes: list[int]) -> np.ndarray:
    parts, at = [], 0
    for size in [*sizes, len(data)]:
        parts.append(reader.read(data[at : at + size]))
        at += size
    return np.concatenate(parts)


def wav(subtype: str, rate: int = 16_000, channels: int = 1, form: str = "WAV") -> bytes:
    file = io.BytesIO()
    samples = np.stack([RAMP] * channels, axis=1)
    soundfile.write(file, samples, rate, format=form, subtype=subtype)
    return file.getvalue()


def scaled(samples: np.ndarray) -> np.ndarray:
    return samples / 32768 if samples.dtype == np.int16 else samples


@given(sizes=st.lists(st.integers(0, 50), max_size=60))
def test_any_cut_of_raw_audio(sizes: list[int]) -> None:
    data = RAMP.tobytes()
    assert heard(PcmReader(rate=8000), data, sizes).tolist() == RAMP.tolist()
    floats = (RAMP / 32768).astype("<f4")
    found = heard(PcmReader("float32", rate=8000), floats.tobytes(), sizes)
    assert found.dtype == np.float32
    assert found.tolist() == floats.tolist()


@given(sizes=st.lists(st.integers(0, 20), max_size=60), channels=st.integers(1, 2))
def test_any_cut_of_a_wav(sizes: list[int], channels: int) -> None:
    reader = PcmReader("float32", rate=8000)
    found = heard(reader, wav("PCM_16", channels=channels), sizes)
    assert (reader.rate, reader.encoding) == (16_000, "int16")
    np.testing.assert_allclose(scaled(found), RAMP / 32768, atol=1e-7)


@pytest.mark.parametrize("form", ["WAV", "WAVEX"])
@pytest.mark.parametrize("subtype", ["PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT"])
def test_every_usual_wav_is_what_soundfile_reads(subtype: str, form: str) -> None:
    data = wav(subtype, form=form)
    expected, _ = soundfile.read(io.BytesIO(data), dtype="float32")
    found = scaled(heard(PcmReader(rate=8000), data, [7] * 30))
    np.testing.assert_allclose(found, expected, atol=1e-7)


@pytest.mark.parametrize(("encoding", "subtype"), [("mulaw", "ULAW"), ("alaw", "ALAW")])
def test_g711_is_what_soundfile_reads_of_every_code(encoding: str, subtype: str) -> None:
    codes = bytes(range(256))
    raw = io.BytesIO(codes)
    expected, _ = soundfile.read(
        raw, dtype="int16", format="RAW", subtype=subtype, samplerate=8000, channels=1
    )
    assert PcmReader(encoding, rate=8000).read(codes).tolist() == expected.tolist()
    in_wav = PcmReader(rate=16_000)
    found = in_wav.read(wav(subtype, 8000))
    assert (in_wav.encoding, in_wav.rate) == (encoding, 8000)
    assert len(found) == len(RAMP)


def header(size: int, *, form: bytes = b"", before: bytes = b"") -> bytes:
    form = form or struct.pack("<HHIIHH", 1, 1, 8000, 16_000, 2, 16)
    chunk = b"fmt " + struct.pack("<I", len(form)) + form
    return b"RIFF\0\0\0\0WAVE" + before + chunk + b"data" + struct.pack("<I", size)


@pytest.mark.parametrize("size", [0, 0xFFFFFFFF, 0x7FFFFFFF])
def test_a_header_from_a_pipe_has_no_end(size: int) -> None:
    data = header(size) + RAMP.tobytes()
    assert heard(PcmReader(rate=16_000), data, [100, 1, 1]).tolist() == RAMP.tolist()


def test_what_is_behind_the_samples_is_no_sound() -> None:
    data = header(200) + RAMP.tobytes()[:200] + b"LIST\x04\0\0\0abcd" * 100
    assert heard(PcmReader(rate=16_000), data, [100] * 9).tolist() == RAMP[:100].tolist()


def test_chunks_before_the_format_are_skipped() -> None:
    data = header(0, before=b"LIST\x05\0\0\0hello\0") + RAMP.tobytes()
    assert heard(PcmReader(rate=16_000), data, [9] * 9).tolist() == RAMP.tolist()


def test_raw_audio_that_begins_like_a_header_is_raw() -> None:
    for data in (b"RIFFRIFFRIFF" * 3, b"RI", b"RIFX" * 4):
        reader = PcmReader(rate=8000)
        found = [reader.read(data[at : at + 1]) for at in range(len(data))]
        samples = np.concatenate([*found, reader.finish()])
        assert samples.tobytes() == data


def test_half_a_sample_at_the_end_and_half_a_header_are_no_sound() -> None:
    reader = PcmReader(rate=8000)
    assert [len(reader.read(b"\1\2\3")), len(reader.finish())] == [1, 0]
    reader = PcmReader(rate=8000)
    assert [len(reader.read(header(0)[:30])), len(reader.finish())] == [0, 0]


def test_a_header_without_end_is_refused_and_never_held_for_long() -> None:
    endless = b"RIFF\0\0\0\0WAVE" + b"LIST\x04\0\0\0abcd" * 10_000
    with pytest.raises(Refused, match="WAV header"):
        heard(PcmReader(rate=8000), endless, [1000] * 70)
    with pytest.raises(Refused, match="chunk of 4294967295 bytes"):
        PcmReader(rate=8000).read(b"RIFF\0\0\0\0WAVELIST\xff\xff\xff\xff")


@pytest.mark.parametrize(
    ("form", "told"),
    [
        (struct.pack("<HHIIHH", 2, 1, 8000, 0, 0, 4), "format 2 with 4 bits"),
        (struct.pack("<HHIIHH", 1, 0, 8000, 0, 0, 16), "0 channels"),
        (struct.pack("<HHIIHH", 1, 99, 8000, 0, 0, 16), "99 channels"),
        (struct.pack("<HHIIHH", 1, 1, 2000, 0, 0, 16), "rate is 2000"),
        (b"short", "fmt chunk of the WAV header has 5 bytes"),
    ],
)
def test_a_wav_of_another_kind_is_refused_by_name(form: bytes, told: str) -> None:
    with pytest.raises(Refused, match=told):
        PcmReader(rate=8000).read(header(0, form=form) + bytes(100))


@pytest.mark.parametrize(
    ("begin", "name"),
    [
        (b"fLaC", "FLAC"),
        (b"OggS", "Ogg"),
        (b"ID3\x03", "MP3"),
        (b"\0\0\0\x20ftypM4A ", "MPEG-4"),
        (b"\x1aE\xdf\xa3", "WebM"),
    ],
)
def test_a_container_is_refused_by_name(begin: bytes, name: str) -> None:
    with pytest.raises(Refused, match=name) as refused:
        PcmReader(rate=8000).read(begin + bytes(100))
    assert refused.value.code == "bad_audio"


@pytest.mark.parametrize("rate", [3999, 192_001, 8000.5, True, "8000", None, float("nan"), 10**400])
def test_a_rate_that_is_none(rate: object) -> None:
    with pytest.raises(Refused, match="from 4000 to 192000"):
        as_rate(rate)
