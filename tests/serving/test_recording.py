"""Uploaded files: whatever soundfile or av read, a second at a time; all else is named."""

import io
import sys

import av
import numpy as np
import pytest
import soundfile

from nearfuture.audio import AudioError, open_audio, read
from nearfuture.serving.protocols.openai_rest import _bounded

TONE = (0.5 * np.sin(np.arange(20_000) / 9)).astype(np.float32)


def encoded(form: str, subtype: str | None = None, rate: int = 16_000) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, TONE, rate, format=form, subtype=subtype)
    return file.getvalue()


@pytest.mark.parametrize("form", ["WAV", "FLAC", "OGG", "MP3", "AIFF"])
def test_what_soundfile_reads(form: str) -> None:
    data = encoded(form)
    opened, whole = open_audio(data), read(data)
    blocks = list(_bounded(opened, 60.0))
    assert opened.rate == whole.rate
    assert max(len(block) for block in blocks) <= opened.rate
    np.testing.assert_array_equal(np.concatenate(blocks), whole.samples)


def test_channels_are_averaged() -> None:
    file = io.BytesIO()
    soundfile.write(file, np.array([[0.5, 0.0], [0.25, -0.25]]), 8000, format="WAV")
    assert np.concatenate(list(_bounded(open_audio(file.getvalue()), 60.0))).tolist() == [0.25, 0.0]


@pytest.mark.parametrize(
    ("data", "told"),
    [(b"", "empty"), (b"These are words.", "text, 'These are words.'"), (bytes(50), "bytes 00 00")],
)
def test_what_is_no_audio_is_named(data: bytes, told: str) -> None:
    with pytest.raises(AudioError, match=told):
        open_audio(data)


def test_a_damaged_file_is_reported_when_it_breaks() -> None:
    data = bytearray(encoded("FLAC"))
    data[len(data) // 2 :] = bytes(len(data) - len(data) // 2)
    with pytest.raises(AudioError, match=r"cannot be decoded to its end|damaged"):
        list(_bounded(open_audio(bytes(data)), 60.0))


def test_without_av_a_container_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(AudioError, match=r"MPEG-4.*needs the extra media.*nearfuture\[media\]"):
        open_audio(b"\0\0\0\x20ftypM4A " + bytes(100))


@pytest.mark.parametrize(("form", "codec"), [("mp4", "aac"), ("webm", "libopus")])
def test_what_av_reads(form: str, codec: str) -> None:
    file = io.BytesIO()
    with av.open(file, "w", format=form) as container:
        stream = container.add_stream(codec, rate=48_000, layout="mono")
        for at in range(0, 48_000, 960):
            t = np.arange(at, at + 960) / 48_000
            tone = (0.5 * np.sin(2 * np.pi * 440 * t)).astype(np.float32)
            frame = av.AudioFrame.from_ndarray(tone[None], format="flt", layout="mono")
            frame.sample_rate, frame.pts = 48_000, at
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    opened = open_audio(file.getvalue())
    samples = np.concatenate(list(_bounded(opened, 60.0)))
    assert opened.rate == 48_000
    assert len(samples) == pytest.approx(48_000, abs=3000)
    assert np.sqrt(np.mean(samples**2)) == pytest.approx(0.35, abs=0.05)
