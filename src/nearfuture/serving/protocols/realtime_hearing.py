"""The audio of a Realtime client: a session that opens with the first of it, and can be cleared."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from nearfuture.decoding import Endpoint
from nearfuture.serving.limits import Refused
from nearfuture.serving.pcm import PcmReader
from nearfuture.serving.protocols.openai_error import OpenAIError
from nearfuture.serving.protocols.realtime_conversation import Conversation, ServerEvent
from nearfuture.serving.protocols.realtime_settings import Dialect, RealtimeSettings
from nearfuture.serving.service import Service
from nearfuture.serving.session import Session


class Hearing:
    """What a client has appended, and what is understood of it; close it.

    Args:
        service: opens the session.
        tell: sends events to the client.

    Attributes:
        dialect: of the client.
    """

    def __init__(
        self,
        service: Service,
        tell: Callable[[list[ServerEvent]], Awaitable[None]],
        dialect: Dialect,
    ) -> None:
        self.dialect = dialect
        self._service, self._tell = service, tell
        self._conversation = Conversation()
        self._session: Session | None = None
        self._reader: PcmReader | None = None
        self._detects = False
        self._begun = asyncio.Event()
        self._fresh = False  # something was appended since the last commit or clear
        self._asked, self._told = False, asyncio.Event()  # the client committed, and was answered

    @property
    def begun(self) -> bool:
        """Whether there is audio that was not cleared."""
        return self._session is not None

    async def hear(self, data: bytes, model: str, settings: RealtimeSettings) -> None:
        """Hear more audio; the first of it opens a session with these settings.

        Raises:
            Refused: if there is no room, and for audio that is not what the settings say.
        """
        if self._session is None:
            await self._open(model, settings)
        assert self._session is not None
        assert self._reader is not None
        samples = self._reader.read(data)
        if self._reader.rate != self._session.rate:
            raise Refused(
                "bad_audio",
                f"the WAV has {self._reader.rate} samples per second, but this session "
                f"{self._session.rate}: send what the session's format says, without a header",
            )
        self._fresh = self._fresh or len(samples) > 0
        await self._session.hear(samples)

    async def commit(self) -> None:
        """End the utterance at hand; returns when its text has been told.

        Raises:
            OpenAIError: if nothing was appended since the last commit.
        """
        if self._session is not None and self._reader is not None:
            held = self._reader.finish()
            self._fresh = self._fresh or len(held) > 0
            await self._session.hear(held)
        if not self._fresh or self._session is None:
            raise OpenAIError(
                "there is nothing to commit: append audio first",
                code="input_audio_buffer_commit_empty",
            )
        self._fresh = False
        self._session.final_ms = None  # until the text of this end is there
        self._asked, self._told = True, asyncio.Event()
        await self._session.flush()
        await self._told.wait()  # so that the next commit is not taken for this one

    async def clear(self) -> None:
        """Forget what was not completed; the next audio opens another session."""
        if self._session is not None:
            session, self._session = self._session, None
            self._conversation.cleared(1000 * session.heard_s)
            self._begun.clear()
            session.close()
        self._fresh = False

    async def follow(self) -> None:
        """Tell the client what is understood, for as long as that goes on.

        Raises:
            Refused: when the server stops.
            NearfutureError: if the engine failed.
        """
        while True:
            await self._begun.wait()
            if (session := self._session) is None:
                continue  # it was cleared before this task had its turn
            async for update in session.updates():
                if session is not self._session:
                    break  # cleared
                asked = update.final and self._asked and session.final_ms is not None
                events = self._conversation.heard(
                    update, asked=asked, detects=self._detects, dialect=self.dialect
                )
                await self._tell(events)
                if asked:
                    self._asked = False
                    self._told.set()
                if update.ended:
                    break
            if session is self._session:  # the server has ended it, whether or not it said so
                raise Refused("draining", "this server is about to stop: connect to another")

    async def close(self) -> None:
        """Forget the session."""
        if self._session is not None:
            self._session.close()

    async def _open(self, model: str, settings: RealtimeSettings) -> None:
        self._detects = settings.silence_ms is not None
        endpoint = None
        if settings.silence_ms is not None:
            longest_ms = max(self._service.settings.endpoint.longest_ms, settings.silence_ms)
            endpoint = Endpoint(settings.silence_ms, longest_ms)
        self._reader = PcmReader(settings.encoding, rate=settings.rate)
        self._session = await self._service.session(
            model=model,
            rate=settings.rate,
            endpoint=endpoint,
            whole=endpoint is None,
            protocol="openai_realtime",
        )
        self._begun.set()
