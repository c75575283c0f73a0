"""nearfuture's own protocol: what a client is told is what the model says offline, to the end."""

import json
import struct
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import soxr
from websockets.exceptions import InvalidStatus

from nearfuture.runtime import Dispatcher, Model, load
from tests.serving.served import (
    Served,
    hello,
    receive,
    running,
    said,
    send,
    stream,
    transcript,
    until_the_end,
)

SPEECH = said("flite-slt-720", "flite-rms-991")
WORDS = said("flite-slt-720")


def finals(updates: list[dict[str, Any]]) -> list[str]:
    return [update["committed"] for update in updates if update["final"]]


def test_the_tests_hear_something(offline: Model) -> None:
    assert len(offline.transcribe(SPEECH).words) > 4


@pytest.mark.parametrize(
    "lengths",
    [
        [0, 1, 119, 120, 121, 439, 440, 441],
        [10_000 + extra for extra in range(0, 320, 13)],
        pytest.param([9000 + extra for extra in range(320)], marks=pytest.mark.slow),
    ],
    ids=["short", "some", "all"],
)
def test_the_text_is_the_offline_text_for_every_length(
    served: Served, offline: Model, lengths: list[int]
) -> None:
    for n in lengths:
        expected = offline.transcribe(WORDS[:n])
        updates = stream(served, WORDS[:n], budget_ms=400)
        last = updates[-1]
        assert transcript(updates) == expected.text, n
        assert (last["final"], last["ended"], last["provisional"]) == (True, True, "")
        assert last["audio_ms"] == round(expected.audio_ms, 1)
        assert [word["text"] for word in last["words"]] == [w.text for w in expected.words]
        assert [word["end_ms"] for word in last["words"]] == [
            round(w.end_ms, 1) for w in expected.words
        ]


@pytest.mark.parametrize("seed", range(3))
def test_any_cut_into_messages_odd_bytes_included(
    served: Served, offline: Model, seed: int
) -> None:
    random = np.random.default_rng(seed)
    sizes = [*random.integers(0, 3000, 40).tolist(), 1, 0, 1, 3]
    updates = stream(served, SPEECH, sizes, budget_ms=400)
    assert transcript(updates) == offline.transcribe(SPEECH).text


@pytest.mark.parametrize("budget_ms", [60, 220, 380, 820])
def test_every_budget(served: Served, budget_ms: int) -> None:
    expected = load("digits", budget_ms).transcribe(SPEECH)
    updates = stream(served, SPEECH, budget_ms=budget_ms)
    assert transcript(updates) == expected.text
    assert len([text for text in finals(updates) if text]) == 2  # the pause divides it


def test_null_divides_nothing(served: Served, offline: Model) -> None:
    updates = stream(served, SPEECH, budget_ms=400, endpoint=None)
    assert finals(updates) == [offline.transcribe(SPEECH).text]


def test_a_pause_of_400_ms_divides_nothing_at_800(served: Served, offline: Model) -> None:
    speech = said("flite-slt-720", "flite-rms-991", pause_s=0.4)
    updates = stream(served, speech, budget_ms=400)
    assert finals(updates) == [offline.transcribe(speech).text]
    divided = stream(served, SPEECH, budget_ms=400, endpoint={"silence_ms": 120})
    assert len(finals(divided)) > 2
    assert transcript(divided) == offline.transcribe(SPEECH).text


@pytest.mark.parametrize("rate", [4000, 11_025, 16_000, 44_100, 48_000, 192_000])
def test_any_rate(served: Served, offline: Model, rate: int) -> None:
    resampled = soxr.resample(WORDS.astype(np.float32) / 32768, 8000, rate)
    samples = np.round(32767 * np.clip(resampled, -1, 1)).astype(np.int16)
    expected = offline.transcribe(samples, rate)
    assert transcript(stream(served, samples, rate=rate, budget_ms=400)) == expected.text


def test_float32_is_int16(served: Served, offline: Model) -> None:
    samples = (WORDS.astype(np.float32) / 32768).astype("<f4")
    with served.connect() as client:
        hello(client, encoding="float32", budget_ms=400)
        client.send(samples.tobytes()[:4001])
        client.send(samples.tobytes()[4001:])
        send(client, "finish")
        assert transcript(until_the_end(client)) == offline.transcribe(WORDS).text


def wav(samples: np.ndarray, rate: int) -> bytes:
    body = samples.astype("<i2").tobytes()
    form = struct.pack("<HHIIHH", 1, 1, rate, 2 * rate, 2, 16)
    header = b"WAVEfmt " + struct.pack("<I", 16) + form + b"data" + struct.pack("<I", len(body))
    return b"RIFF" + struct.pack("<I", len(header) + len(body)) + header + body + b"LIST\0\0\0\0"


