"""OpenAI's HTTP interface: recordings as text, and the list of models."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, asynccontextmanager

import numpy as np
from numpy.typing import NDArray
from python_multipart.multipart import parse_options_header
from starlette.datastructures import FormData, Headers
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from nearfuture.error import NearfutureError
from nearfuture.serving.connection import first_of
from nearfuture.serving.limits import Refused, shown
from nearfuture.serving.protocols.openai_error import OpenAIError
from nearfuture.serving.protocols.openai_model import chosen
from nearfuture.serving.protocols.transcription_reply import Heard, event, formatted
from nearfuture.serving.protocols.transcription_request import TranscriptionRequest
from nearfuture.serving.recording import Recording, recording
from nearfuture.serving.service import Service
from nearfuture.serving.session import Session, Update
from nearfuture.serving.uploads import Upload

# What a form may keep in memory, each of as many as there may be connections.
_MOST_FIELDS = 32
_FIELD_BYTES = 1 << 14
_SPOOL_BYTES = 1 << 16


def routes(service: Service) -> list[BaseRoute]:
    """Where this protocol is spoken."""

    async def models(request: Request) -> Response:
        listed = [_model(name) for name in service.models]
        return JSONResponse({"object": "list", "data": listed})

    async def model(request: Request) -> Response:
        name = request.path_params["name"]
        try:
            chosen(service, name)
        except OpenAIError as error:
            return error.response()
        return JSONResponse(_model(name))

    return [
        Route("/v1/audio/transcriptions", _Transcriptions(service), methods=["POST"]),
        Route("/v1/models", models),
        Route("/v1/models/{name:path}", model),
    ]


def _model(name: str) -> dict[str, object]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "nearfuture"}


class _Transcriptions:
    """`POST /v1/audio/transcriptions`: an upload is heard like a live stream, as fast as it goes.

    The dispatcher takes one quantum of each stream in turn, so live streams do not wait for files.
    """

    def __init__(self, service: Service) -> None:
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = _Answer(scope, receive, send)
        try:
            _refuse_odd_charset(scope)
            async with _form(scope, receive) as form:
                asked = TranscriptionRequest.of(form)
                model = chosen(self._service, asked.model)
                await first_of(self._transcribe(asked, model, answer), _gone(receive))
        except ClientDisconnect:
            return
        except NearfutureError as error:
            told = OpenAIError.of(error)
            self._service.refused(told.openai_code or "bad_request")
            await answer.fail(told)

    async def _transcribe(self, asked: TranscriptionRequest, model: str, answer: _Answer) -> None:
        async with self._service.uploads.entered() as upload:
            data = await asked.file.read()
            opened = await self._service.uploads.in_thread(lambda: recording(data))
            try:
                bounded = _bounded(opened, self._service.limits.most_upload_s)
                session = await self._service.session(
                    model=model, rate=opened.rate, whole=True, protocol="openai_rest"
                )
            except BaseException:
                opened.close()
                raise
            async with session, aclosing(_updates(session, bounded, upload)) as updates:
                told, last = "", None
                async for last in updates:
                    if asked.stream and (delta := last.committed[len(told) :]):
                        await answer.event({"type": "transcript.text.delta", "delta": delta})
                        told = last.committed
        if last is None or not last.ended or session.dropped:
            raise Refused("draining", "the server stops before the end: ask another, or later")
        if asked.stream:
            await answer.event({"type": "transcript.text.done", "text": last.committed})
            await answer.end()
            return
        heard = Heard(
            last.committed, last.words, round(session.heard_s, 3), asked.language or "unknown"
        )
        body, media_type = formatted(heard, asked.format, asked.granularities)
        await answer.send(Response(body, media_type=media_type))


def _refuse_odd_charset(scope: Scope) -> None:
    """Forms are UTF-8: other codecs of this interpreter fail on some bytes, or give no text."""
    _, options = parse_options_header(Headers(scope=scope).get("content-type", ""))
    charset = options.get(b"charset", b"utf-8").lower()
    if charset not in (b"utf-8", b"utf8", b"us-ascii"):
        raise OpenAIError(f"the form is in {shown(charset.decode('latin-1'))}: send UTF-8")


@asynccontextmanager
async def _form(scope: Scope, receive: Receive) -> AsyncGenerator[FormData]:
    """The form of a request, of which little is kept in memory: files lie on disk meanwhile."""
    request = Request(scope, receive)
    parser = MultiPartParser(
        request.headers,
        request.stream(),
        max_files=1,
        max_fields=_MOST_FIELDS,
        max_part_size=_FIELD_BYTES,
    )
    parser.spool_max_size = _SPOOL_BYTES
    if parse_options_header(request.headers.get("content-type", ""))[0] != b"multipart/form-data":
        raise OpenAIError("the body is no form: send multipart/form-data, with the file in it")
    try:
        form = await parser.parse()
    except MultiPartException as error:
        raise OpenAIError(error.message) from error
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise Refused(
            "no_space", f"the server cannot keep the upload ({reason}): try again later"
        ) from error
    try:
        yield form
    finally:
        await form.close()


class _Answer:
    """The reply to one request: either whole, or events one by one."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope, self._receive, self._send = scope, receive, send
        self._streams = False

    async def send(self, response: Response) -> None:
        """A whole reply."""
        await response(self._scope, self._receive, self._send)

    async def event(self, fields: dict[str, object]) -> None:
        """One more event; the first opens the reply."""
        if not self._streams:
            self._streams = True
            headers = {
                "content-type": "text/event-stream; charset=utf-8",
                "cache-control": "no-cache",
            }
            await self._send(
                {
                    "type": "http.response.start",
                    "status": 200,
                    "headers": [(k.encode(), v.encode()) for k, v in headers.items()],
                }
            )
        await self._body(event(fields), more=True)

    async def end(self) -> None:
        """No more events."""
        await self._body("", more=False)

    async def fail(self, error: OpenAIError) -> None:
        """An error, as what has been sent allows."""
        if self._streams:
            await self.event({"error": error.fields()})
            await self.end()
        else:
            await self.send(error.response())

    async def _body(self, text: str, *, more: bool) -> None:
        await self._send({"type": "http.response.body", "body": text.encode(), "more_body": more})


