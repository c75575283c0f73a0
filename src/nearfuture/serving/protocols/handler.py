"""What the live protocols share: the life of a websocket from its first message to its end."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from typing import ClassVar

from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket

from nearfuture.error import NearfutureError
from nearfuture.serving.connection import Disconnected, WebSocketConnection, first_of
from nearfuture.serving.errors import RequestError
from nearfuture.serving.pcm import PcmReader
from nearfuture.serving.service import Service
from nearfuture.serving.session import Session

_LOG = logging.getLogger("nearfuture.serving")


class LiveHandler(ABC):
    """One client of a live protocol.

    Messages are acted on one after another, results are sent meanwhile. Whatever ends the
    connection, an error reaches the client if it can, and the place of its stream is free before
    the websocket closes: a client that comes back finds room.

    Args:
        websocket: accepted.
        connection: the same under the limits of the server.
        service: opens the session.
    """

    path: ClassVar[str]

    def __init__(
        self, websocket: WebSocket, connection: WebSocketConnection, service: Service
    ) -> None:
        self.connection, self.service = connection, service
        self.session: Session | None = None
        self.over = False  # no message is answered any more

    @classmethod
    def route(cls, service: Service) -> WebSocketRoute:
        """Return the route where this protocol is spoken."""

        async def endpoint(websocket: WebSocket) -> None:
            offered = websocket.scope.get("subprotocols", [])
            try:
                connection = await WebSocketConnection.accept(
                    websocket, service.limits, cls.subprotocol(offered)
                )
            except Disconnected:
                return
            await cls(websocket, connection, service)._run()

        return WebSocketRoute(cls.path, endpoint)

    @classmethod
    @abstractmethod
    def subprotocol(cls, offered: list[str]) -> str | None:
        """Return the subprotocol to accept of those that a client offers."""

    @abstractmethod
    async def on_message(self, message: str | bytes) -> None:
        """Act on a message of the client."""

    @abstractmethod
    async def send_results(self) -> None:
        """Send results for as long as there are any; its end is that of the connection."""

    @abstractmethod
    async def send_error(self, error: RequestError) -> str:
        """Send an error, if the protocol has messages for that; return why the socket closes."""

    async def open(self) -> None:
        """Begin: what comes before the first message."""
        return

    def release(self) -> None:
        """Free the place of the stream."""
        if self.session is not None:
            self.session.close()

    async def _run(self) -> None:
        try:
            await self.open()
            await first_of(self._receive(), self.send_results(), self.connection.lost())
            self.release()
            await self.connection.close()
        except Disconnected:
            pass
        except NearfutureError as error:
            await self._fail(RequestError.of(error))
        except Exception:
            _LOG.exception("a stream failed")
            await self._fail(
                RequestError("internal", "the server made a mistake: it is in its log")
            )
        finally:
            self.release()

    async def _receive(self) -> None:
        async for message in self.connection.messages():
            await self.on_message(message)
            if self.over:
                return

    async def _fail(self, error: RequestError) -> None:
        if self.service.draining and error.code == "internal":  # its session was closed for that
            error = RequestError("draining", "this server is about to stop: connect to another")
        self.service.record_error(error.code)
        self.release()
        try:
            reason = await self.send_error(error)
        except (Disconnected, RequestError):
            return
        await self.connection.close(error.close_code, reason)


class SessionAudio:
    """The audio of a client on its way into a session, which keeps its rate.

    Args:
        session: accepts the samples.
        encoding: of raw audio, see `PcmReader`.
    """

    def __init__(self, session: Session, encoding: str = "int16") -> None:
        self._session = session
        self._reader = PcmReader(encoding, rate=session.rate)

    async def accept(self, data: bytes) -> bool:
        """Accept bytes of audio; return whether they completed any samples.

        Raises:
            RequestError: for audio that cannot be read, or has another rate.
        """
        samples = await self._reader.read_in_turns(data)
        if self._reader.rate != self._session.rate:
            raise RequestError(
                "bad_audio",
                f"the WAV has {self._reader.rate} samples per second, but this stream "
                f"{self._session.rate}: name its rate before the audio, or send samples alone",
            )
        await self._session.accept(samples)
        return len(samples) > 0

    async def finish(self) -> bool:
        """Accept the last bytes that could have begun a file; return whether there were any."""
        samples = self._reader.finish()
        await self._session.accept(samples)
        return len(samples) > 0
