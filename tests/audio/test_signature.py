"""What a file is, by its first bytes; and that sound is not taken for a file."""

import io
import random

import av
import numpy as np
import pytest
import soundfile

from nearfuture.audio.mpeg_header import mpeg_header
from nearfuture.audio.signature import DECIDED_BYTES, LONGEST, kind, undecided

TONE = (0.3 * np.sin(np.arange(4000) / 5)).astype(np.float32)


def written(form: str, subtype: str | None = None, endian: str | None = None) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, TONE, 16_000, format=form, subtype=subtype, endian=endian)
    return file.getvalue()


def adts(length: int) -> bytes:
    """A frame of AAC-LC, 16 kHz, one channel."""
    head = bytes([0xFF, 0xF1, 0x60, 0x40 | length >> 11, length >> 3 & 255, (length & 7) << 5 | 31])
    return head + b"\xfc" + bytes(length - 7)


WRITTEN = {
    "WAV": "WAV",
    "WAVEX": "WAV",
    "RF64": "RF64",
    "W64": "Wave64 (w64)",
    "AIFF": "AIFF",
    "AU": "AU",
    "CAF": "CAF",
    "FLAC": "FLAC",
    "OGG": "Ogg",
    "MP3": "MP3",
    "VOC": "VOC",
    "NIST": "NIST SPHERE",
    "SVX": "16SV",
}
BEGINNINGS = {
    b"\0\0\0\x20ftypM4A \0\0\0\0": "MPEG-4 (m4a, mp4)",
    b"\0\0\0\x08wide\0\0\1\0mdat": "QuickTime",
    b"\x1aE\xdf\xa3\x01\0\0\0\0\0\0\x1fB\x86\x81\x01": "WebM or Matroska",
    b"0&\xb2u\x8ef\xcf\x11\xa6\xd9\0\xaa\0b\xcel": "Windows Media",
    b"#!AMR\n" + bytes(10): "AMR",
    b"#!AMR-WB\n" + bytes(7): "AMR",
    b"RIFF\0\0\0\0AVI LIST": "AVI",
    b"ID3\x04\0\0\0\0\0\x23TSSE": "MP3",
    b"version https://git-lfs.github.com/spec/v1\n": "a Git LFS pointer, not the file itself",
    adts(200) + adts(180): "AAC",
}


@pytest.mark.parametrize("form", WRITTEN)
def test_what_soundfile_writes_is_recognised(form: str) -> None:
    data = written(form)
    assert kind(data[:LONGEST]) == WRITTEN[form]
    assert not undecided(data[:LONGEST])


@pytest.mark.parametrize("form", ["WAV", "AU"])
def test_the_other_byte_order_is_recognised(form: str) -> None:
    expected = {"WAV": "big-endian WAV (RIFX)", "AU": "AU"}[form]
    assert kind(written(form, endian="BIG" if form == "WAV" else "LITTLE")) == expected


def test_mp3_without_a_tag_is_recognised() -> None:
    data = written("MP3")
    assert data[:1] == b"\xff"  # a frame, no tag
    assert kind(data) == "MP3"


@pytest.mark.parametrize("data", BEGINNINGS)
def test_what_others_write_is_recognised(data: bytes) -> None:
    assert kind(data) == BEGINNINGS[data]
    assert not undecided(data)


@pytest.mark.parametrize("codec", ["aac", "mp2", "mp3"])
def test_frames_of_real_encoders_are_recognised(codec: str) -> None:
    file = io.BytesIO()
    form, name = {
        "aac": ("adts", "AAC"),
        "mp2": ("mp2", "MPEG audio, layer II"),
        "mp3": ("mp3", "MP3"),
    }[codec]
    with av.open(file, "w", format=form, options={"id3v2_version": "0"}) as container:
        stream = container.add_stream(codec, rate=16_000, layout="mono")
        for at in range(0, 16_000, 1152):
            part = np.resize(TONE, 16_000)[at : at + 1152]
            frame = av.AudioFrame.from_ndarray(part[None], format="fltp", layout="mono")
            frame.sample_rate, frame.pts = 16_000, at
            frame = av.AudioResampler(format=stream.codec_context.format).resample(frame)[0]
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    assert kind(file.getvalue()[:LONGEST]) == name


@pytest.mark.parametrize("data", [written("MP3"), adts(200) * 2, *BEGINNINGS])
def test_a_decision_is_final_and_comes_in_time(data: bytes) -> None:
    known = kind(data)
    for size in range(len(data[:LONGEST])):
        if not undecided(data[:size]):
            assert kind(data[:size]) == known, size
            return
    assert len(data) <= DECIDED_BYTES or kind(data) == known


def test_noise_is_no_file() -> None:
    draw = random.Random(0)
    for _ in range(3000):
        assert kind(draw.randbytes(600)) is None


@pytest.mark.parametrize("value", [0x00, 0xFF, 0x7F, 0x55, 0xD5, 0x80])
def test_silence_of_every_encoding_is_no_file(value: int) -> None:
    data = bytes([value]) * LONGEST
    assert kind(data) is None
    assert not undecided(data[:DECIDED_BYTES])


@pytest.mark.parametrize("seed", range(4))
def test_what_looks_like_a_frame_and_has_no_second_is_no_file(seed: int) -> None:
    sound = np.random.default_rng(seed).normal(0, 900, 8000).astype("<i2").tobytes()
    for head in (b"\xff\xfb\x90\x64", b"\xff\xf3\x84\xc4", adts(400)[:7]):
        assert kind(head + sound) is None
        assert not undecided(head + sound[:LONGEST])


def test_lengths_of_frames_are_those_of_an_encoder() -> None:
    data, at, frames = written("MP3"), 0, 0
    while at < len(data):
        header = mpeg_header(data[at : at + 4])
        assert header is not None
        assert (header.rate, header.samples) == (16_000, 576)
        at, frames = at + header.length, frames + 1
    assert at == len(data)
    assert frames > len(TONE) // 576
