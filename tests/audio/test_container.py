"""Containers: one demuxer by signature, nothing else reachable, in a process that can be ended."""

import contextlib
import io
import math
import os
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from nearfuture.audio import AudioError, TruncatedAudioError, container, open_audio, read
from nearfuture.audio.container import DEMUXERS, ContainerDecoder
from nearfuture.audio.probe import probe, read_part
from nearfuture.audio.signature import LONGEST, kind
from tests.errors import refuses

SECONDS = 1.5
# Name of the file: muxer, encoder, rate.
WRITTEN = {
    "a.m4a": ("ipod", "aac", 48_000),
    "a.mp4": ("mp4", "aac", 16_000),
    "a.mov": ("mov", "pcm_s16le", 16_000),
    "a.3gp": ("3gp", "aac", 44_100),
    "a.webm": ("webm", "libopus", 48_000),
    "a.mkv": ("matroska", "flac", 16_000),
    "a.aac": ("adts", "aac", 16_000),
    "a.wma": ("asf", "wmav2", 16_000),
}


def tone(rate: int) -> np.ndarray:
    return (0.5 * np.sin(2 * np.pi * 440 * np.arange(round(SECONDS * rate)) / rate)).astype("f4")


def encoded(muxer: str, encoder: str, rate: int, **options: str) -> bytes:
    with (
        tempfile.NamedTemporaryFile() as file,
        av.open(file.name, "w", format=muxer, options=options) as writer,
    ):
        stream = writer.add_stream(encoder or writer.default_audio_codec, rate=rate, layout="mono")
        stream.bit_rate = 32_000
        samples = tone(rate)
        form = stream.codec_context.format.name
        resampler = av.AudioResampler(form, "mono", rate, stream.codec_context.frame_size or 1024)
        frame = av.AudioFrame.from_ndarray(samples[None], format="flt", layout="mono")
        frame.sample_rate, frame.pts = rate, 0
        for piece in [*resampler.resample(frame), *resampler.resample(None)]:
            writer.mux(stream.encode(piece))
        writer.mux(stream.encode(None))
        writer.close()
        return Path(file.name).read_bytes()


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    return {name: encoded(*how) for name, how in WRITTEN.items()}


