"""The lab as an ASGI application: pages, their endpoints, and the files that they load."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import AsyncIterator, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import HTTPConnection, Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nearfuture.error import NearfutureError
from nearfuture.lab.endpoint import call
from nearfuture.lab.frame import render
from nearfuture.lab.live import FrameStreams, LiveServer
from nearfuture.lab.page import ASSETS, PACKAGE, Media, Page, as_json
from nearfuture.lab.pages import FRONT_PAGE, PAGES
from nearfuture.lab.refusal import Refusal, fields
from nearfuture.lab.texts import LANGUAGES, Language, preferred
from nearfuture.serving.errors import RequestError
from nearfuture.serving.origin import OriginPolicy

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; media-src 'self' blob:; worker-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
"""Nothing from elsewhere, and nothing inline."""

_FOREIGN = RequestError(
    "forbidden", "the lab is for its own pages on this machine: open it by the address it printed"
)
_LONGEST_BODY = 8 << 20
_MOST_BODIES = 8  # at once; each is kept until it is whole
_BODY_S = 30.0
_MOST_WAITING = 64  # figures of sliders that are drawn on give up their places
_MOST_STREAMED = 4  # answers line by line, such as a training: each has a model of its own
_GONE = 499
"""Nobody reads it: the client has closed the connection (the number is nginx's)."""
_HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-cache"),
]


def create_app(
    *,
    language: Language | None = None,
    pages: Sequence[Page] = PAGES,
    live: LiveServer | None = None,
) -> Starlette:
    """Create the application.

    Args:
        language: of a page whose address names none; by default what the browser asks for.
        pages: the story, in order.
        live: the server behind what is said into a microphone; close it in the end.
    """
    lab = _Lab(pages, language)
    live = LiveServer() if live is None else live
    app = Starlette(
        routes=[
            Route("/", lab.front),
            Mount("/assets", StaticFiles(directory=ASSETS)),
            Route("/api/{page}/{endpoint}", lab.api, methods=["GET", "POST"]),
            Route("/source/{path:path}", lab.source),
            WebSocketRoute("/live/frames", FrameStreams(live.limits).answer),
            Mount("/live", live),
            Route("/{page}", lab.page),
        ],
        middleware=[Middleware(_Guard)],
        exception_handlers={NearfutureError: _refused},
    )
    app.router.redirect_slashes = False
    app.state.warm_up = lab.warm_up
    return app


class _Lab:
    def __init__(self, pages: Sequence[Page], language: Language | None) -> None:
        self._story = tuple(pages)
        self._pages = {page.name: page for page in (FRONT_PAGE, *pages)}
        self._sources = {file for page in self._pages.values() for file in page.behind}
        self._language = language
        # One figure at a time: the audit keeps the state of a process's random generators.
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="figure")
        self._turn, self._step = asyncio.Lock(), asyncio.Lock()
        self._bodies = self._streamed = self._waiting = 0

    async def warm_up(self) -> None:
        """Load what figures need, while a browser loads the first page."""
        async with self._turn:
            await asyncio.get_running_loop().run_in_executor(self._worker, _load)

    async def front(self, request: Request) -> Response:
        return self._html(FRONT_PAGE, request)

    async def page(self, request: Request) -> Response:
        return self._html(self._page(request), request)

    async def api(self, request: Request) -> Response:
        page = self._page(request)
        name = request.path_params["endpoint"]
        if name not in page.endpoints:
            raise Refusal(
                "no-figure", f"the page {page.name} computes no {name}", code="not_found", name=name
            )
        body = await self._body(request)
        work = partial(call, page.endpoints[name], dict(request.query_params), body)
        if inspect.isgeneratorfunction(page.endpoints[name]):  # nothing is computed yet
            return self._streaming(work())
        async with self._place(), self._turn:
            if await request.is_disconnected():  # a slider has been drawn further in the meantime
                return Response(status_code=_GONE)
            result = await asyncio.get_running_loop().run_in_executor(self._worker, work)
        if isinstance(result, Media):
            return Response(result.content, media_type=result.media_type)
        if isinstance(result, Generator):
            return self._streaming(result)
        return JSONResponse(as_json(result))

    def _streaming(self, results: Any) -> Response:
        return StreamingResponse(self._lines(results), media_type="application/x-ndjson")

    @asynccontextmanager
    async def _place(self) -> AsyncIterator[None]:
        """Wait among others for a turn, unless there are too many."""
        if self._waiting >= _MOST_WAITING:
            raise NearfutureError(f"{self._waiting} figures are waiting", code="busy")
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1

    async def _lines(self, results: Iterator[Any]) -> AsyncIterator[str]:
        """Yield results as they come, a line of JSON each; nothing is computed for nobody."""
        if self._streamed >= _MOST_STREAMED:
            busy = NearfutureError(f"{self._streamed} figures are being computed", code="busy")
            yield _error_line(busy)
            return
        lines, loop = _lines(results), asyncio.get_running_loop()
        self._streamed += 1
        try:
            while True:
                async with self._step:  # other figures wait for one of them, and not for all
                    line = await loop.run_in_executor(self._worker, next, lines, None)
                if line is None:
                    return
                yield line
        finally:
            self._streamed -= 1

    async def _body(self, request: Request) -> bytes:
        """Read what a request sends, up to a limit; not too many at once, and not for ever."""
        if self._bodies >= _MOST_BODIES:
            raise NearfutureError(f"{self._bodies} requests are being read", code="busy")
        self._bodies += 1
        try:
            async with asyncio.timeout(_BODY_S):
                return await _body(request)
        except TimeoutError:
            raise RequestError("idle", f"the request did not come in {_BODY_S:g} s") from None
        finally:
            self._bodies -= 1

    async def source(self, request: Request) -> Response:
        path = request.path_params["path"]
        if path not in self._sources:
            raise NearfutureError(f"no figure rests on {path}", code="not_found")
        return Response((PACKAGE / path).read_bytes(), media_type="text/plain; charset=utf-8")

    def _page(self, request: Request) -> Page:
        name = request.path_params["page"]
        if name not in self._pages:
            raise HTTPException(404, f"the lab has no page {name}")
        return self._pages[name]

    def _html(self, page: Page, request: Request) -> Response:
        asked = request.query_params.get("lang")
        language = next(
            (each for each in LANGUAGES if each == asked),
            self._language or preferred(request.headers.get("accept-language", "")),
        )
        return HTMLResponse(render(page, self._story, language))


