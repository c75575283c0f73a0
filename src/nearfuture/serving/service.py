"""What all protocols share: models, places for streams, refusals, and an orderly end."""

from __future__ import annotations

import asyncio
import functools
import hmac
import itertools
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from starlette.requests import HTTPConnection

from nearfuture.decoding import Endpoint
from nearfuture.runtime import Dispatcher
from nearfuture.serving.errors import CODES, RequestError
from nearfuture.serving.idle import IdleSockets
from nearfuture.serving.json_fields import brief
from nearfuture.serving.log import CLIENT
from nearfuture.serving.metrics import Metrics
from nearfuture.serving.origin import OriginPolicy, as_origin
from nearfuture.serving.session import Session, SessionOptions, Update
from nearfuture.serving.settings import ServerSettings
from nearfuture.serving.uploads import UploadScheduler

KEY_PROTOCOL = "openai-insecure-api-key."
"""The prefix of the subprotocol in which a browser brings the API key."""

_LINGER_S = 15.0  # uvicorn itself waits 10 s for the answer to a close frame
_CLOSING_SHARE = 0.25
_POLL_S = 0.05

_LOG = logging.getLogger("nearfuture.serving")


@dataclass(eq=False)
class InFlight:
    """A request or a websocket that was admitted and is not over.

    Attributes:
        task: what serves it.
        started: whether its answer has: after that there cannot be another.
        closed: whether this side has closed the websocket.
        cancelled: whether it was ended because the server stops.
    """

    task: asyncio.Task[Any]
    started: bool = False
    closed: bool = False
    cancelled: bool = False


