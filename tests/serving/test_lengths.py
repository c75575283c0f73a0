"""Every length modulo the quantum, over every protocol: the last word is the offline one."""

import base64
import json
from collections.abc import Iterator
from itertools import pairwise

import httpx
import numpy as np
import pytest
from numpy.typing import NDArray
from websockets.sync.client import connect

from nearfuture.audio import resample
from nearfuture.runtime import Dispatcher, Model, load
from nearfuture.serving.pcm import PcmReader
from tests.serving.live import CLIPS, Live, as_int16, clip, live, wav

QUANTUM = 320
LENGTHS = pytest.mark.parametrize(
    "lengths",
    [
        [0, 1, 119, 120, 121, *range(9000, 9000 + QUANTUM, 41)],
        pytest.param([9000 + extra for extra in range(QUANTUM)], marks=pytest.mark.slow),
    ],
    ids=["some", "all"],
)
WORDS = as_int16(clip(CLIPS[1])[0])


@pytest.fixture(scope="module")
def server(engine: Dispatcher) -> Iterator[Live]:
    with live(engine) as server:
        yield server


@pytest.fixture(scope="module")
def digits() -> Model:
    return load("digits")


def in_pieces(data: bytes, length: int) -> list[bytes]:
    """Cut anywhere, odd places included."""
    cuts = np.random.default_rng(length).integers(0, len(data) + 1, 3).tolist()
    borders = [0, *sorted(cuts), len(data)]
    return [data[a:b] for a, b in pairwise(borders)]


@LENGTHS
def test_vosk(server: Live, digits: Model, lengths: list[int]) -> None:
    for length in lengths:
        replies = []
        with connect(f"ws://{server.vosk}", compression=None) as client:
            for message in [*in_pieces(WORDS[:length].tobytes(), length), '{"eof" : 1}']:
                client.send(message)
                replies.append(json.loads(client.recv(timeout=60)))
        text = " ".join(reply["text"] for reply in replies if reply.get("text"))
        assert text == digits.transcribe(WORDS[:length]).text, length


@LENGTHS
def test_openai_rest(server: Live, digits: Model, lengths: list[int]) -> None:
    with httpx.Client(base_url=f"http://{server.address}", timeout=60) as client:
        for length in lengths:
            if length == 0:
                continue  # a WAV without samples is refused, or the rest of a pipe
            answer = client.post(
                "/v1/audio/transcriptions",
                data={"model": "digits"},
                files={"file": ("a.wav", wav(WORDS[:length], 8000))},
            )
            assert answer.json()["text"] == digits.transcribe(WORDS[:length]).text, length


@LENGTHS
@pytest.mark.parametrize("kind", ["audio/pcmu", "audio/pcm"])
def test_openai_realtime(server: Live, digits: Model, lengths: list[int], kind: str) -> None:
    """Each commit is a recording of its own, on one connection; at 24 kHz any phase is met."""
    form: dict[str, object] = {"type": kind}
    rate = 8000
    if kind == "audio/pcm":
        form["rate"] = rate = 24_000
    with connect(f"ws://{server.address}/v1/realtime", compression=None) as client:
        heard = {"format": form, "turn_detection": None}
        session = {"type": "transcription", "audio": {"input": heard}}
        client.send(json.dumps({"type": "session.update", "session": session}))
        for length in lengths:
            if length == 0:
                continue  # an empty commit is refused
            data, samples = encoded(kind, length)
            for piece in in_pieces(data, length):
                audio = base64.b64encode(piece).decode()
                client.send(json.dumps({"type": "input_audio_buffer.append", "audio": audio}))
            client.send('{"type": "input_audio_buffer.commit"}')
            event = {"type": ""}
            while not event["type"].endswith("transcription.completed"):
                event = json.loads(client.recv(timeout=60))
                assert event["type"] != "error", event
            expected = digits.transcribe(samples, rate)
            assert event["transcript"] == expected.text, length


def encoded(kind: str, length: int) -> tuple[bytes, NDArray[np.int16]]:
    """What is sent, and the samples it stands for."""
    if kind == "audio/pcm":
        samples = FAST[: 3 * length + length % 3]
        return samples.tobytes(), samples
    reader = PcmReader("mulaw", rate=8000)
    reader.read(b"\xff" * 16)  # past where a header could be
    codes = np.arange(256, dtype=np.uint8)
    table = reader.read(codes.tobytes()).astype(np.int32)
    nearest = np.abs(WORDS[:length, None].astype(np.int32) - table).argmin(axis=1)
    return codes[nearest].tobytes(), table[nearest].astype(np.int16)


FAST = as_int16(resample(clip(CLIPS[1])[0], 8000, 24_000))