class _Guard:
    """Refuses pages of other origins, and says in every answer what a browser may load.

    A picture or a script of a foreign page brings no origin, but it says where it comes from
    (Fetch Metadata): it would read nothing, but a figure would be computed for it. Links lead here
    from anywhere.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._origins = OriginPolicy((), keyed=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *_HEADERS]
            await send(message)

        refusal = self._origins.refusal(HTTPConnection(scope))
        if refusal is None and _is_embedded(scope):
            refusal = _FOREIGN
        answer: ASGIApp = self._app if refusal is None else _FOREIGN.response()
        await answer(scope, receive, with_headers)


def _is_embedded(scope: Scope) -> bool:
    """Return whether another site's page asks, unless somebody has followed a link to a page."""
    headers = HTTPConnection(scope).headers
    if headers.get("sec-fetch-site") not in ("cross-site", "same-site"):  # another port is one site
        return False
    link = headers.get("sec-fetch-mode") == "navigate" and scope.get("method") == "GET"
    return not link or scope["path"].startswith("/api/")


def _load() -> None:
    """Import the libraries of the first figure, and open its graphs."""
    from nearfuture import audit  # noqa: F401 - it is imported once in a process
    from nearfuture.lab.pages.front import FAMILIES
    from nearfuture.lab.pages.who_looks_at_whom import stack_of

    for family in FAMILIES:
        stack_of(family, 3, 1)


async def _body(request: Request) -> bytes:
    """Read what a request sends, up to a limit."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > _LONGEST_BODY:
            raise Refusal(
                "too-many-bytes",
                f"a request has more than {_LONGEST_BODY} bytes",
                code="too_large",
                most=_LONGEST_BODY >> 20,
            )
        parts.append(part)
    return b"".join(parts)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, NearfutureError)
    sent = RequestError.of(error)
    headers = {"Connection": "close"} if sent.status == 413 else None  # the rest is not read
    return JSONResponse({"error": fields(error)}, sent.status, headers)


def _lines(results: Iterator[Any]) -> Iterator[str]:
    """Yield results as they come, a line of JSON each; an error is the last of them."""
    try:
        for result in results:
            yield json.dumps(as_json(result), ensure_ascii=False) + "\n"
    except NearfutureError as error:
        yield _error_line(error)


def _error_line(error: NearfutureError) -> str:
    return json.dumps({"error": fields(error)}, ensure_ascii=False) + "\n"