@pytest.mark.parametrize("name", WRITTEN)
def test_every_container_has_the_same_samples_everywhere(
    name: str, files: dict[str, bytes], tmp_path: Path
) -> None:
    rate = WRITTEN[name][2]
    path = tmp_path / name
    path.write_bytes(files[name])
    audio = read(path)
    assert audio.rate == rate
    assert audio.seconds == pytest.approx(SECONDS, abs=0.15)
    rms = math.sqrt(float(np.mean(audio.samples**2)))
    assert rms == pytest.approx(0.354, abs=0.03)
    np.testing.assert_array_equal(read(files[name]).samples, audio.samples)
    with path.open("rb") as file:
        np.testing.assert_array_equal(read(file).samples, audio.samples)
    assert probe(path).frames == len(audio.samples)
    part = read_part(path, start_s=0.5, duration_s=0.25)
    begin = rate // 2
    np.testing.assert_array_equal(part.samples, audio.samples[begin : begin + rate // 4])


def test_a_container_out_of_a_pipe(files: dict[str, bytes]) -> None:
    out, into = os.pipe()

    def write() -> None:
        with os.fdopen(into, "wb") as file:
            file.write(files["a.m4a"])

    threading.Thread(target=write, daemon=True).start()
    with os.fdopen(out, "rb") as pipe:
        np.testing.assert_array_equal(read(pipe).samples, read(files["a.m4a"]).samples)


def test_channels_are_kept_apart() -> None:
    file = io.BytesIO()
    with av.open(file, "w", format="matroska") as writer:
        stream = writer.add_stream("pcm_s16le", rate=8000, layout="stereo")
        samples = np.tile(np.array([[8192, -16384]], np.int16), (1000, 1)).reshape(1, -1)
        frame = av.AudioFrame.from_ndarray(samples, format="s16", layout="stereo")
        frame.sample_rate = 8000
        writer.mux(stream.encode(frame))
        writer.mux(stream.encode(None))
    with open_audio(file.getvalue()) as reader:
        assert reader.channels == 2
        assert np.unique(np.concatenate(list(reader.channel_blocks())), axis=0).tolist() == [
            [0.25, -0.5]
        ]


def test_without_the_extra_it_is_named(
    monkeypatch: pytest.MonkeyPatch, files: dict[str, bytes]
) -> None:
    monkeypatch.setitem(sys.modules, "av", None)
    for name, data in files.items():
        with refuses("missing_dependency", None, "pip install 'nearfuture[media]'"):
            read(data)
        assert kind(data[:LONGEST]) in DEMUXERS, name


# Cut off and damaged


@pytest.mark.parametrize("name", ["a.mov", "a.mkv", "a.wma", "a.webm"])
def test_a_container_that_was_cut_off_is_refused(name: str) -> None:
    options = {"movflags": "faststart"} if name == "a.mov" else {}
    data = encoded(*WRITTEN[name], **options)
    if name == "a.mov":
        at = data.index(b"mdat")
        assert data.index(b"moov") < at
    with pytest.raises(TruncatedAudioError, match=r"was cut off: (it announces 1\.[45]|\d+ of)"):
        read(data[: len(data) // 2])


@pytest.mark.parametrize("name", WRITTEN)
def test_damage_gives_samples_or_an_error(name: str, files: dict[str, bytes]) -> None:
    rng = np.random.default_rng(0)
    for _ in range(12):
        broken = bytearray(files[name])
        for place in rng.integers(0, len(broken), 20):
            broken[place] = rng.integers(256)
        with contextlib.suppress(AudioError):
            assert np.isfinite(read(bytes(broken)).samples).all()


# Nothing else is reachable


def test_playlists_and_lists_are_text(tmp_path: Path) -> None:
    (tmp_path / "secret.wav").write_bytes(b"RIFF")
    for begin in (
        f"ffconcat version 1.0\nfile {tmp_path}/secret.wav\n",
        "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nhttp://127.0.0.1:1/a.ts\n#EXT-X-ENDLIST\n",
        "v=0\no=- 0 0 IN IP4 127.0.0.1\nm=audio 5004 RTP/AVP 0\n",
        "<?xml version='1.0'?><MPD></MPD>",
        "[playlist]\nFile1=/dev/zero\n",
    ):
        with refuses("unsupported", None, "found text"):
            read(begin.encode())


def test_no_playlist_behind_a_signature_opens_anything(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)  # whoever opens it waits
    signatures = [b"\0\0\0\x18ftypM4A ", b"\x1aE\xdf\xa3", b"0&\xb2u\x8ef\xcf\x11", b"#!AMR\n"]
    for signature in signatures:
        for body in (f"ffconcat version 1.0\nfile {fifo}\n", f"#EXTM3U\n{fifo}\n"):
            with pytest.raises(AudioError, match=r"cannot be decoded|has no sound"):
                read(signature + body.encode() * 40)


def test_a_movie_whose_samples_are_elsewhere_opens_nothing(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.wav"
    elsewhere.write_bytes(bytes(100_000))
    data = encoded("mov", "pcm_s16le", 16_000)
    at = data.index(b"dref")
    entry = data[at + 12 : at + 12 + 12]
    assert entry[4:8] in (b"url ", b"alis")
    path = str(elsewhere).encode()
    alias = _alias(path)
    broken = bytearray(data)
    broken[at + 12 : at + 24] = alias
    for box in (b"moov", b"trak", b"mdia", b"minf", b"dinf", b"dref"):
        place = data.index(box) - 4
        size = int.from_bytes(data[place : place + 4], "big") + len(alias) - 12
        broken[place : place + 4] = size.to_bytes(4, "big")
    try:
        samples = read(bytes(broken)).samples
    except AudioError:
        return
    assert np.abs(samples).max() > 0.4, "the samples of this file, not those of the other"


def _alias(path: bytes) -> bytes:
    """An entry that says: the samples are in that file."""
    body = bytearray(150)
    body[4 + 2 : 8] = b"\0\2"
    name = os.path.basename(path)
    record = struct_alias(name, path)
    return (len(record) + 12).to_bytes(4, "big") + b"alis" + bytes(4) + record


def struct_alias(name: bytes, path: bytes) -> bytes:
    record = bytearray(150)
    record[10] = 4
    record[11:15] = b"disk"
    record[50] = len(name)
    record[51 : 51 + len(name)] = name
    tail = b"\0\x12" + len(path).to_bytes(2, "big") + path + bytes(len(path) % 2)
    return bytes(record) + tail + b"\xff\xff\0\0"


def _muxers() -> list[str]:
    """Every format that this ffmpeg writes."""
    names = []
    for name in sorted(av.formats_available):
        with contextlib.suppress(ValueError, av.FFmpegError):
            if av.ContainerFormat(name, "w").is_output:
                names.append(name)
    return names


_UNWRITABLE = ("rtp", "sap", "rtsp", "tee", "alsa", "oss", "fbdev", "sdl", "xv", "pulse", "whip")


def test_whatever_ffmpeg_writes_is_samples_or_a_named_error() -> None:
    read_well = set()
    for muxer in _muxers():
        if muxer.startswith(_UNWRITABLE):
            continue
        try:
            data = encoded(muxer, "", 48_000)
        except Exception:  # whatever it cannot write is no case
            continue
        try:
            assert len(read(data).samples) > 0
            read_well.add(muxer)
        except AudioError as error:
            assert "\n" not in str(error)  # noqa: PT017 (either outcome will do)
    assert {
        "adts",
        "asf",
        "oga",
        "flac",
        "ipod",
        "matroska",
        "mov",
        "mp3",
        "mp4",
        "ogg",
        "wav",
    } <= (read_well)


# Deadlines


def test_a_decoder_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container, "_START_S", 0.5)
    fifo = tmp_path / "a.m4a"
    os.mkfifo(fifo)
    started: list[Any] = []
    make = container.subprocess.Popen

    def kept(*arguments: Any, **options: Any) -> Any:
        started.append(make(*arguments, **options))
        return started[-1]

    container._Worker.end_all()
    monkeypatch.setattr(container.subprocess, "Popen", kept)
    with refuses("damaged", None, "a.m4a", "took too long"):
        ContainerDecoder(str(fifo), demuxer="mov", name="a.m4a")
    assert [process.poll() is not None for process in started] == [True]


def test_a_decoder_that_dies_is_named_and_the_next_file_is_read(files: dict[str, bytes]) -> None:
    reader = ContainerDecoder(files["a.mkv"], demuxer="matroska", name="a.mkv")
    assert reader._worker is not None
    reader._worker._process.kill()
    reader._worker._process.wait()
    with refuses("damaged", None, "a.mkv", "decoder"):
        _rest(reader)
    assert len(read(files["a.mkv"]).samples) == SECONDS * 16_000


def _rest(reader: ContainerDecoder) -> None:
    while len(reader.read(1 << 20)):
        pass


def test_who_leaves_early_ends_the_process(files: dict[str, bytes]) -> None:
    with open_audio(files["a.mkv"]) as reader:
        next(reader.blocks(100))
    assert len(read(files["a.mkv"]).samples) == SECONDS * 16_000


def test_a_file_that_nobody_reads_ends_its_process(files: dict[str, bytes]) -> None:
    """That of an upload whose client leaves while it is opened has nobody who closes it."""
    container._Worker.end_all()
    opened = ContainerDecoder(files["a.mkv"], demuxer="matroska", name="a.mkv")
    assert opened._worker is not None
    process = opened._worker._process
    del opened
    assert process.returncode is not None


def test_a_process_serves_many_files(files: dict[str, bytes]) -> None:
    container._Worker.end_all()
    read(files["a.m4a"])
    (worker,) = container._Worker._idle
    for name in ("a.webm", "a.aac", "a.wma"):
        read(files[name])
        assert container._Worker._idle == [worker]