class Service:
    """The models of a server and the streams that are open on them, over all protocols and ports.

    Args:
        dispatchers: by the names of their models; the first is for clients that name none.
        settings: how the server runs.

    Attributes:
        models: the names.
        metrics: of this server.
        limits: those of the settings.
        origins: whose web pages may use it.
        idle: sockets that have no request.
        lingering: sockets of websockets that this server has closed, and their clients have not.
        uploads: the recordings that were received.
        draining: whether it accepts no new streams, for it stops.
    """

    def __init__(
        self, dispatchers: Mapping[str, Dispatcher], settings: ServerSettings | None = None
    ) -> None:
        assert dispatchers, "a server has models"
        self._dispatchers = dict(dispatchers)
        self.settings = ServerSettings() if settings is None else settings
        self.limits = self.settings.limits
        keyed = self.settings.api_key is not None
        self.origins = OriginPolicy(map(as_origin, self.settings.allow_origin), keyed=keyed)
        self.models = tuple(self._dispatchers)
        self._sessions: set[Session] = set()
        self._opening = 0
        self._in_flight: set[InFlight] = set()
        self._numbers = itertools.count(1)
        self.idle = IdleSockets(self.limits.max_idle_sockets, self.limits.headers_s)
        self.lingering = IdleSockets(self.limits.max_connections, _LINGER_S)
        self.uploads = UploadScheduler(self.limits.max_streams // 4)
        self.draining = False
        self.metrics = Metrics(self._dispatchers, self.limits)
        self.metrics.connections.set_function(lambda: self.connections)
        self.metrics.idle_sockets.set_function(lambda: len(self.idle))
        for state in ("waiting", "running"):
            count = functools.partial(getattr, self.uploads, state)
            self.metrics.uploads.labels(state).set_function(count)
        self.metrics.upload_wait.set_function(lambda: self.uploads.waited_s)
        self.metrics.ready.set_function(lambda: float(self.unready_reason() is None))

    def dispatcher(self, model: str | None = None) -> Dispatcher:
        """Return the engine of a model, by default of the first.

        Raises:
            RequestError: for a model that is not served, naming those that are.
        """
        name = self.models[0] if model is None else model
        if name not in self._dispatchers:
            raise RequestError(
                "model_not_found",
                f"there is no model {brief(name, 80)} here: {', '.join(self.models)}",
                "model",
            )
        return self._dispatchers[name]

    @property
    def closing_s(self) -> float:
        """The part of a drain that is for clients without a stream, and for closing sockets."""
        return _CLOSING_SHARE * self._final_results_s

    @property
    def _final_results_s(self) -> float:
        return min(self.limits.final_results_s, self.limits.drain_s)

    @property
    def connections(self) -> int:
        """The number of requests and websockets in flight, on all ports."""
        return len(self._in_flight)

    @contextmanager
    def tracked(self, request: InFlight) -> Iterator[None]:
        """Count a request or a websocket for as long as it is in flight."""
        self._in_flight.add(request)
        try:
            yield
        finally:
            self._in_flight.discard(request)

    @property
    def streams(self) -> int:
        """The number of open streams."""
        return len(self._sessions)

    @property
    def alive(self) -> bool:
        """Whether every engine works; an engine that failed does not recover."""
        return all(dispatcher.error is None for dispatcher in self._dispatchers.values())

    def unready_reason(self) -> RequestError | None:
        """Return why a load balancer should choose another server; None while this one is ready.

        It is not ready while draining or saturated, and while uploads wait for long or make no
        progress; live streams are still accepted in the last two cases.
        """
        return self.rejection() or self.uploads.overload()

    def rejection(self, dispatcher: Dispatcher | None = None) -> RequestError | None:
        """Return why a new stream is rejected, on this engine or on any; None if it is not."""
        if self.draining:
            return RequestError(
                "draining", "this server is about to stop and opens no more streams: try another"
            )
        count = len(self._sessions) + self._opening
        if count >= self.limits.max_streams:
            return RequestError(
                "busy",
                f"{count} streams are open, the most there may be: try again when one has ended, "
                f"or try another server",
            )
        for engine in self._dispatchers.values() if dispatcher is None else [dispatcher]:
            if engine.error is not None:
                return RequestError("internal", str(engine.error))
            now = engine.occupancy()
            if now.streams and now.load > now.load_limit:
                return RequestError(
                    "busy",
                    f"the {now.streams} open streams are a load of {now.load:.2f}, over the "
                    f"limit of {now.load_limit:.2f}: try again later, or try another server",
                )
        return None

    async def session(
        self,
        *,
        model: str | None = None,
        rate: int | None = None,
        budget_ms: float | None = None,
        endpoint: Endpoint | None = None,
        protocol: str = "",
    ) -> Session:
        """Open a stream, under the limits of the server; close it when it is of no more use.

        Args:
            model: which; by default the first.
            rate: samples per second; by default the model's own.
            budget_ms: worst-case algorithmic latency; by default that of the settings.
            endpoint: divides the text into utterances; by default it is one.
            protocol: by whose name it is counted.

        Raises:
            RequestError: if there is no room, while draining, and for a model that is not served.
            NearfutureError: for a rate that cannot be resampled, a budget that cannot be kept, and
                where the engine has no room.
        """
        dispatcher = self.dispatcher(model)
        name = self.models[0] if model is None else model
        if reason := self.rejection(dispatcher):
            raise reason
        fields = {
            "stream": next(self._numbers),
            "model": name,
            "protocol": protocol,
            "client": CLIENT.get().get("client"),
        }
        options = SessionOptions(
            rate=rate,
            budget_ms=self.settings.budget_ms if budget_ms is None else budget_ms,
            endpoint=endpoint,
            limits=self.limits,
        )
        # The filters of an unusual rate take a while to compute: not in the event loop.
        opening = asyncio.ensure_future(
            asyncio.to_thread(
                Session,
                dispatcher,
                options,
                on_final=lambda update: self._log_utterance(update, fields),
                on_close=lambda session: self._closed(session, fields),
                loop=asyncio.get_running_loop(),
            )
        )
        self._opening += 1
        abandoned = False
        try:
            session = await asyncio.shield(opening)
        except asyncio.CancelledError:
            abandoned = True  # it opens in its thread, whatever becomes of the client
            opening.add_done_callback(self._close_abandoned)
            raise
        finally:
            self._opening -= not abandoned
        self._sessions.add(session)
        self.metrics.streams.labels(name, protocol).inc()
        self.metrics.opened.labels(name, protocol).inc()
        budget = {"rate": session.rate, "budget_ms": session.budget.worst_ms}
        _LOG.info("stream opened", extra={"fields": fields | budget})
        return session

    def authorized(self, connection: HTTPConnection) -> bool:
        """Return whether a request or a websocket brings the API key, if one is expected.

        `Authorization: Bearer KEY`; browsers, which cannot send that for a websocket, offer the
        subprotocol `openai-insecure-api-key.KEY` as they do with OpenAI's servers.
        """
        if self.settings.api_key is None:
            return True
        scheme, _, token = connection.headers.get("authorization", "").partition(" ")
        keys = [token.strip()] if scheme.lower() == "bearer" else []
        for offered in connection.headers.get("sec-websocket-protocol", "").split(","):
            name = offered.strip()
            if name.startswith(KEY_PROTOCOL):
                keys.append(name.removeprefix(KEY_PROTOCOL))
        wanted = self.settings.api_key.encode()
        return any(hmac.compare_digest(key.encode("utf-8", "replace"), wanted) for key in keys)

    def record_error(self, code: str) -> None:
        """Count and log an error that is sent to a client."""
        self.metrics.errors.labels(code).inc()
        level = logging.WARNING if CODES[code][0] in (500, 507) else logging.INFO
        _LOG.log(level, "refused", extra={"fields": {"code": code, **CLIENT.get()}})

    async def drain(self) -> None:
        """Accept no new streams, and let open ones go on for a while; then finish the others.

        Afterwards no stream is open, and `closing_s` of `drain_s` remain for other clients.
        """
        self.draining = True
        total_s, final_s = self.limits.drain_s, self._final_results_s
        _LOG.info("draining", extra={"fields": {"streams": self.streams, "seconds": total_s}})
        await self._wait_for_streams(total_s - final_s)
        if self._sessions:
            _LOG.warning("cutting off", extra={"fields": {"streams": self.streams}})
        for session in tuple(self._sessions):
            session.interrupt()
        await self._wait_for_streams(final_s - self.closing_s)
        for session in tuple(self._sessions):
            session.close()

    def cancel_requests(self) -> None:
        """End those that wait for an answer that will not come: uploads, silent websockets."""
        for request in self._in_flight:
            if not request.cancelled:
                request.cancelled = True
                request.task.cancel()

    async def _wait_for_streams(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while (self._sessions or self._opening) and loop.time() < deadline:
            await asyncio.sleep(_POLL_S)

    def _close_abandoned(self, opening: asyncio.Future[Session]) -> None:
        """Close a session whose client has left while it opened: its place is free again."""
        self._opening -= 1
        if not opening.cancelled() and opening.exception() is None:
            opening.result().close()

    def _log_utterance(self, update: Update, fields: Mapping[str, Any]) -> None:
        """Log the text of an utterance, only where the settings ask for it."""
        if self.settings.log_text:
            utterance = {"utterance": update.utterance, "text": update.committed}
            _LOG.info("utterance", extra={"fields": {**fields, **utterance}})

    def _closed(self, session: Session, fields: Mapping[str, Any]) -> None:
        if session not in self._sessions:
            return  # it was abandoned
        model, protocol = fields["model"], fields["protocol"]
        final_ms = session.final_ms
        self._sessions.discard(session)
        self.metrics.streams.labels(model, protocol).dec()
        self.metrics.ended.labels(model, str(session.complete).lower()).inc()
        self.metrics.audio.labels(model).inc(session.received_s)
        if final_ms is not None:
            self.metrics.finalisation.labels(model).observe(final_ms / 1000)
        result = {
            "audio_s": round(session.received_s, 3),
            "complete": session.complete,
            "final_ms": None if final_ms is None else round(final_ms, 1),
        }
        _LOG.info("stream closed", extra={"fields": {**fields, **result}})
