"""Bytes to samples: any cut gives the same, with and without a WAV header."""

import io
import struct

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from nearfuture.audio.wav import MAX_CHUNKS, WavHeader, wav_header
from nearfuture.serving import pcm
from nearfuture.serving.errors import RequestError
from nearfuture.serving.json_fields import as_object, as_rate
from nearfuture.serving.pcm import ENCODINGS, PcmReader

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
    assert [len(reader.read(b"\1\2\3")), len(reader.finish())] == [0, 1]
    reader = PcmReader(rate=8000)
    assert [len(reader.read(header(0)[:30])), len(reader.finish())] == [0, 0]


def test_a_header_without_end_is_refused_and_never_held_for_long() -> None:
    endless = b"RIFF\0\0\0\0WAVE" + b"LIST\x04\0\0\0abcd" * 10_000
    with pytest.raises(RequestError, match="WAV header"):
        heard(PcmReader(rate=8000), endless, [1000] * 70)
    with pytest.raises(RequestError, match="chunk of 4294967295 bytes"):
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
    with pytest.raises(RequestError, match=told):
        PcmReader(rate=8000).read(header(0, form=form) + bytes(100))


AAC = (b"\xff\xf1\x60\x40\x19\x1f\xfc" + bytes(193)) * 2  # two frames of 200 bytes
FILES = {
    "FLAC": wav("PCM_16", form="FLAC"),
    "Ogg": wav("VORBIS", form="OGG"),
    "MP3": wav("MPEG_LAYER_III", form="MP3"),
    "AIFF": wav("PCM_16", form="AIFF"),
    "AU": wav("PCM_16", form="AU"),
    "CAF": wav("PCM_16", form="CAF"),
    "Wave64": wav("PCM_16", form="W64"),
    "RF64": wav("PCM_16", form="RF64"),
    "AAC": AAC,
    "MPEG-4": b"\0\0\0\x20ftypM4A " + bytes(100),
    "WebM": b"\x1aE\xdf\xa3" + bytes(100),
    "Windows Media": b"0&\xb2u\x8ef\xcf\x11\xa6\xd9" + bytes(100),
    "AMR": b"#!AMR\n" + bytes(100),
    "MP3 ": b"ID3\x03\0\0\0\0\0\0" + bytes(100),
    "ZIP": b"PK\x03\x04" + bytes(100),
    "text": b"SUQzBAAAAAAAI1RTU0UAAAAPAAADTGF2ZjU5LjI3LjEwMAAAAAAAAAAAAAAA//uQxAAD",
    "text ": b"<!DOCTYPE html>\n<html><head><title>Not found</title></head></html>\n",
}


@pytest.mark.parametrize("cut", [1, 5, 4000])
@pytest.mark.parametrize("name", FILES)
def test_what_is_no_wav_is_refused_by_name(name: str, cut: int) -> None:
    data = FILES[name]
    with pytest.raises(RequestError, match=name.strip()) as refused:
        heard(PcmReader(rate=8000), data, [cut] * (len(data) // cut))
    assert refused.value.code == "bad_audio"


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_what_looks_like_a_frame_of_mp3_is_sound_without_a_second_one(encoding: str) -> None:
    data = b"\xff\xfb\x90\x64" + np.random.default_rng(0).bytes(4000)
    for sizes in ([3], [600] * 9, []):
        found = heard(PcmReader(encoding, rate=8000), data, sizes)
        assert len(found) == len(data) // ENCODINGS[encoding]
    short = PcmReader(encoding, rate=8000)
    assert [len(short.read(data[:100])), len(short.finish())] == [0, 100 // ENCODINGS[encoding]]


def test_g711_may_be_made_of_letters() -> None:
    quiet = b"UVWTU" * 100  # A-law close to zero
    assert len(heard(PcmReader("alaw", rate=8000), quiet, [9] * 9)) == len(quiet)


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
@pytest.mark.parametrize("odd", [0, 1])
def test_a_wav_may_follow_a_wav(size: int, odd: int) -> None:
    """Clients that make a file of every piece; none is lost."""
    one = wav("PCM_16")[: 44 + 200]
    one = one[:40] + struct.pack("<I", 200 + odd) + one[44:] + bytes(2 * odd)
    data = (one + b"LIST\x03\0\0\0abc\0") * 3
    found = heard(PcmReader(rate=8000), data, [size] * (len(data) // size))
    assert found.tolist() == RAMP[:100].tolist() * 3


def test_of_a_large_message_little_is_held_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[int] = []

    def header(file: io.BytesIO, *, longest: int) -> WavHeader | None:
        held.append(len(file.getbuffer()))
        return wav_header(file, longest=longest)

    monkeypatch.setattr(pcm, "wav_header", header)
    small = wav("PCM_16")[:44].replace(struct.pack("<I", 2 * len(RAMP)), b"\2\0\0\0") + b"\7\0"
    found = PcmReader(rate=8000).read(small * 3000)
    assert found.tolist() == [7] * 3000
    assert max(held) < len(small * 3000) / 10


def test_very_many_chunks_behind_the_samples_are_refused() -> None:
    chunks = b"LIST\0\0\0\0"
    reader = PcmReader(rate=8000)
    for _ in range(2):
        assert len(reader.read(wav("PCM_16") + chunks * MAX_CHUNKS)) == len(RAMP)
    with pytest.raises(RequestError, match="more than 256 chunks behind its samples"):
        reader.read(chunks * 2)


def test_a_wav_of_another_kind_may_not_follow() -> None:
    first = header(200) + bytes(200)
    with pytest.raises(RequestError, match=r"16000 Hz.*follows one of another kind.*8000 Hz"):
        PcmReader(rate=8000).read(first + wav("PCM_16"))


@pytest.mark.parametrize(
    ("data", "json"),
    [
        (b'{"eof" : 1}', True),
        (b'{"config": {}}\n', True),
        (b"{" + bytes(99), False),
        (b'{"eof": 1} and more', False),
        (b'{"eof": "\xff"}', False),
        (b"[1]", False),
        (b'{"a":' * 90_000, False),
        (b"", False),
    ],
)
def test_json_that_came_as_binary(data: bytes, json: bool) -> None:
    assert (as_object(data) is not None) == json


@pytest.mark.parametrize("rate", [3999, 192_001, 8000.5, True, "8000", None, float("nan"), 10**400])
def test_a_rate_that_is_none(rate: object) -> None:
    with pytest.raises(RequestError, match="from 4000 to 192000"):
        as_rate(rate)
