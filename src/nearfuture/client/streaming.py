"""One recording streamed to a server over one connection, with everything that comes back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from nearfuture.client.caption import Caption
from nearfuture.client.connection import Closed, Connection, ServerError
from nearfuture.client.playback import CHUNK_MS, Pacing, PcmChunk, chunks
from nearfuture.client.protocols import Pcm, StreamProtocol

OnCaption: TypeAlias = Callable[[float, Caption], None]
"""Called with each caption and when it came, in seconds from the start of the recording."""

_READY_S = 10.0


@dataclass(frozen=True, kw_only=True)
class StreamOptions:
    """Options for streaming a recording.

    Attributes:
        real_time: play it, or send as fast as the server takes it.
        chunk_ms: how much audio is sent at once.
        finish_timeout_s: how long the server may take after the end of the audio, or to take a
            chunk; if the recording is not played in real time, its duration is added.
    """

    real_time: bool = True
    chunk_ms: float = CHUNK_MS
    finish_timeout_s: float = 30.0


@dataclass
class Timing:
    """The times of a stream, in seconds from the start of playing.

    Attributes:
        duration_s: of the recording.
        ready_s: from the open connection to the server's readiness for audio.
        ended_s: when the last text arrived.
        pacing: how punctually it was played.
    """

    duration_s: float
    ready_s: float = 0.0
    ended_s: float = 0.0
    pacing: Pacing = field(default_factory=Pacing)


async def stream_audio(
    connection: Connection,
    protocol: StreamProtocol,
    pcm: Pcm,
    on_caption: OnCaption,
    options: StreamOptions | None = None,
) -> Timing:
    """Play a recording to a server until all its text has come.

    The only clock is that of the event loop. In real time each chunk is handed over when its last
    sample would have been spoken, whatever the server does meanwhile: a slow server does not slow
    the speaker down, so its delays show. Otherwise the server sets the pace.

    Args:
        connection: open, and used for nothing else.
        protocol: a new one; it knows the rate.
        pcm: (n,) int16 at the rate of the protocol.
        on_caption: called with each caption as it comes.
        options: by default in real time.

    Raises:
        ServerError: where the server fails, leaves too early, or exhausts the patience.
    """
    options = StreamOptions() if options is None else options
    clock = asyncio.get_running_loop().time
    timing = Timing(duration_s=len(pcm) / protocol.rate)
    opened = clock()
    await _open(connection, protocol)
    start = clock()
    timing.ready_s = start - opened
    allowed_s = options.finish_timeout_s + (0.0 if options.real_time else timing.duration_s)
    played = False

    async def play(limit: asyncio.Timeout) -> None:
        nonlocal played
        for chunk in chunks(pcm, protocol.rate, chunk_ms=options.chunk_ms):
            if options.real_time:
                await asyncio.sleep(start + chunk.due_s - clock())
            limit.reschedule(clock() + allowed_s)
            await _send(connection, protocol, chunk, timing.pacing, start)
        played = True
        for message in protocol.ending():
            await connection.send(message)

    async def listen() -> None:
        while not protocol.ended:
            message = await connection.receive()
            arrived_s = clock() - start
            if (caption := protocol.read(message)) is not None:
                timing.ended_s = arrived_s
                on_caption(arrived_s, caption)
        if not played:
            raise ServerError("the server ended the stream before the audio was over")

    try:
        async with asyncio.timeout(None) as limit:
            limit.reschedule(start + min(timing.duration_s, options.chunk_ms / 1000) + allowed_s)
            await _run_both(play(limit), listen())
    except TimeoutError as error:
        # No times that differ from one recording to the next: failures are counted by reason.
        what = "finish within" if played else "take the audio for"
        raise ServerError(f"the server did not {what} {options.finish_timeout_s:g} s") from error
    except Closed as closed:
        if not protocol.complete_when_closed:
            raise ServerError(f"{closed} before its text was complete") from closed
    return timing


async def _open(connection: Connection, protocol: StreamProtocol) -> None:
    try:
        async with asyncio.timeout(_READY_S):
            for message in protocol.opening():
                await connection.send(message)
            while not protocol.ready:
                protocol.read(await connection.receive())
    except TimeoutError as error:
        raise ServerError(
            f"the server is not ready for audio within {_READY_S:g} s, in the {protocol.name} "
            f"protocol: is it a server of another one? (`protocol`)"
        ) from error
    except Closed as closed:
        raise ServerError(f"{closed} before any audio") from closed


async def _send(
    connection: Connection, protocol: StreamProtocol, chunk: PcmChunk, pacing: Pacing, start: float
) -> None:
    clock = asyncio.get_running_loop().time
    began_s = clock() - start
    for message in protocol.audio(chunk.pcm):
        await connection.send(message)
    pacing.sent(
        due_s=chunk.due_s,
        began_s=began_s,
        taken_s=clock() - start,
        chunk_s=len(chunk.pcm) / protocol.rate,
    )


async def _run_both(play: Coroutine[Any, Any, None], listen: Coroutine[Any, Any, None]) -> None:
    """Run until the listener is done; a player that is cut off lets the listener say why."""
    player = asyncio.create_task(play)
    listener = asyncio.create_task(listen)
    try:
        await asyncio.wait((player, listener), return_when=asyncio.FIRST_EXCEPTION)
        if player.done() and not listener.done():
            error = player.exception()
            if error is not None and not isinstance(error, Closed):
                raise error
        await listener
    finally:
        for task in (player, listener):
            task.cancel()
        await asyncio.gather(player, listener, return_exceptions=True)
