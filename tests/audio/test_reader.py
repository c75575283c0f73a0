"""The one reader: every sample of every file, or what is missing and where; in bounded memory."""

import contextlib
import io
import os
import struct
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile

from nearfuture.audio import AudioError, Damage, TruncatedAudioError, members, open_audio, read
from nearfuture.audio.limits import BLOCK_SAMPLES, MAX_CHANNELS
from nearfuture.audio.mpeg_header import mpeg_header
from nearfuture.audio.probe import probe, read_part
from nearfuture.audio.wav import MAX_CHUNKS
from tests.errors import refuses

RATE = 16_000
FORMS = {
    "wav": ("WAV", "PCM_16"),
    "adpcm": ("WAV", "IMA_ADPCM"),
    "rf64": ("RF64", "PCM_16"),
    "aiff": ("AIFF", "PCM_16"),
    "au": ("AU", "PCM_16"),
    "flac": ("FLAC", "PCM_16"),
    "vorbis": ("OGG", "VORBIS"),
    "opus": ("OGG", "OPUS"),
    "mp3": ("MP3", "MPEG_LAYER_III"),
}

CHAINED = [form for form in FORMS if form not in ("rf64", "adpcm")]


def test_tags_without_end_are_named() -> None:
    """Each takes ten bytes, and a walk over 25 MiB of them half a minute."""
    file = io.BytesIO()
    soundfile.write(file, np.zeros(RATE), RATE, format="MP3")
    tag = b"ID3\4\0\0\0\0\0\0"
    assert len(read(tag * 20 + file.getvalue() + tag * 20 + file.getvalue()).samples) == 2 * RATE
    with open_audio(file.getvalue() + tag * 1000) as reader:
        assert reader.damage is not None
        assert "no frame of MPEG audio" in reader.damage.reason


def speech(seconds: float, seed: int = 0, channels: int = 1) -> np.ndarray:
    """A voice that begins and stops, so that a variable bitrate varies."""
    rng = np.random.default_rng(seed)
    t = np.arange(round(seconds * RATE)) / RATE
    loud = np.where(np.sin(2 * np.pi * 0.9 * t) > 0, 0.3, 0.0003)
    voice = np.sin(2 * np.pi * 180 * t) + 0.5 * rng.standard_normal((channels, len(t)))
    return (loud * voice).T.astype(np.float32)


def encoded(form: str, samples: np.ndarray, rate: int = RATE, **options: object) -> bytes:
    file = io.BytesIO()
    kind, subtype = FORMS[form]
    soundfile.write(file, samples, rate, format=kind, subtype=subtype, **options)
    return file.getvalue()


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    return {form: encoded(form, speech(3.1)) for form in FORMS}


def whole(data: bytes) -> tuple[np.ndarray, Damage | None]:
    with open_audio(data) as reader:
        blocks = [np.zeros(0, np.float32), *reader.blocks()]
        return np.concatenate(blocks), reader.damage


def without_info_frame(data: bytes) -> bytes:
    header = mpeg_header(data[:4])
    assert header is not None
    assert b"Xing" in data[: header.length]
    return data[header.length :]


# Every sample


