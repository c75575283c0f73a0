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

from nearfuture.audio import AudioReader, open_audio
from nearfuture.error import NearfutureError
from nearfuture.serving.connection import first_of
from nearfuture.serving.errors import RequestError
from nearfuture.serving.json_fields import brief
from nearfuture.serving.protocols.openai_fields import resolve_model
from nearfuture.serving.protocols.transcription_request import TranscriptionRequest
from nearfuture.serving.protocols.transcription_response import (
    TranscriptionResult,
    render,
    server_sent_event,
)
from nearfuture.serving.service import Service
from nearfuture.serving.session import Session, Update
from nearfuture.serving.uploads import Upload

# What a form may keep in memory, each of as many as there may be connections.
_MAX_FIELDS = 32
_FIELD_BYTES = 1 << 14
_SPOOL_BYTES = 1 << 16


def routes(service: Service) -> list[BaseRoute]:
    """Return the routes of this protocol."""

    async def models(request: Request) -> Response:
        data = [_model(name) for name in service.models]
        return JSONResponse({"object": "list", "data": data})

    async def model(request: Request) -> Response:
        name = request.path_params["name"]
        resolve_model(service, name)
        return JSONResponse(_model(name))

    return [
        Route("/v1/audio/transcriptions", _Transcriptions(service), methods=["POST"]),
        Route("/v1/models", models),
        Route("/v1/models/{name:path}", model),
    ]


def _model(name: str) -> dict[str, object]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "nearfuture"}


class _Transcriptions:
    """`POST /v1/audio/transcriptions`: an upload is a stream that is not sent in real time.

    The dispatcher takes one quantum of each stream in turn, so live streams do not wait for files.
    """

    def __init__(self, service: Service) -> None:
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        reply = _Reply(scope, receive, send)
        try:
            _refuse_other_charsets(scope)
            async with _form(scope, receive) as form:
                request = TranscriptionRequest.of(form)
                model = resolve_model(self._service, request.model)
                await first_of(self._transcribe(request, model, reply), _disconnected(receive))
        except ClientDisconnect:
            return
        except NearfutureError as error:
            refused = RequestError.of(error)
            self._service.record_error(refused.code)
            await reply.fail(refused)

    async def _transcribe(self, request: TranscriptionRequest, model: str, reply: _Reply) -> None:
        async with self._service.uploads.admit() as upload:
            data = await request.file.read()
            reader = await upload.in_thread(lambda: open_audio(data))
            try:
                blocks = _bounded(reader, self._service.limits.max_upload_s)
                session = await self._service.session(
                    model=model, rate=reader.rate, protocol="openai_rest"
                )
            except BaseException:
                reader.close()
                raise
            async with session, aclosing(_updates(session, blocks, upload)) as updates:
                sent, last = "", None
                async for last in updates:
                    if request.stream and (delta := last.committed[len(sent) :]):
                        await reply.event({"type": "transcript.text.delta", "delta": delta})
                        sent = last.committed
        if last is None or not last.ended or session.audio_dropped:
            raise RequestError("draining", "the server stops before the end: try another, or later")
        if request.stream:
            await reply.event({"type": "transcript.text.done", "text": last.committed})
            await reply.end()
            return
        result = TranscriptionResult(
            last.committed,
            last.words,
            round(session.received_s, 3),
            request.language or "unknown",
        )
        body, media_type = render(result, request.format, request.granularities)
        await reply.send(Response(body, media_type=media_type))


def _refuse_other_charsets(scope: Scope) -> None:
    """Forms are UTF-8: other codecs of this interpreter fail on some bytes, or give no text."""
    _, options = parse_options_header(Headers(scope=scope).get("content-type", ""))
    charset = options.get(b"charset", b"utf-8").lower()
    if charset not in (b"utf-8", b"utf8", b"us-ascii"):
        raise RequestError(
            "invalid", f"the form is in {brief(charset.decode('latin-1'))}: send UTF-8"
        )


@asynccontextmanager
async def _form(scope: Scope, receive: Receive) -> AsyncGenerator[FormData]:
    """The form of a request, of which little is kept in memory: files lie on disk meanwhile."""
    request = Request(scope, receive)
    parser = MultiPartParser(
        request.headers,
        request.stream(),
        max_files=1,
        max_fields=_MAX_FIELDS,
        max_part_size=_FIELD_BYTES,
    )
    parser.spool_max_size = _SPOOL_BYTES
    if parse_options_header(request.headers.get("content-type", ""))[0] != b"multipart/form-data":
        raise RequestError(
            "invalid", "the body is no form: send multipart/form-data, with the file in it"
        )
    try:
        form = await parser.parse()
    except MultiPartException as error:
        raise RequestError("invalid", error.message) from error
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise RequestError(
            "no_space", f"the server cannot keep the upload ({reason}): try again later"
        ) from error
    try:
        yield form
    finally:
        await form.close()


class _Reply:
    """The reply to one request: either whole, or server-sent events."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope, self._receive, self._send = scope, receive, send
        self._started = False

    async def send(self, response: Response) -> None:
        """Send a whole reply."""
        await response(self._scope, self._receive, self._send)

    async def event(self, fields: dict[str, object]) -> None:
        """Send one more event; the first opens the reply."""
        if not self._started:
            self._started = True
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
        await self._body(server_sent_event(fields), more=True)

    async def end(self) -> None:
        """End the events."""
        await self._body("", more=False)

    async def fail(self, error: RequestError) -> None:
        """Send an error: as an event where events have been sent."""
        if self._started:
            await self.event({"error": error.fields()})
            await self.end()
        else:
            await self.send(error.response())

    async def _body(self, text: str, *, more: bool) -> None:
        await self._send({"type": "http.response.body", "body": text.encode(), "more_body": more})


def _bounded(reader: AudioReader, max_s: float) -> Iterator[NDArray[np.float32]]:
    """Return the blocks of a recording that is not too long; few bytes may be hours of silence.

    Raises:
        RequestError: at once, where its header says so, and otherwise when it turns out to be.
    """
    too_long = RequestError(
        "too_long",
        f"an upload may have {max_s / 60:g} minutes of audio: cut it, or stream it",
    )
    if reader.frames is not None and reader.frames > max_s * reader.rate:
        raise too_long

    def blocks() -> Iterator[NDArray[np.float32]]:
        remaining = int(max_s * reader.rate)
        with reader:
            for block in reader.blocks(reader.rate):
                remaining -= len(block)
                if remaining < 0:
                    raise too_long
                yield block
            reader.check()

    return blocks()


async def _updates(
    session: Session, blocks: Iterator[NDArray[np.float32]], upload: Upload
) -> AsyncGenerator[Update]:
    """Feed a recording to a session, and yield its updates meanwhile."""
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
            await session.accept(block)
            if session.audio_dropped:
                break
            await upload.advance(len(block) / session.rate)
        upload.release_turn()  # the rest is the engine's
        await session.finish()
    except BaseException:
        session.close()  # ends its updates, too
        raise


async def _disconnected(receive: Receive) -> None:
    """Wait until the client leaves."""
    while (await receive())["type"] != "http.disconnect":
        pass
