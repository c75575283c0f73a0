"""The clients against our own server, over each protocol: the text is the offline text."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from nearfuture.audio import read
from nearfuture.client.caption import CaptionLog
from nearfuture.client.connection import ServerError, websocket
from nearfuture.client.measure import ReferenceRecording, measure
from nearfuture.client.options import MeasureOptions
from nearfuture.client.protocols import address, protocol_factory, sent_rate
from nearfuture.client.streaming import StreamOptions, stream_audio
from nearfuture.runtime import load
from tests.serving.served import SAMPLES, Served, dispatcher, running

PATHS = {"nearfuture": "/stream", "vosk": "/vosk", "openai": "/v1/realtime"}


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with dispatcher() as engine, running(engine) as served:
        yield served


def recording(protocol: Any, name: str) -> ReferenceRecording:
    audio = read(SAMPLES / f"{name}.flac")
    to = sent_rate(protocol, audio.rate)
    said = load("digits").transcribe(ReferenceRecording.of("", audio, to=to).pcm, to)
    return ReferenceRecording.of(name, audio, to=to, text=said.text)


def where(served: Served, protocol: Any) -> str:
    return address(protocol, f"ws://127.0.0.1:{served.port}{PATHS[protocol]}")


@pytest.mark.parametrize(
    ("protocol", "path"), [("nearfuture", "/v1/realtime"), ("openai", "/stream")]
)
def test_the_path_of_another_protocol_is_told(protocol: Any, path: str, served: Served) -> None:
    one = recording(protocol, "flite-slt-41985")
    target = address(protocol, f"ws://127.0.0.1:{served.port}{path}")

    async def use() -> None:
        async with websocket(target) as connection:
            make = protocol_factory(protocol)
            await stream_audio(connection, make(one.rate), one.pcm, lambda *_: None)

    with pytest.raises(ServerError, match=r"the server reports: .* `protocol`, or another path"):
        asyncio.run(use())


def test_a_path_that_is_not_there_is_told(served: Served) -> None:
    async def use() -> None:
        async with websocket(f"ws://127.0.0.1:{served.port}/nowhere"):
            pass

    with pytest.raises(ServerError, match="another path"):
        asyncio.run(use())


@pytest.mark.parametrize("protocol", PATHS)
@pytest.mark.parametrize("name", ["flite-slt-41985", "espeak-ng-en-gb-m3-2759306"])
def test_as_fast_as_it_goes_the_text_is_the_offline_text(
    protocol: Any, name: str, served: Served
) -> None:
    one, transcript = recording(protocol, name), CaptionLog()

    async def run() -> None:
        async with websocket(where(served, protocol)) as connection:
            await stream_audio(
                connection,
                protocol_factory(protocol)(one.rate),
                one.pcm,
                lambda at_s, caption: transcript.add(caption),
                StreamOptions(real_time=False),
            )

    asyncio.run(run())
    assert transcript.text == one.text


@pytest.mark.parametrize("protocol", PATHS)
def test_a_measurement_loses_no_word_and_takes_no_committed_one_back(
    protocol: Any, served: Served
) -> None:
    one = recording(protocol, "flite-rms-991")
    found = asyncio.run(
        measure(
            [one],
            lambda: websocket(where(served, protocol)),
            protocol_factory(protocol),
            MeasureOptions(connections=3),
        )
    )
    assert found.failures == {}
    assert found.word_errors is not None
    assert (found.word_errors.edits.errors, found.word_errors.repeated) == (0, 0)
    assert [played.timeline.committed_revised for played in found.played] == [0, 0, 0]
    figures = found.metrics()
    known = {name for name, values in figures.items() if values is not None}
    expected = {"connect", "first token", "text complete", "finalisation"}
    assert known == expected | ({"partial lag"} if protocol != "openai" else set())