def test_a_wav_header_in_pieces_says_the_rate(served: Served) -> None:
    resampled = soxr.resample(WORDS.astype(np.float32) / 32768, 8000, 16_000)
    samples = np.round(32767 * np.clip(resampled, -1, 1)).astype(np.int16)
    data = wav(samples, 16_000)
    with served.connect() as client:
        assert hello(client, budget_ms=400)["rate"] == 8000
        for at in range(50):
            client.send(data[at : at + 1])
        again = receive(client)
        assert (again["type"], again["rate"]) == ("ready", 16_000)
        assert again["budget"]["items"][0]["name"] == "resampler"
        client.send(data[50:])
        send(client, "finish")
        expected = load("digits", 400).transcribe(samples, 16_000)
        assert transcript(until_the_end(client)) == expected.text


def test_a_wav_header_behind_a_flush(served: Served, offline: Model) -> None:
    with served.connect() as client:
        hello(client, rate=16_000, budget_ms=400)
        send(client, "flush")
        assert receive(client)["final"]
        client.send(wav(WORDS, 8000))
        assert receive(client)["rate"] == 8000
        send(client, "finish")
        updates = until_the_end(client)
        assert client.protocol.close_code == 1000
    assert transcript(updates) == offline.transcribe(WORDS).text


def test_a_long_utterance_is_not_sent_again_and_again(served: Served) -> None:
    speech = said(*["flite-slt-720"] * 10)
    *updates, last = stream(served, speech, budget_ms=400, endpoint=None)
    for update in updates:
        assert all(word["end_ms"] >= update["audio_ms"] - 10_000 for word in update["words"])
    before = updates[-1]["words"]
    assert 4 < len(before) < len(last["words"])
    assert all(word in last["words"] for word in before[:-1])  # the last one may still grow


def test_the_usual_rate_is_that_of_the_model(engine: Dispatcher) -> None:
    class Wide:
        """The digits, as a model of 16 kHz would describe itself."""

        manifest = replace(engine.manifest, rate=16_000)

        def __getattr__(self, name: str) -> Any:
            return getattr(engine, name)

    with running(engine) as served:
        served.service._dispatchers["wide"] = Wide()  # type: ignore[assignment]
        for fields in ({}, {"rate": None}, {"rate": None, "version": None, "encoding": None}):
            with served.connect() as client:
                assert hello(client, model="wide", **fields)["rate"] == 16_000
            with served.connect() as client:
                assert hello(client, **fields)["rate"] == 8000


def test_ready_says_what_is_promised(served: Served, offline: Model) -> None:
    with served.connect(subprotocols=["nearfuture.stream.v1"]) as client:
        assert client.subprotocol == "nearfuture.stream.v1"
        ready = hello(client, budget_ms=400, version=1)
    assert (ready["version"], ready["model"], ready["rate"]) == (1, "digits", 8000)
    assert ready["budget"]["frames"] == 8
    assert ready["budget"]["worst_ms"] == 375.0
    assert sum(item["ms"] for item in ready["budget"]["items"]) == 375.0
    assert ready["endpoint"] == {"silence_ms": 800.0, "longest_ms": 20_000.0}


def test_updates_only_grow_within_an_utterance(served: Served) -> None:
    before = {"utterance": 0, "committed": "", "audio_ms": 0.0}
    for update in stream(served, SPEECH, budget_ms=400):
        assert update["utterance"] - before["utterance"] in (0, 1)
        assert update["audio_ms"] >= before["audio_ms"]
        if update["utterance"] == before["utterance"]:
            assert update["committed"].startswith(before["committed"])
        assert update["latency_ms"] == 375.0
        assert update["compute_ms"] > 0
        before = update


def test_a_flush_is_an_end_and_a_beginning(served: Served, offline: Model) -> None:
    half = 9001
    with served.connect() as client:
        hello(client, budget_ms=400)
        client.send(SPEECH[:half].tobytes())
        send(client, "flush")
        send(client, "flush")
        client.send(SPEECH[half:].tobytes())
        send(client, "finish")
        updates = until_the_end(client)
    ends = [update for update in updates if update["final"]]
    assert ends[0]["committed"] == offline.transcribe(SPEECH[:half]).text
    assert ends[0]["audio_ms"] == round(half / 8, 1)
    assert (ends[1]["committed"], ends[1]["ended"]) == ("", False)
    rest = offline.transcribe(SPEECH[half:])
    assert transcript(ends[2:]) == rest.text
    assert [update["utterance"] for update in ends] == list(range(len(ends)))
    words = [word for update in ends[2:] for word in update["words"]]
    assert words[0]["start_ms"] == round(rest.words[0].start_ms + half / 8, 1)


def test_ping_is_answered_at_any_time(served: Served) -> None:
    with served.connect() as client:
        send(client, "ping")
        assert receive(client) == {"type": "pong", "received_ms": 0.0}
        hello(client)
        client.send(bytes(160))
        send(client, "ping")
        assert receive(client) == {"type": "pong", "received_ms": 10.0}


