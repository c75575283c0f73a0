"""The real server inside the lab, begun when somebody first speaks, and the frames behind it.

Captions come from the server of nearfuture and its protocol, `/stream`, mounted below `/live`. What
a protocol for text does not carry, spectrogram and probabilities, comes over a second websocket
that gets the same sound: `/live/frames`. Both compute the same bits, for a stream is the same
beside others and alone.

Shapes: `n` samples, `T` frames, `V` symbols with the blank in front.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from nearfuture.error import NearfutureError
from nearfuture.lab.endpoint import Between, call
from nearfuture.lab.page import as_json
from nearfuture.lab.refusal import Refusal, fields
from nearfuture.lab.spectrogram import Spectrogram
from nearfuture.serving.errors import RequestError
from nearfuture.serving.limits import ServerLimits

if TYPE_CHECKING:
    from nearfuture.runtime import Bundle, Dispatcher, Engine

MODEL = "digits"
LIMITS = ServerLimits(max_streams=4, max_connections=16, max_stream_s=600.0, idle_s=30.0)
"""Of the lab: a few tabs of one person."""

Rate = Annotated[int, Between(4000, 192_000)]
BudgetMs = Annotated[float, Between(0, 10_000)]


class LiveServer:
    """The bundled recogniser behind nearfuture's server, as an application to mount.

    Args:
        limits: of the server.

    Attributes:
        limits: of the server.
    """

    def __init__(self, limits: ServerLimits = LIMITS) -> None:
        self.limits = limits
        self._starting = asyncio.Lock()
        self._dispatcher: Dispatcher | None = None
        self._app: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request or a websocket; the first one waits until the model is loaded."""
        async with self._starting:
            if self._app is None:
                self._dispatcher = await asyncio.to_thread(self._load)
                self._app = self._serve(self._dispatcher)
        await self._app(scope, receive, send)

    def close(self) -> None:
        """End the engine's thread, if it was ever begun."""
        if self._dispatcher is not None:
            self._dispatcher.close(drain=False)

    def _serve(self, dispatcher: Dispatcher) -> ASGIApp:
        from nearfuture.serving.app import create_app
        from nearfuture.serving.service import Service
        from nearfuture.serving.settings import ServerSettings

        return create_app(Service({MODEL: dispatcher}, ServerSettings(limits=self.limits)))

    def _load(self) -> Dispatcher:
        from nearfuture.runtime import Bundle, Dispatcher

        return Dispatcher(
            Bundle.open(MODEL),
            max_streams=self.limits.max_streams,
            max_waiting_s=self.limits.max_waiting_s,
        )


class FrameStreams:
    """The websockets for frames of one lab, as few and as short as its streams of text.

    Args:
        limits: of the server beside them.
    """

    def __init__(self, limits: ServerLimits = LIMITS) -> None:
        self._limits = limits
        self._open = 0

    async def answer(self, websocket: WebSocket) -> None:
        """Answer each message of float32 samples with its frames; "finish" ends the stream."""
        await websocket.accept()
        try:
            if self._open >= self._limits.max_streams:
                raise NearfutureError(f"{self._open} streams are open", code="busy")
            self._open += 1
            try:
                await self._listen(websocket)
            finally:
                self._open -= 1
            await websocket.close()
        except NearfutureError as error:
            with suppress(WebSocketDisconnect, RuntimeError):  # it may have left in the meantime
                await websocket.send_json({"error": fields(error)})
                await websocket.close(RequestError.of(error).close_code)
        except WebSocketDisconnect:
            return

    async def _listen(self, websocket: WebSocket) -> None:
        arguments: Any = call(asked, dict(websocket.query_params))
        stream = await asyncio.to_thread(FrameStream, *arguments)
        await websocket.send_json(as_json(stream.scale))
        left = arguments[0] * self._limits.max_stream_s
        while (message := await self._message(websocket))["type"] == "websocket.receive":
            data = message.get("bytes")
            if data is None:
                await websocket.send_json(as_json(await asyncio.to_thread(stream.finish)))
                return
            samples = _samples(data)
            left -= len(samples)
            if left < 0:
                raise RequestError(
                    "too_long", f"a stream has {self._limits.max_stream_s:g} s at most"
                )
            answer = await asyncio.to_thread(lambda: as_json(stream.accept(samples)))  # noqa: B023 - it is awaited
            await websocket.send_json(answer)
        raise WebSocketDisconnect

    async def _message(self, websocket: WebSocket) -> Message:
        try:
            async with asyncio.timeout(self._limits.idle_s):
                return await websocket.receive()
        except TimeoutError:
            raise RequestError("idle", f"nothing came for {self._limits.idle_s:g} s") from None


