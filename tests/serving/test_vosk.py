"""vosk-server's websocket protocol, driven by an independent client in its published sequence."""

import asyncio
import json
import random
from collections.abc import Iterator
from contextlib import suppress
from io import BytesIO
from typing import Any

import numpy as np
import pytest
import soundfile
import websockets
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from websockets.sync.client import ClientConnection, connect

from nearfuture.runtime import Dispatcher, Model, load
from nearfuture.serving.errors import RequestError
from nearfuture.serving.protocols.vosk_messages import Command, VoskConfig, parse
from tests.serving.live import CLIPS, Live, as_int16, clip, live, spoken
from tests.serving.served import reset

EOF_FORMS = ('{"eof" : 1}', '{"eof":1}', '{ "eof"\n:\t1 }', '{"eof": true}', '{"eof": 1, "x": 0}')


@pytest.fixture(scope="module")
def server(engine: Dispatcher) -> Iterator[Live]:
    with live(engine) as server:
        yield server


@pytest.fixture(scope="module")
def digits() -> Model:
    return load("digits")


@pytest.fixture(autouse=True)
def _every_place_is_given_back(server: Live) -> Iterator[None]:
    yield
    server.wait_until_free()


async def published_sequence(
    url: str, pcm: bytes, rate: int, *, eof: str = '{"eof" : 1}'
) -> list[dict[str, Any]]:
    """What vosk-server's own test client does: lockstep, 0.2 s at a time, then the end."""
    replies = []
    async with websockets.connect(url) as websocket:
        await websocket.send('{ "config" : { "sample_rate" : %d } }' % rate)  # noqa: UP031
        size = 2 * int(rate * 0.2)
        for at in range(0, len(pcm), size):
            await websocket.send(pcm[at : at + size])
            replies.append(json.loads(await websocket.recv()))
        await websocket.send(eof)
        replies.append(json.loads(await websocket.recv()))
        with pytest.raises(websockets.ConnectionClosedOK):  # nothing more, and a proper end
            await websocket.recv()
    return replies


def texts(replies: list[dict[str, Any]]) -> str:
    return " ".join(reply["text"] for reply in replies if reply.get("text"))


def talk(websocket: ClientConnection, *messages: str | bytes) -> list[dict[str, Any]]:
    replies = []
    for message in messages:
        websocket.send(message)
        replies.append(json.loads(websocket.recv(timeout=30)))
    return replies


def pieces(pcm: NDArray[np.int16], samples: int = 1600) -> list[bytes]:
    data = pcm.tobytes()
    return [data[at : at + 2 * samples] for at in range(0, len(data), 2 * samples)]


@pytest.mark.parametrize("name", [*CLIPS, "flite-slt-41985"])
def test_the_published_sequence_gives_the_offline_text(
    server: Live, digits: Model, name: str
) -> None:
    samples, rate = clip(name)
    pcm = as_int16(samples)
    replies = asyncio.run(published_sequence(f"ws://{server.vosk}", pcm.tobytes(), rate))
    expected = digits.transcribe(pcm, rate).text
    assert texts(replies) == expected
    assert expected
    for reply in replies:
        assert set(reply) in ({"partial"}, {"text"}, {"text", "result"})


def test_many_clients_hear_their_own_text(server: Live, digits: Model) -> None:
    async def all_at_once() -> list[list[dict[str, Any]]]:
        url = f"ws://{server.vosk}"
        return await asyncio.gather(
            *(
                published_sequence(url, as_int16(clip(CLIPS[i % 3])[0]).tobytes(), 8000)
                for i in range(9)
            )
        )

    expected = [digits.transcribe(as_int16(clip(name)[0])).text for name in CLIPS]
    assert len(set(expected)) == 3
    assert [texts(replies) for replies in asyncio.run(all_at_once())] == expected * 3


@pytest.mark.parametrize("eof", EOF_FORMS)
def test_the_end_may_be_spaced_at_will(server: Live, digits: Model, eof: str) -> None:
    pcm = as_int16(clip(CLIPS[0])[0])
    replies = asyncio.run(published_sequence(f"ws://{server.vosk}", pcm.tobytes(), 8000, eof=eof))
    assert texts(replies) == digits.transcribe(pcm).text


@pytest.mark.parametrize("place", ["root", "any path", "by path"])
def test_where_it_is_spoken(server: Live, place: str) -> None:
    urls = {
        "root": f"ws://{server.vosk}",
        "any path": f"ws://{server.vosk}/en/small",
        "by path": f"ws://{server.address}/vosk",
    }
    with connect(urls[place]) as websocket:
        assert talk(websocket, bytes(640), '{"eof": 1}') == [{"partial": ""}, {"text": ""}]


