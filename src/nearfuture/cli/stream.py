"""`nearfuture stream`: a recording sent to a server, its captions shown as they come."""

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter
from rich.text import Text

from nearfuture.cli.console import Console

if TYPE_CHECKING:
    from nearfuture.client import Caption
    from nearfuture.client.conversation import Timing

ProtocolOption = Literal["nearfuture", "vosk", "openai"]
ApiKey = Annotated[str | None, Parameter(env_var="NEARFUTURE_API_KEY", show_env_var=True)]


def stream(
    file: Path,
    /,
    *,
    url: str,
    protocol: ProtocolOption = "nearfuture",
    real_time: Annotated[bool, Parameter(negative="--fast")] = True,
    budget_ms: Annotated[float | None, Parameter(name="--budget")] = None,
    model: str | None = None,
    api_key: ApiKey = None,
    as_json: Annotated[bool, Parameter(name="--json", negative="", show_default=False)] = False,
) -> None:
    """Send a recording to a server and show its captions live; dim text may still change.

    Where there is no terminal, each utterance is printed when it has ended.

    Args:
        file: The recording: WAV, FLAC, OGG or MP3 of any rate and width.
        url: The server, such as ws://localhost:8000/stream.
        protocol: What the server speaks: nearfuture, vosk (vosk-server) or openai (Realtime).
        real_time: Send the recording as if it were being spoken, or as fast as the server takes it.
        budget_ms: The latency to ask for in ms; only in the nearfuture protocol.
        model: The model to ask for; not in the vosk protocol.
        api_key: Sent as a bearer token.
        as_json: One line of JSON when all text has come, instead of captions.
    """
    from nearfuture.audio import read
    from nearfuture.client import Recording, address, choose, converse, rate_sent, websocket
    from nearfuture.client.caption import Transcript
    from nearfuture.client.screen import Screen

    make = choose(protocol, budget_ms=budget_ms, model=model)
    audio = read(file)
    rate = rate_sent(protocol, audio.rate)
    recording = Recording.of(str(file), audio.samples, audio.rate, to=rate)
    transcript = Transcript()
    first_s: float | None = None

    async def run(screen: Screen | None) -> "Timing":
        def heard(at_s: float, caption: "Caption") -> None:
            nonlocal first_s
            if first_s is None and caption.shown.strip():
                first_s = at_s
            transcript.see(caption)
            if screen is not None:
                screen.status = Text(f"{at_s:5.1f} s of {recording.duration_s:.1f} s", "cyan")
                screen.show(caption)

        async with websocket(address(protocol, url), api_key=api_key) as connection:
            return await converse(
                connection, make(rate), recording.pcm, on_caption=heard, real_time=real_time
            )

    if not as_json:
        with Screen(Console()) as screen:
            asyncio.run(run(screen))
        return
    timing = asyncio.run(run(None))
    told = {
        "file": str(file),
        "url": url,
        "protocol": protocol,
        "text": transcript.text,
        "utterances": transcript.utterances,
        "audio_ms": round(1000 * recording.duration_s, 1),
        "first_text_ms": None if first_s is None else round(1000 * first_s, 1),
        "ended_ms": round(1000 * timing.ended_s, 1),
    }
    print(json.dumps(told, ensure_ascii=False))