@pytest.mark.parametrize(
    ("message", "code", "close", "told"),
    [
        ("{", "bad_message", 1003, "a text message is a JSON object"),
        ("[1]", "bad_message", 1003, "a text message is a JSON object"),
        ("[" * 5000, "bad_message", 1003, "a text message is a JSON object"),
        (b"\0\0", "bad_message", 1003, "say hello first"),
        ('{"type": "flush"}', "bad_message", 1003, "the first message is a hello"),
        ('{"type": "hello", "version": 2}', "unsupported", 1002, "this server speaks 1"),
        ('{"type": "hello", "rate": 3999}', "invalid", 1002, "rate is 3999"),
        ('{"type": "hello", "rate": 8000.5}', "invalid", 1002, "rate is 8000.5"),
        ('{"type": "hello", "rate": true}', "invalid", 1002, "rate is True"),
        ('{"type": "hello", "rate": 192001}', "invalid", 1002, "rate is 192001"),
        ('{"type": "hello", "encoding": "opus"}', "invalid", 1002, "'opus'"),
        ('{"type": "hello", "budget_ms": 40}', "out_of_range", 1002, "55 ms"),
        ('{"type": "hello", "budget_ms": NaN}', "invalid", 1002, "a number is expected"),
        ('{"type": "hello", "budget_ms": "low"}', "invalid", 1002, "a number is expected"),
        (
            '{"type": "hello", "model": "words"}',
            "model_not_found",
            1002,
            "there is no model 'words'",
        ),
        ('{"type": "hello", "endpoint": 800}', "invalid", 1002, "endpoint is null, or"),
        ('{"type": "hello", "endpoint": {"silence_ms": 0}}', "out_of_range", 1002, "above 0"),
        ('{"type": "hello", "sample_rate": 8000}', "invalid", 1002, "'sample_rate'"),
    ],
)
def test_a_mistake_is_reported_by_name_and_ends_it(
    served: Served, message: str | bytes, code: str, close: int, told: str
) -> None:
    with served.connect() as client:
        client.send(message)
        (error,) = until_the_end(client)
        assert (error["type"], error["code"]) == ("error", code)
        assert told in error["message"]
        assert "\n" not in error["message"]
        assert client.protocol.close_code == close
    assert served.service.streams == 0


@pytest.mark.parametrize(
    ("message", "code", "told"),
    [
        ('{"type": "hello"}', "bad_message", "flush, finish or ping"),
        ('{"type": 5}', "bad_message", "the type 5: flush"),
        ("garbage", "bad_message", "JSON object"),
        (b"fLaC\0\0\0\x22" + bytes(40), "bad_audio", "FLAC"),
        (b"\xff\xf3\x84\xc4" + bytes(188) + b"\xff\xf3\x84\xc4", "bad_audio", "MP3"),
        (b".snd\0\0\0\x18" + bytes(40), "bad_audio", "AU"),
        (b'{"eof" : 1}', "bad_message", "binary"),
        (b'{"type": "finish"}', "bad_message", "binary"),
        ('{"type": "flush", "now": 1}', "bad_message", "'now'"),
    ],
)
def test_a_mistake_after_hello(served: Served, message: str | bytes, code: str, told: str) -> None:
    with served.connect() as client:
        hello(client)
        client.send(message)
        (error,) = until_the_end(client)
    assert error["code"] == code
    assert told in error["message"]


def test_samples_that_are_no_numbers_are_reported(served: Served) -> None:
    with served.connect() as client:
        hello(client, encoding="float32")
        client.send(np.array([0.0, np.nan] * 2, "<f4").tobytes())
        (error,) = until_the_end(client)
        assert (error["code"], client.protocol.close_code) == ("bad_audio", 1007)


def test_what_comes_after_finish_changes_nothing(served: Served, offline: Model) -> None:
    with served.connect() as client:
        hello(client, budget_ms=400)
        client.send(WORDS.tobytes())
        for _ in range(3):
            send(client, "finish")
        client.send(WORDS.tobytes())
        send(client, "flush")
        updates = until_the_end(client)
    assert transcript(updates) == offline.transcribe(WORDS).text
    assert sum(update["ended"] for update in updates) == 1


def test_a_key_is_wanted_where_there_is_no_route(served: Served) -> None:
    with pytest.raises(InvalidStatus, match=r"403|404"):
        served.connect("/nowhere")


def test_the_document_shows_what_happens(served: Served) -> None:
    """Every message of docs/stream-protocol.md has the fields that this server sends."""
    from pathlib import Path

    page = (Path(__file__).parents[2] / "docs" / "stream-protocol.md").read_text(encoding="utf-8")
    shown: dict[str, dict[str, Any]] = {}
    for line in page.splitlines():
        if line.startswith("← {"):
            message = json.loads(line.removeprefix("← "))
            shown[message["type"]] = message
    with served.connect() as client:
        sent = {"ready": hello(client, budget_ms=400)}
        client.send(WORDS.tobytes())
        send(client, "ping")
        send(client, "finish")
        for message in until_the_end(client):
            sent[message["type"]] = message
    with served.connect() as client:
        sent["error"] = hello(client, budget_ms=40)
    assert {kind: set(fields) for kind, fields in sent.items()} == {
        kind: set(fields) for kind, fields in shown.items()
    }