def test_a_microphone_in_lockstep(server: Live, digits: Model) -> None:
    """Blocks from another task, of a size that fits no quantum; the pause ends an utterance."""
    pcm = spoken(*CLIPS[:2], pause_s=1.4)

    async def captioned() -> list[dict[str, Any]]:
        blocks: asyncio.Queue[bytes | None] = asyncio.Queue()

        async def microphone() -> None:
            for block in pieces(pcm, 1111):
                blocks.put_nowait(block)
                await asyncio.sleep(0.001)
            blocks.put_nowait(None)

        replies = []
        async with websockets.connect(f"ws://{server.vosk}") as websocket:
            listening = asyncio.create_task(microphone())
            await websocket.send('{"config": {"sample_rate": 8000}}')
            while (block := await blocks.get()) is not None:
                await websocket.send(block)
                replies.append(json.loads(await websocket.recv()))
            await websocket.send('{"eof": 1}')
            replies.append(json.loads(await websocket.recv()))
            await listening
        return replies

    replies = asyncio.run(captioned())
    results = [reply for reply in replies if "text" in reply]
    assert [bool(result["text"]) for result in results] == [True, True, False]
    assert texts(results) == digits.transcribe(pcm).text
    after = replies[replies.index(results[0]) + 1]
    assert after == {"partial": ""}  # what was told is not repeated


def test_a_reply_tells_what_is_known_without_more_audio(server: Live, digits: Model) -> None:
    pcm = as_int16(clip(CLIPS[0])[0])[:9600]
    stream = digits.stream(8000)
    last = stream.accept(pcm)[-1]
    assert last.provisional  # both kinds of text are in it
    with connect(f"ws://{server.vosk}") as websocket:
        (reply,) = talk(websocket, pcm.tobytes())
        assert reply == {"partial": (last.committed + last.provisional).strip()}


def test_utterances_that_end_in_one_message_have_one_reply(server: Live, digits: Model) -> None:
    pcm = spoken(*CLIPS, pause_s=1.4)
    with connect(f"ws://{server.vosk}") as websocket:
        replies = talk(websocket, pcm.tobytes(), '{"eof": 1}')
    assert [set(reply) for reply in replies] == [{"text", "result"}, {"text"}]
    assert texts(replies) == digits.transcribe(pcm).text
    assert [word["word"] for word in replies[0]["result"]] == texts(replies).split()


def test_words_have_the_times_of_the_stream(server: Live, digits: Model) -> None:
    pcm = spoken(*CLIPS[:2], pause_s=1.4)
    with connect(f"ws://{server.vosk}") as websocket:
        replies = talk(websocket, *pieces(pcm), '{"eof": 1}')
    told = [word for reply in replies for word in reply.get("result", [])]
    offline = digits.transcribe(pcm).words
    assert [(word["word"], word["start"], word["end"]) for word in told] == [
        (word.text, pytest.approx(word.start_ms / 1000), pytest.approx(word.end_ms / 1000))
        for word in offline
    ]
    assert all(0 < word["conf"] <= 1 for word in told)


def test_words_can_be_left_out(server: Live) -> None:
    pcm = as_int16(clip(CLIPS[0])[0])
    with connect(f"ws://{server.vosk}") as websocket:
        websocket.send('{"config": {"sample_rate": 8000, "words": false, "phrase_list": []}}')
        (*_, last) = talk(websocket, *pieces(pcm), '{"eof": 1}')
    assert set(last) == {"text"}
    assert last["text"]


@pytest.mark.parametrize("length", random.Random(5).sample(range(9000, 9320), 8))
def test_any_length_and_any_cut_give_the_offline_text(
    server: Live, digits: Model, length: int
) -> None:
    pcm = as_int16(clip(CLIPS[1])[0])[:length]
    data, draw = pcm.tobytes(), random.Random(length)
    cuts = sorted(draw.sample(range(len(data)), 12))  # odd places too: half a sample is held
    parts = [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]
    with connect(f"ws://{server.vosk}") as websocket:
        replies = talk(websocket, *parts, b"", '{"eof": 1}')
    assert len(replies) == 15
    assert texts(replies) == digits.transcribe(pcm).text


