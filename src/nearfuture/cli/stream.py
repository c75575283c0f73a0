"""`nearfuture stream`: a recording sent to a server, its captions shown as they come."""

import asyncio
import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter
from rich.text import Text

from nearfuture.cli.console import Console

if TYPE_CHECKING:
    from nearfuture.client.caption import Caption
    from nearfuture.client.captions import CaptionScreen
    from nearfuture.client.connection import Connection
    from nearfuture.client.protocols import StreamProtocol
    from nearfuture.client.streaming import Timing


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ServerOptions:
    """The protocol of a server and its options.

    Attributes:
        protocol: The server's protocol: nearfuture, vosk (vosk-server) or openai (Realtime).
        budget_ms: The budget to request in ms; only in the nearfuture protocol.
        model: The model to request; not in the vosk protocol.
        api_key: Sent as a bearer token.
    """

    protocol: Literal["nearfuture", "vosk", "openai"] = "nearfuture"
    budget_ms: Annotated[float | None, Parameter(name="--budget")] = None
    model: str | None = None
    api_key: Annotated[str | None, Parameter(env_var="NEARFUTURE_API_KEY", show_env_var=True)] = (
        None
    )

    def protocol_factory(self) -> "Callable[[int], StreamProtocol]":
        """Return a function that makes the client's side of the protocol for a sample rate."""
        from nearfuture.client.protocols import protocol_factory

        return protocol_factory(self.protocol, budget_ms=self.budget_ms, model=self.model)

    def connector(self, url: str) -> "Callable[[], AbstractAsyncContextManager[Connection]]":
        """Return what connects to the server; an invalid address is refused at once."""
        from nearfuture.client.connection import websocket
        from nearfuture.client.protocols import address

        target = address(self.protocol, url)
        return lambda: websocket(target, api_key=self.api_key)


def stream(
    file: Path,
    /,
    *,
    url: str,
    server: ServerOptions = ServerOptions(),
    real_time: Annotated[bool, Parameter(negative="--fast")] = True,
    as_json: Annotated[bool, Parameter(name="--json", negative="", show_default=False)] = False,
) -> None:
    """Send a recording to a server and show its captions live; dim text may still change.

    Where there is no terminal, each utterance is printed when it has ended.

    Args:
        file: The recording: WAV, FLAC, OGG or MP3 of any rate and width.
        url: The server, such as ws://localhost:8000/stream.
        server: How to talk to it.
        real_time: Send the recording as if it were being spoken, or as fast as the server takes it.
        as_json: One line of JSON when all text has come, instead of captions.
    """
    from nearfuture.audio import read
    from nearfuture.client.caption import CaptionLog
    from nearfuture.client.captions import CaptionScreen
    from nearfuture.client.measure import ReferenceRecording
    from nearfuture.client.protocols import sent_rate
    from nearfuture.client.streaming import StreamOptions, stream_audio

    make = server.protocol_factory()
    audio = read(file)
    rate = sent_rate(server.protocol, audio.rate)
    recording = ReferenceRecording.of(str(file), audio, to=rate)
    connect = server.connector(url)
    log = CaptionLog()
    first_s: float | None = None

    async def run(screen: "CaptionScreen | None") -> "Timing":
        def show(at_s: float, caption: "Caption") -> None:
            nonlocal first_s
            if first_s is None and caption.text.strip():
                first_s = at_s
            log.add(caption)
            if screen is not None:
                screen.status = Text(f"{at_s:5.1f} s of {recording.duration_s:.1f} s", "cyan")
                screen.show(caption)

        options = StreamOptions(real_time=real_time)
        async with connect() as connection:
            return await stream_audio(connection, make(rate), recording.pcm, show, options)

    if not as_json:
        with CaptionScreen(Console()) as screen:
            asyncio.run(run(screen))
        return
    timing = asyncio.run(run(None))
    fields = {
        "file": str(file),
        "url": url,
        "protocol": server.protocol,
        "text": log.text,
        "utterances": log.utterances,
        "audio_ms": round(1000 * recording.duration_s, 1),
        "first_text_ms": None if first_s is None else round(1000 * first_s, 1),
        "ended_ms": round(1000 * timing.ended_s, 1),
    }
    print(json.dumps(fields, ensure_ascii=False))
