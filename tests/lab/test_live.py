"""What is said comes through the real server, and beside its text what the model thinks."""

import dataclasses
import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import soundfile
import torch
from starlette.testclient import TestClient, WebSocketDenialResponse

from nearfuture import load
from nearfuture.lab import create_app
from nearfuture.lab.live import LIMITS, FrameStream, LiveServer
from nearfuture.lab.page import ASSETS
from nearfuture.lab.pages import say_something
from nearfuture.lab.race import one_clip
from nearfuture.lab.recording import LONGEST_S, as_wav, decode
from nearfuture.lab.refusal import Refusal
from nearfuture.lab.spectrogram import Spectrogram
from nearfuture.model.features import LogMel
from tests.errors import refuses

TOOL = Path(__file__).parents[2] / "tools" / "make_lab_features.py"


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    live = LiveServer(dataclasses.replace(LIMITS, max_streams=2))
    with TestClient(create_app(live=live), base_url="http://127.0.0.1") as client:
        yield client
    live.close()


def said(client: TestClient, rate: int, samples: Any, **hello: Any) -> list[dict[str, Any]]:
    """What the server sends for a whole stream."""
    with client.websocket_connect("/live/stream") as socket:
        first = {"type": "hello", "rate": rate, "encoding": "float32", **hello}
        socket.send_text(json.dumps(first))
        socket.send_bytes(samples.tobytes())
        socket.send_text('{"type": "finish"}')
        messages = []
        while not messages or not (messages[-1].get("ended") or messages[-1]["type"] == "error"):
            messages.append(socket.receive_json())
    return messages


def test_the_server_inside_the_lab_writes_what_the_library_does(client: TestClient) -> None:
    clip = one_clip(2)
    ready, *_, last = said(client, clip.rate, clip.samples, budget_ms=400)
    model = load("digits", budget_ms=400)
    assert ready["budget"]["worst_ms"] == model.budget.worst_ms == 375.0
    assert last["committed"] == model.transcribe(clip.samples).text


def test_a_page_of_another_origin_hears_nothing(client: TestClient) -> None:
    foreign = {"Origin": "http://evil.example"}
    for path in ("/live/frames", "/live/stream"):
        with (
            pytest.raises(WebSocketDenialResponse) as refused,
            client.websocket_connect(path, headers=foreign),
        ):
            pass
        assert refused.value.status_code == 403


def test_frames_are_those_that_the_text_comes_from(client: TestClient) -> None:
    clip = one_clip(1)
    model = load("digits", budget_ms=400)
    expected = np.rint(255 * np.exp(model.log_probs(clip.samples)))
    with client.websocket_connect(f"/live/frames?rate={clip.rate}&budget_ms=400") as socket:
        scale = socket.receive_json()
        assert (scale["tau"], scale["symbols"][:3]) == (8, ["", " ", "e"])
        letters: list[list[int]] = []
        for at in range(0, len(clip.samples), 5000):
            socket.send_bytes(clip.samples[at : at + 5000].tobytes())
            letters += socket.receive_json()["probabilities"]
        waiting = len(expected) - len(letters)
        assert waiting >= 8  # whose future is not heard yet
        socket.send_text("finish")
        letters += socket.receive_json()["probabilities"]
    assert (np.array(letters) == expected).all()


@pytest.mark.parametrize(
    ("query", "data", "key"),
    [
        ("rate=1", b"", "out-of-range"),
        ("rate=8000&budget_ms=10", b"", "code-out_of_range"),
        ("rate=8000", b"odd", "no-samples"),
        ("speed=2", b"", "unknown-parameter"),
    ],
)
def test_frames_that_cannot_be_are_refused_by_name(
    client: TestClient, query: str, data: bytes, key: str
) -> None:
    with client.websocket_connect(f"/live/frames?{query}") as socket:
        message = socket.receive_json()
        if "error" not in message:
            socket.send_bytes(data)
            message = socket.receive_json()
    assert message["error"]["key"] == key


def test_a_spectrogram_is_what_the_layer_computes() -> None:
    spec = importlib.util.spec_from_file_location("make_lab_features", TOOL)
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert tool.cut().SerializeToString() == (ASSETS / "log-mel.onnx").read_bytes()

    model = tool.cut()
    onnx.load_external_data_for_model(model, str(tool.SOURCE.parent))
    numbers = {each.name: onnx.numpy_helper.to_array(each) for each in model.graph.initializer}
    layer = LogMel(8000, mel_bins=40, floor=1e-7).eval()
    for name in ("mean", "scale"):
        getattr(layer, name).copy_(torch.from_numpy(numbers[f"model.features.{name}"].copy()))
    clip = one_clip(1)
    samples = torch.from_numpy(clip.samples)[None, :, None]
    with torch.no_grad():
        bands = layer(samples, torch.tensor([len(clip.samples)]))[0][0].numpy()
    np.testing.assert_allclose(Spectrogram(8000).accept(clip.samples), bands, rtol=0, atol=2e-5)


