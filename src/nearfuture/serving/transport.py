"""uvicorn's protocols, for clients of any kind: their mistakes are no errors of ours."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.exceptions import InvalidState
from websockets.protocol import State

from nearfuture.serving.idle import IdleSockets

LOST = "nearfuture.lost"
"""The extension of a websocket's scope with an `asyncio.Event`: set once the socket is gone."""

_STUCK_S = 60.0
_PACKET_BYTES = 1 << 12  # of frames, which may be tiny
_BODY_PACKET_BYTES = 1 << 16
_MAX_FRAGMENTS = 1 << 12
_FEW_CHUNKS = 512
_CHUNK_BYTES = 64  # on the average of more than a few


class UvicornWebSocketProtocol(WebSocketsSansIOProtocol):
    """uvicorn's own, with seven differences.

    * A packet is a few hundred frames at most, for no other client is served while it is parsed.
    * A message comes in some thousand fragments at most; `ws_max_size` does not count empty ones.
    * To pings that come while the client takes nothing there is one answer, to the last of them.
    * Text that is not UTF-8 is answered with 1007, and makes no traceback in the log.
    * The application can learn that the socket is gone while it does not read.
    * A socket whose client takes nothing more is given up, instead of being kept until it does;
      and so is the oldest of those that wait for their client's goodbye, where they are too many.
    * A handshake that is answered with a refusal is complete, and no error in the log.
    """

    lingering: IdleSockets | None = None  # set before the application runs

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._lost = asyncio.Event()
        self._late_pong: list[bytes] = []

    def connection_made(self, transport: Any) -> None:
        """Begin; by default asyncio reads 256 KiB at once."""
        transport.max_size = _PACKET_BYTES
        super().connection_made(transport)

    def handle_ping(self) -> None:
        """Answer, unless answers pile up; RFC 6455, 5.5.3, wants one to the last ping then."""
        if self.writable.is_set():
            super().handle_ping()
        elif pongs := self.conn.data_to_send():  # all of a packet, at its first ping
            self._late_pong = pongs[-1:]

    def resume_writing(self) -> None:
        """Send the last pong: the client takes bytes again."""
        super().resume_writing()
        late_pong, self._late_pong = self._late_pong, []
        self.transport.writelines(late_pong)

    def data_received(self, data: bytes) -> None:
        """Take bytes; a peer that breaks the protocol after its close frame gets no other."""
        try:
            super().data_received(data)
        except InvalidState:
            self.transport.abort()

    def handle_connect(self, event: Any) -> None:
        """Begin the application, which runs from the next turn of the loop on."""
        super().handle_connect(event)
        if hasattr(self, "scope"):  # the handshake was one
            extensions: dict[str, Any] = self.scope["extensions"]
            extensions[LOST] = self._lost

    def handle_cont(self, event: Any) -> None:
        """Take a fragment, unless the message has had too many."""
        if len(self.frames) < _MAX_FRAGMENTS:
            super().handle_cont(event)
        else:
            self._refuse(1009, f"a message has {_MAX_FRAGMENTS} fragments at most")

    def send_receive_event_to_app(self) -> None:
        """Hand over a whole message; text must be UTF-8."""
        if self.curr_msg_data_type == "text" and not _is_utf8(b"".join(self.frames)):
            self._refuse(1007, "text is not UTF-8")
            return
        super().send_receive_event_to_app()

    def _refuse(self, code: int, reason: str) -> None:
        """Close because of what the client has sent, unless this is what it closes with."""
        self.frames = []
        if self.conn.state is State.OPEN:
            self.conn.send_close(code, reason)
            self.handle_parser_exception()

    async def send(self, message: Any) -> None:
        """Send a message of the application."""
        await super().send(message)
        if message["type"] == "websocket.http.response.body" and self.close_sent:
            self.handshake_complete = True

    async def run_asgi(self) -> None:
        """Run the application to its end, then give the peer a while to close the socket."""
        await super().run_asgi()
        if not self.disconnected and self.lingering is not None:
            self.lingering.add(self.transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the application that the socket is gone."""
        super().connection_lost(exc)
        self._lost.set()
        if self.lingering is not None:
            self.lingering.discard(self.transport)


_NO_HANDSHAKE = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class _Connection(h11.Connection):
    """h11's own; a body in chunks of a few bytes is refused, for each costs as much as a large one.

    Nobody else is served while a packet is parsed, and one has room for tens of thousands of them.
    """

    _chunks = _chunk_bytes = 0

    def next_event(self) -> Any:
        """Return the next event.

        Raises:
            RemoteProtocolError: for what is no HTTP, and for a body in many small chunks.
        """
        event = super().next_event()
        if isinstance(event, h11.Request):
            self._chunks = self._chunk_bytes = 0
        elif isinstance(event, h11.Data):
            self._chunks += event.chunk_start
            self._chunk_bytes += len(event.data)
            if self._chunks > max(_FEW_CHUNKS, self._chunk_bytes // _CHUNK_BYTES):
                raise h11.RemoteProtocolError(f"chunks of less than {_CHUNK_BYTES} bytes")
        return event


class UvicornHttpProtocol(H11Protocol):
    """uvicorn's own, with five differences.

    * A request for a websocket that is not complete with its headers is refused.
    * While it has no request it is one of the idle sockets, and may be closed.
    * A body that stops being HTTP in its middle ends the request; the application's answer to what
      it has seen until then would be a second one.
    * A client that has taken nothing of an answer for a minute is given up.
    * A body in many small chunks is refused.
    """

    _stuck: asyncio.TimerHandle | None = None

    def __init__(
        self, *arguments: Any, idle: IdleSockets, lingering: IdleSockets, **options: Any
    ) -> None:
        super().__init__(*arguments, **options)
        self.conn = _Connection(h11.SERVER)
        self._idle, self._lingering = idle, lingering

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for headers; by default asyncio reads 256 KiB at once."""
        transport.max_size = _BODY_PACKET_BYTES  # type: ignore[attr-defined]
        super().connection_made(transport)
        self._idle.add(transport)

    def data_received(self, data: bytes) -> None:
        """Take bytes; only whole headers end the wait."""
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before:
            self._idle.discard(self.transport)

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        """Become a websocket."""
        self._idle.discard(self.transport)
        super().handle_websocket_upgrade(event)
        protocol: Any = self.transport.get_protocol()
        protocol.lingering = self._lingering
        if not protocol.handshake_initiated:  # with a body, say: nothing would read the rest
            self.transport.write(_NO_HANDSHAKE)
            self.transport.close()

    def on_response_complete(self) -> None:
        """Wait for the next request, unless it has come already."""
        answered = self.cycle
        super().on_response_complete()
        if self.cycle is answered and self.transport.get_protocol() is self:
            self._idle.add(self.transport)

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP, as far as an answer is still possible."""
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.close()

    def pause_writing(self) -> None:
        """Give the client a minute to take what waits for it."""
        super().pause_writing()
        self._stuck = self.loop.call_later(_STUCK_S, self.transport.abort)

    def resume_writing(self) -> None:
        """Stop the clock: the client takes bytes again."""
        super().resume_writing()
        self._cancel_stuck()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the socket."""
        super().connection_lost(exc)
        self._idle.discard(self.transport)
        self._cancel_stuck()

    def _cancel_stuck(self) -> None:
        if self._stuck is not None:
            self._stuck.cancel()


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