def _bounded(opened: Recording, most_s: float) -> Iterator[NDArray[np.float32]]:
    """The blocks of a recording that is not too long; few bytes may be hours of silence.

    Raises:
        Refused: at once, where it says that it is, and otherwise when it turns out to be.
    """
    too_long = Refused(
        "too_long",
        f"an upload may have {most_s / 60:g} minutes of audio: cut it, or stream it",
    )
    if opened.seconds is not None and opened.seconds > most_s:
        raise too_long

    def blocks() -> Iterator[NDArray[np.float32]]:
        left = int(most_s * opened.rate)
        for block in opened.blocks:
            left -= len(block)
            if left < 0:
                raise too_long
            yield block

    return blocks()


async def _updates(
    session: Session, blocks: Iterator[NDArray[np.float32]], upload: Upload
) -> AsyncGenerator[Update]:
    """Feed a recording to a session, and give what it hears meanwhile."""
    feeding = asyncio.create_task(_feed(session, blocks, upload))
    try:
        async for update in session.updates():
            yield update
        await feeding
    finally:
        feeding.cancel()


async def _feed(session: Session, blocks: Iterator[NDArray[np.float32]], upload: Upload) -> None:
    try:
        while (block := await upload.in_thread(lambda: next(blocks, None))) is not None:
            await session.hear(block)
            if session.dropped:
                break
            await upload.has_heard(len(block) / session.rate)
        upload.give()  # the rest is the engine's
        await session.finish()
    except BaseException:
        session.close()  # ends its updates, too
        raise


async def _gone(receive: Receive) -> None:
    """Until the client leaves."""
    while (await receive())["type"] != "http.disconnect":
        pass