def test_any_cut_of_the_sound_gives_the_same_frames() -> None:
    clip = one_clip(3)
    whole = FrameStream(8000, 215).accept(clip.samples)
    stream = FrameStream(8000, 215)
    parts = [stream.accept(clip.samples[at : at + 777]) for at in range(0, len(clip.samples), 777)]
    for name in ("bands", "probabilities"):
        cut = np.concatenate([part[name] for part in parts if len(part[name])])
        assert (cut == whole[name]).all()


def frames_error(client: TestClient, *messages: bytes) -> dict[str, Any]:
    with client.websocket_connect("/live/frames?rate=8000") as socket:
        while True:
            answer: dict[str, Any] = socket.receive_json()
            if "error" in answer:
                return answer["error"]
            if messages:
                first, *messages = messages
                socket.send_bytes(first)


def test_frames_are_as_few_as_streams(client: TestClient) -> None:
    for _ in range(2):  # places come back
        with (
            client.websocket_connect("/live/frames?rate=8000") as first,
            client.websocket_connect("/live/frames?rate=8000") as second,
        ):
            assert [each.receive_json()["tau"] for each in (first, second)] == [8, 8]
            assert frames_error(client)["code"] == "busy"


def test_frames_end_where_nothing_comes_and_where_too_much_has() -> None:
    limits = dataclasses.replace(LIMITS, idle_s=0.2, max_stream_s=2.0)
    app = create_app(live=LiveServer(limits))
    with TestClient(app, base_url="http://127.0.0.1") as client:
        assert frames_error(client)["code"] == "idle"
        second = np.zeros(8000, "<f4").tobytes()
        assert frames_error(client, second, second, second)["code"] == "too_long"


def test_samples_that_are_none_are_refused(client: TestClient) -> None:
    nan = np.full(800, np.nan, "<f4").tobytes()
    assert frames_error(client, nan)["code"] == "invalid"
    assert frames_error(client, b"abc")["code"] == "damaged"


def test_the_server_says_when_it_is_full(client: TestClient) -> None:
    hello = '{"type": "hello", "rate": 8000}'
    with (
        client.websocket_connect("/live/stream") as first,
        client.websocket_connect("/live/stream") as second,
    ):
        for socket in (first, second):
            socket.send_text(hello)
            assert socket.receive_json()["type"] == "ready"
        error = said(client, 8000, np.zeros(8, np.float32))[-1]
        for socket in (first, second):
            socket.send_text('{"type": "finish"}')
            assert socket.receive_json()["ended"]
    assert (error["type"], error["code"]) == ("error", "busy")


def test_an_own_recording_is_decoded_without_a_loss(tmp_path: Path) -> None:
    clip = one_clip(4)
    soundfile.write(tmp_path / "own.flac", np.stack([clip.samples] * 2, 1), clip.rate)
    wav = say_something.own((tmp_path / "own.flac").read_bytes())
    samples, rate = decode(wav.content)
    assert (rate, wav.media_type) == (clip.rate, "audio/wav")
    assert (samples == clip.samples).all()
    assert (np.frombuffer(wav.content[44:], "<f4") == clip.samples).all()
    assert say_something.sound(4).content == wav.content


@pytest.mark.parametrize(
    ("body", "key"),
    [
        (b"", "no-recording"),
        (b"no sound at all", "unreadable"),
        (as_wav(np.zeros(8000 * (LONGEST_S + 1), np.float32), 8000).content, "too-long"),
        (as_wav(np.zeros(800, np.float32), 8000).content, "too-short"),
        (as_wav(np.zeros(8000, np.float32), 8000).content[:-9000], "cut-off"),
        (as_wav(np.full(8000, np.nan, np.float32), 8000).content, "unreadable"),
    ],
)
def test_what_is_no_recording_is_refused_by_name(body: bytes, key: str) -> None:
    with pytest.raises(Refusal) as raised:
        decode(body)
    assert raised.value.key == key


def test_the_dial_shows_every_promise_of_the_model() -> None:
    heads = say_something.promises()["heads"]
    assert [(head["tau"], head["worst_ms"]) for head in heads] == [
        (0, 55.0),
        (4, 215.0),
        (8, 375.0),
        (19, 815.0),
    ]
    with refuses("out_of_range", "budget_ms", 54, 55):
        load("digits", budget_ms=54)