def test_a_variable_bitrate_without_an_info_frame_loses_nothing() -> None:
    samples = speech(20)
    samples[: 2 * RATE] = 0
    data = encoded("mp3", samples, compression_level=0.9, bitrate_mode="VARIABLE")
    bare = without_info_frame(data)
    with soundfile.SoundFile(io.BytesIO(bare)) as file:
        assert abs(file.frames - len(samples)) > RATE, "libsndfile's estimate is far off"
    got, damage = whole(bare)
    assert damage is None
    expected = read(data).samples
    assert len(expected) == len(samples)
    assert len(samples) <= len(got) <= len(samples) + 3 * 1152
    late = 529 + 576  # the delays of decoder and encoder, which the info frame has
    np.testing.assert_allclose(got[late : late + len(expected)], expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("mode", ["CONSTANT", "VARIABLE", "AVERAGE"])
@pytest.mark.parametrize("channels", [1, 2])
def test_every_frame_of_an_mp3_counts(mode: str, channels: int) -> None:
    data = encoded("mp3", speech(2, channels=channels), bitrate_mode=mode)
    bare = without_info_frame(data) if mode != "CONSTANT" else data
    at = frames = 0
    while at < len(bare):
        header = mpeg_header(bare[at : at + 4])
        assert header is not None
        at, frames = at + header.length, frames + 1
    got, damage = whole(bare)
    assert damage is None
    assert len(got) == (2 * RATE if bare is data else frames * 576)


@pytest.mark.parametrize("form", CHAINED)
def test_files_behind_one_another_are_all_read(form: str, files: dict[str, bytes]) -> None:
    other = encoded(form, speech(1.3, seed=1))
    got, damage = whole(files[form] + other + files[form])
    assert damage is None
    expected = [read(part).samples for part in (files[form], other, files[form])]
    np.testing.assert_array_equal(got, np.concatenate(expected))


@pytest.mark.parametrize("form", CHAINED)
def test_a_file_of_very_many_files_is_read_up_to_a_limit(
    form: str, files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(members, "MAX_MEMBERS", 3)
    alone, _ = whole(files[form])
    allowed, damage = whole(files[form] * 3)
    assert len(allowed) == 3 * len(alone)
    assert damage is None
    samples, damage = whole(files[form] * 5)
    np.testing.assert_array_equal(samples, allowed)
    assert damage is not None
    assert "one behind another: what follows is not read" in damage.reason
    assert damage.at_s == len(samples) / RATE


def test_what_stands_behind_a_recording_is_read_about_once(files: dict[str, bytes]) -> None:
    class Counted(io.BytesIO):
        count = 0

        def read(self, size: int | None = -1) -> bytes:
            data = super().read(size)
            self.count += len(data)
            return data

    file = Counted(files["mp3"] + b"\xff" * 100_000)
    with open_audio(file) as reader:
        assert reader.damage is not None
        assert "no frame of MPEG audio" in reader.damage.reason
    assert file.count < 10 * len(file.getvalue())


def test_very_many_chunks_behind_the_samples_are_named(files: dict[str, bytes]) -> None:
    samples, damage = whole(files["wav"] + b"LIST\0\0\0\0" * (MAX_CHUNKS + 1))
    assert len(samples) == len(whole(files["wav"])[0])
    assert damage is not None
    assert "more than 256 chunks behind its samples" in damage.reason
    assert whole(files["wav"] + b"LIST\0\0\0\0" * MAX_CHUNKS)[1] is None


def test_a_tag_between_files_is_no_sound(files: dict[str, bytes]) -> None:
    tag = b"ID3\x04\0\0\0\0\x01\x02" + bytes(130)
    mp3 = files["mp3"]
    got, damage = whole(tag + mp3 + b"TAG" + bytes(125) + tag + mp3 + b"TAG" + bytes(125))
    assert damage is None
    np.testing.assert_array_equal(got, np.tile(read(mp3).samples, 2))


def test_parts_of_other_widths_are_averaged(files: dict[str, bytes]) -> None:
    stereo = encoded("mp3", speech(1, channels=2))
    data = files["mp3"] + stereo
    got, damage = whole(data)
    assert damage is None
    assert len(got) == len(speech(4.1))
    with open_audio(stereo + files["mp3"]) as reader:
        assert {block.shape[1] for block in reader.channel_blocks()} == {2}


def test_a_change_of_rate_is_named(files: dict[str, bytes]) -> None:
    got, damage = whole(files["flac"] + encoded("flac", speech(1), rate=8000))
    assert damage is not None
    assert damage.sentence("a.flac") == (
        "a.flac changes its rate from 16000 to 8000 Hz: what follows is not read; split it first; "
        "its first 3.100 s can be read"
    )
    assert len(got) == len(speech(3.1))


# What is missing, and where


@pytest.mark.parametrize("form", ["vorbis", "opus", "mp3", "flac"])
def test_damage_in_the_middle_is_named_with_its_place(form: str) -> None:
    data = encoded(form, speech(6))
    expected = read(data).samples
    for share in (0.3, 0.6):
        broken = bytearray(data)
        at = round(len(data) * share)
        broken[at : at + 2500] = bytes(2500)
        got, damage = whole(bytes(broken))
        assert damage is not None
        assert damage.at_s == pytest.approx(len(got) / RATE)
        assert "damaged" in damage.reason
        assert len(got) < len(expected)
        np.testing.assert_allclose(got, expected[: len(got)], rtol=0, atol=1e-4)
        with pytest.raises(TruncatedAudioError, match=r"damaged.*can be read"):
            read(bytes(broken))


def test_a_byte_of_an_ogg_page_is_enough() -> None:
    data = bytearray(encoded("vorbis", speech(6)))
    data[len(data) // 2] ^= 1
    _, damage = whole(bytes(data))
    assert damage is not None
    assert damage.reason == "is damaged: the checksum of a page does not match"


def test_a_page_that_was_lost_is_missed() -> None:
    data = encoded("vorbis", speech(6))
    pages = data.split(b"OggS\0")
    _, damage = whole(b"OggS\0".join([*pages[:4], *pages[5:]]))
    assert damage is not None
    assert damage.reason == "is damaged: pages are missing"


@pytest.mark.parametrize("form", CHAINED)
def test_a_second_file_that_was_cut_off_is_named(form: str, files: dict[str, bytes]) -> None:
    data = files[form]
    with open_audio(data + data[: len(data) // 2]) as reader:
        samples = np.concatenate(list(reader.blocks()))
        assert reader.damage is not None
    assert len(samples) >= len(speech(3.1))
    with pytest.raises(TruncatedAudioError):
        read(data + data[: len(data) // 2])


def test_samples_behind_the_announced_ones_are_named(files: dict[str, bytes]) -> None:
    data = bytearray(files["wav"])
    data[40:44] = (RATE * 2).to_bytes(4, "little")  # a recorder that updates it now and then
    with pytest.raises(
        TruncatedAudioError, match=r"has \d+ bytes behind the samples that its header announces"
    ):
        read(bytes(data))


# Parts


@pytest.mark.parametrize(
    ("form", "copies"), [*((form, 1) for form in FORMS), *((form, 2) for form in CHAINED)]
)
def test_a_part_is_the_slice_of_the_whole(
    form: str, copies: int, files: dict[str, bytes], tmp_path: Path
) -> None:
    path = tmp_path / f"a.{form}"
    path.write_bytes(files[form] * copies)
    expected = read(path).samples
    assert probe(path).frames == len(expected)
    for begin in (0, 1, 577, 30_000, 49_599, len(expected) - 3000, len(expected) - 1):
        part = read_part(path, start_s=begin / RATE, duration_s=0.05)
        wanted = expected[begin : begin + RATE // 20]
        tolerance = 2e-7 if form == "mp3" else 0  # libmpg123 sums in another order
        np.testing.assert_allclose(part.samples, wanted, rtol=0, atol=tolerance)


@pytest.mark.parametrize("seconds", [0.5, 1.7, 2.25, 4.03])
def test_the_end_of_an_ogg_vorbis_is_exact(seconds: float, tmp_path: Path) -> None:
    path = tmp_path / "a.ogg"
    path.write_bytes(encoded("vorbis", speech(seconds)))
    expected = read(path).samples
    for begin in range(max(0, len(expected) - 9000), len(expected), 701):
        part = read_part(path, start_s=begin / RATE)
        np.testing.assert_array_equal(part.samples, expected[begin:])


# Bounds


def wav(channels: int, rate: int, samples: bytes) -> bytes:
    form = struct.pack("<HHIIHH", 1, channels, rate, min(rate * channels, 2**32 - 1), channels, 8)
    body = b"WAVEfmt " + struct.pack("<I", 16) + form
    body += b"data" + struct.pack("<I", len(samples)) + samples
    return b"RIFF" + struct.pack("<I", len(body)) + body


def test_a_header_cannot_claim_memory() -> None:
    claim = wav(1024, 768_000, bytes(1024))
    assert len(claim) == 1068
    with refuses("out_of_range", None, "1024 channels", MAX_CHANNELS):
        open_audio(claim)
    with refuses("out_of_range", None, 1_000_000, 192_000):
        open_audio(wav(1, 1_000_000, bytes(100)))
    with open_audio(wav(MAX_CHANNELS, 192_000, bytes(MAX_CHANNELS * 10_000))) as reader:
        shapes = [block.shape for block in reader.channel_blocks(192_000)]
    assert sum(n for n, _ in shapes) == 10_000
    assert max(n * channels for n, channels in shapes) <= BLOCK_SAMPLES


@pytest.mark.parametrize("kind", ["CAF", "AIFF", "AU", "W64"])
def test_other_headers_cannot_either(kind: str) -> None:
    file = io.BytesIO()
    soundfile.write(file, np.zeros((10, MAX_CHANNELS + 1)), 8000, format=kind, subtype="PCM_16")
    with refuses("out_of_range", None, "65 channels"):
        open_audio(file.getvalue())


def test_a_recording_too_long_for_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nearfuture.audio.decode.MAX_SAMPLES", 300_000)
    data = encoded("flac", np.zeros((700_000, 1), np.float32))
    with refuses("too_large", None, 300_000):
        read(data)


# Levels: one rule


@pytest.mark.parametrize(
    ("value", "reason"),
    [(1e20, "a sample of 1e+20 at 7"), (12345.0, "12345 at 7"), (np.nan, "no finite number")],
)
@pytest.mark.parametrize("kind", ["WAV", "AIFF", "CAF"])
def test_absurd_levels_have_one_verdict(
    kind: str, value: float, reason: str, tmp_path: Path
) -> None:
    samples = np.zeros(4000, np.float32)
    samples[7] = value
    path = tmp_path / "a"
    soundfile.write(path, samples, 8000, format=kind, subtype="FLOAT")
    messages = set()
    functions: list[Callable[[Path], object]] = [read, probe, read_part]
    for function in functions:
        with pytest.raises(AudioError, match=str(path)) as caught:
            function(path)
        messages.add(str(caught.value))
    assert len(messages) == 1
    assert reason in messages.pop()


# Pipes


def through_a_pipe(data: bytes, piece: int = 1 << 16) -> io.BufferedReader:
    out, into = os.pipe()

    def write() -> None:
        with contextlib.suppress(BrokenPipeError), os.fdopen(into, "wb") as file:
            for at in range(0, len(data), piece):
                file.write(data[at : at + piece])

    threading.Thread(target=write, daemon=True).start()
    return os.fdopen(out, "rb")


@pytest.mark.parametrize("form", list(FORMS))
def test_a_pipe_says_the_same_as_a_file(form: str, files: dict[str, bytes]) -> None:
    with through_a_pipe(files[form], 5003) as pipe, open_audio(pipe) as reader:
        got = np.concatenate(list(reader.blocks()))
        assert reader.damage is None
    np.testing.assert_array_equal(got, read(files[form]).samples)


def test_a_wav_comes_out_of_a_pipe_as_it_arrives(files: dict[str, bytes]) -> None:
    out, into = os.pipe()
    with os.fdopen(out, "rb") as pipe, os.fdopen(into, "wb", buffering=0) as writer:
        writer.write(files["wav"][:2044])
        with open_audio(pipe) as reader:
            blocks = reader.blocks()
            assert len(next(blocks)) == 1000
            writer.write(files["wav"][2044:3045])
            assert len(next(blocks)) == 500
            writer.write(files["wav"][3045:3046])
            assert len(next(blocks)) == 1


@pytest.mark.parametrize("length", [0, 0xFFFFFFFF])
def test_a_pipe_that_knows_no_length_is_read_to_its_end(
    length: int, files: dict[str, bytes]
) -> None:
    data = bytearray(files["wav"])
    data[40:44] = length.to_bytes(4, "little")
    with through_a_pipe(bytes(data)) as pipe:
        np.testing.assert_array_equal(read(pipe).samples, read(files["wav"]).samples)


def test_a_pipe_that_breaks_is_named(files: dict[str, bytes]) -> None:
    with through_a_pipe(files["wav"][:-1000]) as pipe, open_audio(pipe) as reader:
        count = sum(len(block) for block in reader.blocks())
        assert reader.damage is not None
        assert "was cut off: 98200 of 99200 bytes of samples are there" in reader.damage.reason
    assert count == 49_100
    with through_a_pipe(files["wav"] * 2) as pipe, open_audio(pipe) as reader:
        assert sum(len(block) for block in reader.blocks()) == 49_600
        assert reader.damage is not None
        assert "holds another recording" in reader.damage.reason


def test_an_open_file_is_read_from_where_it_stands(files: dict[str, bytes]) -> None:
    file = io.BytesIO(b"before" + files["flac"])
    file.seek(6)
    np.testing.assert_array_equal(read(file).samples, read(files["flac"]).samples)
    assert not file.closed


def test_a_channel_is_chosen(files: dict[str, bytes]) -> None:
    samples = speech(1, channels=3)
    data = encoded("flac", samples)
    with open_audio(data) as reader:
        got = np.concatenate(list(reader.blocks(4000, channel=2)))
    np.testing.assert_allclose(got, samples[:, 2], rtol=0, atol=1 / 32768)
    with open_audio(data) as reader, refuses("out_of_range", "channel", 3):
        next(reader.blocks(channel=3))