class FrameStream:
    """What the model sees and thinks while it listens: bands and probabilities, frame by frame.

    Args:
        rate: samples per second of the sound.
        budget_ms: chooses the lookahead, as the server does.

    Raises:
        NearfutureError: for a budget that no lookahead keeps.

    >>> stream = FrameStream(rate=8000, budget_ms=100)
    >>> found = stream.accept(np.zeros(8000, np.float32))
    >>> found["bands"].shape, found["probabilities"].shape, int(found["probabilities"].max())
    ((98, 40), (24, 17), 255)
    """

    def __init__(self, rate: int, budget_ms: float) -> None:
        from nearfuture.runtime import Stream, StreamConfig

        self._parts: list[NDArray[np.float32]] = []
        engine = _engine()
        manifest = _bundle().manifest
        config = StreamConfig.choose(
            manifest,
            rate,
            budget_ms,
            on_log_probs=lambda heads: self._parts.append(heads[config.lookahead]),
        )
        self._stream = Stream(engine, config)
        self._spectrogram = Spectrogram(rate)
        self.scale: dict[str, Any] = {
            "tau": config.lookahead,
            "frame_ms": manifest.frame_ms,
            "centre_ms": manifest.centre_ms,
            "hop_ms": manifest.architecture.features.hop_ms,
            "window_ms": manifest.architecture.features.window_ms,
            "symbols": ["", *manifest.vocabulary.symbols],
        }

    def accept(self, samples: NDArray[np.float32]) -> dict[str, Any]:
        """Return new bands (T', M) and probabilities (T, V), in 255 steps of light."""
        bands = self._spectrogram.accept(samples)
        self._stream.accept(samples)
        return {"bands": _as_light(bands), "probabilities": self._probabilities()}

    def finish(self) -> dict[str, Any]:
        """Return what waited for its future."""
        self._stream.finish()
        return {"bands": [], "probabilities": self._probabilities()}

    def _probabilities(self) -> NDArray[np.uint8]:
        parts, self._parts = self._parts, []
        if not parts:
            return np.zeros((0, 0), np.uint8)
        light: NDArray[np.float32] = np.rint(255 * np.exp(np.concatenate(parts)))
        return light.astype(np.uint8)


def asked(rate: Rate = 48_000, budget_ms: BudgetMs = 375.0) -> tuple[int, float]:
    """What a websocket for frames asks for, in its address."""
    return rate, budget_ms


def _samples(data: bytes) -> NDArray[np.float32]:
    if len(data) % 4:
        raise Refusal("no-samples", "samples are float32, four bytes each", code="damaged")
    return np.frombuffer(data, "<f4")


def _as_light(bands: NDArray[np.float32]) -> NDArray[np.uint8]:
    """The normalised bands, most of which lie within two deviations, from dark to light."""
    return np.clip(255 * (bands + 1.5) / 4, 0, 255).astype(np.uint8)


@cache
def _bundle() -> Bundle:
    from nearfuture.runtime import Bundle

    return Bundle.open(MODEL)


@cache
def _engine() -> Engine:
    from nearfuture.runtime import Engine

    return Engine(_bundle(), threads=1)
