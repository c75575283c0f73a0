"""One line of Python: whatever a user calls a recording, as text, words and utterances."""

import io
from pathlib import Path

import numpy as np
import pytest
import soundfile

from nearfuture.audio import AudioError, read
from nearfuture.decoding import Endpoint
from nearfuture.error import NearfutureError
from nearfuture.runtime import Model, TranscribedUtterance, load, offline
from nearfuture.runtime.bundle import MODELS
from tests.errors import refuses

SAMPLES = MODELS.parent / "samples"
CLIPS = [read(SAMPLES / f"flite-{name}.flac") for name in ("slt-720", "rms-991")]
SAID = ["seven two zero", "nine nine one"]
PAUSED = np.concatenate([CLIPS[0].samples, np.zeros(12_000, np.float32), CLIPS[1].samples])


@pytest.fixture(scope="module", params=["digits", "digits-bidirectional"])
def any_model(request: pytest.FixtureRequest) -> Model:
    return load(request.param)


@pytest.fixture(scope="module")
def digits() -> Model:
    return load("digits")


def test_whatever_a_recording_is_it_is_one_line(digits: Model, tmp_path: Path) -> None:
    path = tmp_path / "a.flac"
    soundfile.write(path, CLIPS[0].samples, 8000, subtype="PCM_16")
    data = path.read_bytes()
    audio = read(path)
    expected = digits.transcribe(audio.samples, rate=8000)
    assert expected.text == SAID[0]
    with path.open("rb") as file:
        for source in (path, str(path), data, io.BytesIO(data), file, audio):
            assert digits.transcribe(source) == expected
    assert digits.transcribe((32768 * audio.samples).astype(np.int16)) == expected
    assert digits.transcribe(audio.samples.tolist()) == expected


def test_text_words_and_utterances_are_of_one_piece(any_model: Model) -> None:
    heard = any_model.transcribe(PAUSED)
    assert [one.text for one in heard.utterances] == SAID
    assert heard.text == " ".join(SAID)
    assert [word.text for word in heard.words] == heard.text.split()
    first, second = heard.utterances
    assert (first.words + second.words, first.continues, second.continues) == (
        heard.words,
        False,
        False,
    )
    assert first.start_ms == first.words[0].start_ms > 0
    assert 1500 < second.start_ms - first.end_ms < 2500
    assert second.end_ms == heard.words[-1].end_ms < heard.audio_ms == len(PAUSED) / 8


@pytest.mark.parametrize("rate", [8000, 11_025])
def test_blocks_of_any_size_give_the_same(any_model: Model, rate: int) -> None:
    whole = any_model.transcribe(PAUSED, rate).utterances
    for size in (1, 999, 30_000):
        sizes = range(0, len(PAUSED), size) if size > 1 else (0, 1, 2)
        blocks = np.split(PAUSED, list(sizes)[1:])
        assert tuple(any_model.utterances(blocks, rate)) == whole


def test_a_word_that_the_longest_utterance_cuts_is_one_word(any_model: Model) -> None:
    whole = any_model.transcribe(PAUSED, endpoint=None)
    heard = any_model.transcribe(PAUSED, endpoint=Endpoint(silence_ms=120, longest_ms=120))
    assert any(utterance.continues for utterance in heard.utterances)
    assert heard.text == whole.text
    assert [word.text for word in heard.words] == [word.text for word in whole.words]
    for word, expected in zip(heard.words, whole.words, strict=True):
        assert (word.start_ms, word.end_ms) == (expected.start_ms, expected.end_ms)
        assert word.confidence == pytest.approx(expected.confidence)


def test_windows_change_no_utterance(monkeypatch: pytest.MonkeyPatch) -> None:
    twin = load("digits-bidirectional")
    long = np.concatenate([PAUSED, np.zeros(12_000, np.float32)] * 3)
    whole = twin.transcribe(long)
    assert [one.text for one in whole.utterances] == SAID * 3
    monkeypatch.setattr(offline, "_WINDOW_S", 3.0)
    monkeypatch.setattr(offline, "_CONTEXT_S", 2.0)
    blocks = np.split(long, range(7001, len(long), 7001))
    windowed = list(twin.utterances(blocks))
    assert [one.text for one in windowed] == SAID * 3
    for one, other in zip(windowed, whole.utterances, strict=True):
        assert one.start_ms == pytest.approx(other.start_ms, abs=80)


def test_none_divides_nothing_and_another_rule_divides_elsewhere(any_model: Model) -> None:
    [one] = any_model.transcribe(PAUSED, endpoint=None).utterances
    assert one.text == " ".join(SAID)
    [one] = any_model.transcribe(PAUSED, endpoint=Endpoint(silence_ms=5000)).utterances
    assert one.text == " ".join(SAID)
    assert any_model.transcribe(PAUSED, endpoint=Endpoint(120)).text == " ".join(SAID)


def test_an_utterance_is_there_before_the_recording_has_ended(digits: Model) -> None:
    def blocks() -> object:
        yield PAUSED[:-8000]
        raise AssertionError("the rest was asked for before the first utterance was taken")

    first = next(iter(digits.utterances(blocks())))  # type: ignore[arg-type]
    assert isinstance(first, TranscribedUtterance)
    assert first.text == SAID[0]


def test_nothing_said_is_no_utterance(any_model: Model) -> None:
    for samples in (0, 1, 8000):
        heard = any_model.transcribe(np.zeros(samples, np.float32))
        assert (heard.text, heard.words, heard.utterances) == ("", (), ())
        assert heard.audio_ms == samples / 8


def test_a_rate_that_contradicts_the_file_is_refused(digits: Model) -> None:
    with refuses("conflict", "rate", 8000, 16000):
        digits.transcribe(SAMPLES / "flite-slt-720.flac", rate=16_000)
    assert digits.transcribe(SAMPLES / "flite-slt-720.flac", rate=8000).text == SAID[0]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("nowhere.wav", "nowhere.wav"),
        (b"", "empty"),
        (np.zeros((10, 2), np.float32), "one channel"),
        (np.zeros(10, np.int32), "int32"),
    ],
)
def test_what_is_no_recording_is_named(digits: Model, source: object, message: str) -> None:
    with pytest.raises(NearfutureError, match=message):
        digits.transcribe(source)  # type: ignore[arg-type]


def test_an_unreadable_file_is_an_audio_error(digits: Model) -> None:
    with pytest.raises(AudioError):
        digits.transcribe(b"no sound at all")