@pytest.mark.parametrize("rate", [7919, 11025, 44100])
def test_an_odd_rate_keeps_nobody_waiting(server: Live, digits: Model, rate: int) -> None:
    """A reply knows when all is computed that can be, whatever the resampler holds back."""
    pcm = spoken(CLIPS[0], pause_s=0.0, rate=rate)
    with connect(f"ws://{server.vosk}") as websocket:
        websocket.send(json.dumps({"config": {"sample_rate": rate}}))
        (*_, last) = talk(websocket, *pieces(pcm, rate // 9), '{"eof": 1}')
    assert last["text"] == digits.transcribe(pcm, rate).text


def test_reset_gives_a_result_and_starts_afresh(server: Live, digits: Model) -> None:
    first, second = (as_int16(clip(name)[0]) for name in CLIPS[:2])
    with connect(f"ws://{server.vosk}") as websocket:
        (*_, reset) = talk(websocket, *pieces(first), '{"reset" : 1}')
        assert reset["text"] == digits.transcribe(first).text
        assert talk(websocket, b"") == [{"partial": ""}]  # what was told is not shown again
        assert talk(websocket, '{"reset":1}', '{"reset": 1}') == [{"text": ""}] * 2
        (*_, last) = talk(websocket, *pieces(second), '{"eof": 1}')
    assert last["text"] == digits.transcribe(second).text
    assert last["result"][0]["start"] > len(first) / 8000  # times go on


@pytest.mark.parametrize("end", [b'{"eof" : 1}', b'{"eof":1}\n'])
def test_an_end_that_comes_as_binary_is_no_audio(server: Live, digits: Model, end: bytes) -> None:
    pcm = as_int16(clip(CLIPS[0])[0])
    with connect(f"ws://{server.vosk}") as websocket:
        websocket.send(b'{"config": {"sample_rate": 8000}}')
        (*_, last) = talk(websocket, *pieces(pcm), end)
        assert last["text"] == digits.transcribe(pcm).text
        with pytest.raises(websockets.ConnectionClosedOK):
            websocket.recv(timeout=30)


def test_alternatives_are_one(server: Live, digits: Model) -> None:
    pcm = as_int16(clip(CLIPS[0])[0])
    with connect(f"ws://{server.vosk}") as websocket:
        websocket.send('{"config": {"sample_rate": 8000, "max_alternatives": 20}}')
        (*_, last) = talk(websocket, *pieces(pcm), '{"reset": 1}')
        assert talk(websocket, '{"eof": 1}') == [
            {"alternatives": [{"text": "", "confidence": 1.0}]}
        ]
    (only,) = last["alternatives"]
    offline = digits.transcribe(pcm)
    assert only["text"] == offline.text
    assert only["confidence"] == pytest.approx(np.mean([w.confidence for w in offline.words]))
    assert [word["word"] for word in only["result"]] == only["text"].split()
    assert all(set(word) == {"word", "start", "end"} for word in only["result"])


def test_a_config_names_a_model_that_is_served(server: Live, digits: Model) -> None:
    pcm = as_int16(clip(CLIPS[0])[0])
    with connect(f"ws://{server.vosk}") as websocket:
        websocket.send('{"config": {"sample_rate": 8000, "model": "digits"}}')
        (*_, last) = talk(websocket, *pieces(pcm), '{"eof": 1}')
    assert last["text"] == digits.transcribe(pcm).text


def test_the_last_few_bytes_are_processed(server: Live) -> None:
    pcm = as_int16(clip(CLIPS[0])[0])
    few = pcm[-7:].tobytes()
    seconds = server.service.metrics.audio.labels("digits")
    before = seconds._value.get()
    with connect(f"ws://{server.vosk}") as websocket:
        assert talk(websocket, few, '{"eof": 1}') == [{"partial": ""}, {"text": ""}]
    server.wait_until_free()
    assert seconds._value.get() - before == pytest.approx(7 / 8000)


def test_no_audio_is_no_text(server: Live) -> None:
    with connect(f"ws://{server.vosk}") as websocket:
        assert talk(websocket, '{"reset": 1}', b"", '{"eof": 1}') == [
            {"text": ""},
            {"partial": ""},
            {"text": ""},
        ]


def test_a_second_end_is_not_answered(server: Live) -> None:
    with connect(f"ws://{server.vosk}") as websocket:
        websocket.send('{"eof" : 1}')
        with suppress(websockets.ConnectionClosed):
            websocket.send('{"eof" : 1}')
        assert json.loads(websocket.recv(timeout=30)) == {"text": ""}
        with pytest.raises(websockets.ConnectionClosedOK):
            websocket.recv(timeout=30)


def test_without_a_config_the_rate_is_vosks_default(server: Live, digits: Model) -> None:
    pcm = as_int16(clip(CLIPS[0])[0])
    with connect(f"ws://{server.vosk}") as websocket:
        (*_, last) = talk(websocket, *pieces(pcm), '{"eof": 1}')
    assert last["text"] == digits.transcribe(pcm, 8000).text


def test_a_config_after_audio(server: Live, digits: Model) -> None:
    pcm = as_int16(clip(CLIPS[0])[0])
    first, *rest = pieces(pcm)
    with connect(f"ws://{server.vosk}") as websocket:
        talk(websocket, first)
        websocket.send('{"config": {"sample_rate": 8000.0, "words": 0}}')
        (*_, last) = talk(websocket, *rest, '{"eof": 1}')
        assert last == {"text": digits.transcribe(pcm).text}
    with connect(f"ws://{server.vosk}") as websocket:
        talk(websocket, first)
        websocket.send('{"config": {"sample_rate": 16000}}')
        refused(websocket, 1002, "keeps its rate")


def refused(websocket: ClientConnection, code: int, reason: str) -> None:
    with pytest.raises(websockets.ConnectionClosedError) as closed:
        websocket.recv(timeout=30)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == code
    assert reason in closed.value.rcvd.reason


@pytest.mark.parametrize(
    ("message", "code", "reason"),
    [
        ("{", 1003, "not JSON"),
        ("seven two zero", 1003, "not JSON"),
        ("[" * 100_000, 1003, "not JSON"),
        ("", 1003, "not JSON"),
        ("[]", 1003, "not understood"),
        ('{"eof": 0}', 1003, "not understood"),
        ('{"eof": [1]}', 1003, "not understood"),
        ('{"start": 1}', 1003, "not understood"),
        ('{"config": 16000}', 1002, "object is expected"),
        ('{"config": {"phrase_list": ["two"]}}', 1002, "phrase_list is not offered"),
        ('{"config": {"max_alternatives": "many"}}', 1002, "max_alternatives"),
        ('{"config": {"max_alternatives": -1}}', 1002, "max_alternatives"),
        ('{"config": {"model": "vosk-model-en-us"}}', 1002, "no model"),
        ('{"config": {"model": 7}}', 1002, "model is 7"),
        ('{"config": {"grammar": "two"}}', 1002, "grammar"),
        *(
            (f'{{"config": {{"sample_rate": {rate}}}}}', 1002, "rate")
            for rate in ("0", "-8000", "8000.5", '"fast"', "[8000]", "true", "1e400", "3", "NaN")
        ),
    ],
)
@pytest.mark.parametrize("begun", [False, True])
def test_what_is_no_message_ends_the_connection(
    server: Live, message: str, code: int, reason: str, begun: bool
) -> None:
    with connect(f"ws://{server.vosk}") as websocket:
        if begun:
            talk(websocket, bytes(3200))
        websocket.send(message)
        refused(websocket, code, reason)
    assert server.is_alive()


@pytest.mark.parametrize("name", ["FLAC", "MP3", "AIFF", "AU"])
def test_a_file_is_refused_by_name(server: Live, name: str) -> None:
    file = BytesIO()
    soundfile.write(file, clip(CLIPS[0])[0], 8000, format=name)
    with connect(f"ws://{server.vosk}") as websocket:
        websocket.send(file.getvalue())
        refused(websocket, 1007, f"this audio is {name}")


@pytest.mark.parametrize("value", [np.nan, 5000.0])
def test_samples_that_are_no_sound_end_the_connection(server: Live, value: float) -> None:
    file = BytesIO()
    soundfile.write(file, np.full(1600, value, np.float32), 8000, format="WAV", subtype="FLOAT")
    with connect(f"ws://{server.vosk}") as websocket:
        websocket.send(file.getvalue())
        refused(websocket, 1007, "")
    server.wait_until_free()


def test_ten_megabytes_in_one_message_are_too_many(server: Live) -> None:
    with connect(f"ws://{server.vosk}") as websocket:
        talk(websocket, bytes(3200))
        with suppress(websockets.ConnectionClosed):
            websocket.send(bytes(10_000_000))
        with pytest.raises(websockets.ConnectionClosedError) as closed:
            websocket.recv(timeout=30)
        assert closed.value.rcvd is None or closed.value.rcvd.code == 1009
    assert server.is_alive()


def test_who_leaves_in_the_middle_of_a_word_gives_back_the_place(server: Live) -> None:
    pcm = as_int16(clip(CLIPS[0])[0])
    for cut in (1, 4, 7):
        with connect(f"ws://{server.vosk}") as websocket:
            talk(websocket, *pieces(pcm)[:cut])
            assert server.service.streams == 1
            reset(websocket)
            server.wait_until_free()


@settings(max_examples=40)
@given(
    st.text()
    | st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["config", "eof", "reset", "sample_rate", "words"]), inner
            )
        ),
        max_leaves=6,
    ).map(json.dumps)
)
def test_any_text_is_understood_or_refused(text: str) -> None:
    with suppress(RequestError):  # and nothing else
        assert isinstance(parse(text), Command | VoskConfig)
