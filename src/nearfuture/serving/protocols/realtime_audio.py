"""The input audio buffer of a Realtime client: its first audio opens a session."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from nearfuture.decoding import Endpoint
from nearfuture.serving.errors import RequestError
from nearfuture.serving.protocols.handler import SessionAudio
from nearfuture.serving.protocols.realtime_items import Conversation, ServerEvent
from nearfuture.serving.protocols.realtime_settings import Dialect, RealtimeSettings
from nearfuture.serving.service import Service
from nearfuture.serving.session import Session


class InputAudioBuffer:
    """The audio that a client has appended, and its transcripts; close it.

    Args:
        service: opens the session.
        send: sends events to the client.
        dialect: of the client.
    """

    def __init__(
        self,
        service: Service,
        send: Callable[[list[ServerEvent]], Awaitable[None]],
        dialect: Dialect,
    ) -> None:
        self.dialect = dialect
        self._service, self._send = service, send
        self._conversation = Conversation()
        self._session: Session | None = None
        self._audio: SessionAudio | None = None
        self._detects_turns = False
        self._opened = asyncio.Event()
        self._uncommitted = False  # something was appended since the last commit or clear
        self._committing, self._completed = False, asyncio.Event()

    @property
    def has_audio(self) -> bool:
        """Whether there is audio that was not cleared."""
        return self._session is not None

    async def append(self, data: bytes, model: str, settings: RealtimeSettings) -> None:
        """Append audio; the first of it opens a session with these settings.

        Raises:
            RequestError: if there is no room, and for audio that is not what the settings say.
        """
        if self._session is None:
            await self._open(model, settings)
        assert self._audio is not None
        self._uncommitted = await self._audio.accept(data) or self._uncommitted

    async def commit(self) -> None:
        """End the current utterance; returns when its transcript has been sent.

        Raises:
            RequestError: if nothing was appended since the last commit.
        """
        if self._session is not None and self._audio is not None:
            self._uncommitted = await self._audio.finish() or self._uncommitted
        if not self._uncommitted or self._session is None:
            raise RequestError(
                "input_audio_buffer_commit_empty", "there is nothing to commit: append audio first"
            )
        self._uncommitted = False
        self._session.final_ms = None  # until the text of this end is there
        self._committing, self._completed = True, asyncio.Event()
        await self._session.flush()
        await self._completed.wait()  # so that the next commit is not taken for this one

    def clear(self) -> None:
        """Forget what was not completed; the next audio opens another session."""
        if self._session is not None:
            session, self._session = self._session, None
            self._conversation.clear(1000 * session.received_s)
            self._opened.clear()
            session.close()
        self._uncommitted = False

    async def send_transcripts(self) -> None:
        """Send the client its transcripts, for as long as the session goes on.

        Raises:
            RequestError: when the server stops, or the engine failed.
        """
        while True:
            await self._opened.wait()
            if (session := self._session) is None:
                continue  # it was cleared before this task had its turn
            async for update in session.updates():
                if session is not self._session:
                    break  # cleared
                committed = update.final and self._committing and session.final_ms is not None
                events = self._conversation.events(
                    update,
                    committed=committed,
                    detects_turns=self._detects_turns,
                    dialect=self.dialect,
                )
                await self._send(events)
                if committed:
                    self._committing = False
                    self._completed.set()
                if update.ended:
                    break
            if session is self._session:  # the server has ended it, whether or not it said so
                raise RequestError("draining", "this server is about to stop: connect to another")

    def close(self) -> None:
        """Drop the session."""
        if self._session is not None:
            self._session.close()

    async def _open(self, model: str, settings: RealtimeSettings) -> None:
        self._detects_turns = settings.silence_ms is not None
        endpoint = None
        if settings.silence_ms is not None:
            longest_ms = max(self._service.settings.endpoint.longest_ms, settings.silence_ms)
            endpoint = Endpoint(settings.silence_ms, longest_ms)
        self._session = await self._service.session(
            model=model, rate=settings.rate, endpoint=endpoint, protocol="openai_realtime"
        )
        self._audio = SessionAudio(self._session, settings.encoding)
        self._opened.set()
