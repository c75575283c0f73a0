"""What all protocols share: models, places for streams, refusals, and a decent end."""

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
from nearfuture.error import NearfutureError
from nearfuture.runtime import Busy, Dispatcher
from nearfuture.serving.idle import IdleSockets
from nearfuture.serving.limits import REFUSALS, Limits, Refused, Settings, shown
from nearfuture.serving.log import CLIENT
from nearfuture.serving.metrics import Metrics
from nearfuture.serving.origin import Origins, as_origin
from nearfuture.serving.session import Session, Update
from nearfuture.serving.uploads import Uploads

KEY_PROTOCOL = "openai-insecure-api-key."
"""What the subprotocol begins with in which a browser brings the API key."""

_GOODBYE_SHARE = 0.25
_LOOK_AGAIN_S = 0.05

_LOG = logging.getLogger("nearfuture.serving")


@dataclass(eq=False)
class InFlight:
    """A request or a websocket that was let in and is not over.

    Attributes:
        task: what serves it.
        begun: whether its answer has: after that there cannot be another.
        closed: whether this side has closed the websocket.
        dismissed: whether it was ended, for the server stops.
    """

    task: asyncio.Task[Any]
    begun: bool = False
    closed: bool = False
    dismissed: bool = False


class Service:
    """The models of a server and the streams that are open on them, over all protocols and ports.

    Args:
        dispatchers: by the names of their models; the first is for clients that name none.
        settings: how the server runs.

    Attributes:
        models: the names.
        metrics: what it counts.
        settings: as given.
        limits: those of the settings.
        origins: whose web pages may use it.
        idle: sockets that have no request.
        uploads: the recordings that were taken in.
    """

    def __init__(self, dispatchers: Mapping[str, Dispatcher], settings: Settings | None = None):
        assert dispatchers, "a server has models"
        self._dispatchers = dict(dispatchers)
        self.settings = Settings() if settings is None else settings
        self.limits: Limits = self.settings.limits
        keyed = self.settings.api_key is not None
        self.origins = Origins(map(as_origin, self.settings.allow_origins), keyed=keyed)
        self.models = tuple(self._dispatchers)
        self.metrics = Metrics(self._dispatchers, self.limits)
        self._sessions: set[Session] = set()
        self._opening = 0
        self.idle = IdleSockets(self.limits.most_idle, self.limits.headers_s)
        self._in_flight: set[InFlight] = set()
        self.metrics.connections.set_function(lambda: self.connections)
        self.metrics.idle_sockets.set_function(lambda: len(self.idle))
        self.uploads = Uploads(self.limits.most_streams // 4)
        for state in ("waiting", "running"):
            count = functools.partial(getattr, self.uploads, state)
            self.metrics.uploads.labels(state).set_function(count)
        self.metrics.upload_wait_seconds.set_function(lambda: self.uploads.waited_s)
        self._numbers = itertools.count(1)
        self.draining = False

    def dispatcher(self, model: str | None = None) -> Dispatcher:
        """The engine of a model, of the first unless given.

        Raises:
            Refused: for a model that is not served, naming those that are.
        """
        name = self.models[0] if model is None else model
        if name not in self._dispatchers:
            raise Refused(
                "bad_request",
                f"there is no model {shown(name, 80)} here: {', '.join(self.models)}",
            )
        return self._dispatchers[name]

    @property
    def goodbye_s(self) -> float:
        """How much of a drain is for telling those who have no stream, and for closing sockets."""
        return _GOODBYE_SHARE * self._last_words_s

    @property
    def _last_words_s(self) -> float:
        return min(self.limits.last_words_s, self.limits.drain_s)

    @property
    def connections(self) -> int:
        """How many requests and websockets are in flight, on all ports."""
        return len(self._in_flight)

    @contextmanager
    def entered(self, here: InFlight) -> Iterator[None]:
        """Count a request or a websocket for as long as it is in flight."""
        self._in_flight.add(here)
        try:
            yield
        finally:
            self._in_flight.discard(here)

    @property
    def streams(self) -> int:
        """How many are open."""
        return len(self._sessions)

    @property
    def alive(self) -> bool:
        """Whether every engine works; one that does not never will again."""
        return all(one.error is None for one in self._dispatchers.values())

    @property
    def ready(self) -> bool:
        """Whether a new stream or upload had better come here, see `why_not_ready`."""
        return self.why_not_ready() is None

    def why_not_ready(self) -> Refused | None:
        """Why another server had better be asked; None if it need not.

        Not while draining or saturated, and not while uploads wait for long or stand still; live
        streams are let in all the same then.
        """
        return self.why_not() or self.uploads.why_not()

    def why_not(self, dispatcher: Dispatcher | None = None) -> Refused | None:
        """Why no new stream would be let in, on this engine or on any; None if one would."""
        if self.draining:
            return Refused(
                "draining", "this server is about to stop and opens no more streams: ask another"
            )
        most, now = self.limits.most_streams, len(self._sessions) + self._opening
        if now >= most:
            return Refused(
                "busy",
                f"{now} streams are open, the most there may be: try again when one has ended, or "
                f"ask another server",
            )
        dispatchers = self._dispatchers.values() if dispatcher is None else [dispatcher]
        for one in dispatchers:
            if one.error is not None:
                return Refused("internal", str(one.error))
            here = one.occupancy()
            if here.streams and here.load > here.load_limit:
                return Refused(
                    "busy",
                    f"the {here.streams} open streams are a load of {here.load:.2f}, over the "
                    f"limit of {here.load_limit:.2f}: try again later, or ask another server",
                )
        return None

    async def session(
        self,
        *,
        model: str | None = None,
        rate: int | None = None,
        budget_ms: float | None = None,
        endpoint: Endpoint | None = None,
        whole: bool = False,
        protocol: str = "",
    ) -> Session:
        """Open a stream, under the limits of the server; close it when it is of no more use.

        Args:
            model: which; the first unless given.
            rate: samples per second; the model's own unless given.
            budget_ms: worst-case algorithmic latency; that of the settings unless given.
            endpoint: divides the text into utterances; that of the settings unless given.
            whole: never divide the text.
            protocol: by whose name it is counted.

        Raises:
            Refused: if there is no room, while draining, for a model that is not served, for a rate
                that cannot be resampled and a budget that cannot be kept.
        """
        dispatcher = self.dispatcher(model)
        name = self.models[0] if model is None else model
        if reason := self.why_not(dispatcher):
            raise reason
        fields = {
            "stream": next(self._numbers),
            "model": name,
            "protocol": protocol,
            "client": CLIENT.get().get("client"),
        }
        loop = asyncio.get_running_loop()
        # The filters of an unusual rate take a while to compute: not in the event loop.
        opening = asyncio.ensure_future(
            asyncio.to_thread(
                Session,
                dispatcher,
                rate=rate,
                budget_ms=self.settings.budget_ms if budget_ms is None else budget_ms,
                endpoint=None if whole else endpoint or self.settings.endpoint,
                limits=self.limits,
                on_final=lambda update: self._ended(update, fields),
                on_close=lambda session: self._closed(session, fields),
                loop=loop,
            )
        )
        self._opening += 1
        opens = False
        try:
            session = await asyncio.shield(opening)
        except asyncio.CancelledError:
            opens = True  # in its thread, whatever becomes of the client
            opening.add_done_callback(self._unwanted)
            raise
        except NearfutureError as error:
            code = "busy" if isinstance(error, Busy) else "bad_request"
            raise Refused(code, str(error)) from error
        finally:
            self._opening -= not opens
        self._sessions.add(session)
        self.metrics.streams.labels(name, protocol).inc()
        self.metrics.opened.labels(name, protocol).inc()
        budget = {"rate": session.rate, "budget_ms": session.budget.worst_ms}
        _LOG.info("stream opened", extra={"fields": fields | budget})
        return session

    def authorized(self, connection: HTTPConnection) -> bool:
        """Whether a request or a websocket brings the API key, if one is wanted.

        `Authorization: Bearer KEY`; browsers, which cannot send that for a websocket, offer the
        subprotocol `openai-insecure-api-key.KEY` as they do with OpenAI's servers.
        """
        if self.settings.api_key is None:
            return True
        scheme, _, given = connection.headers.get("authorization", "").partition(" ")
        keys = [given.strip()] if scheme.lower() == "bearer" else []
        for offered in connection.headers.get("sec-websocket-protocol", "").split(","):
            name = offered.strip()
            if name.startswith(KEY_PROTOCOL):
                keys.append(name.removeprefix(KEY_PROTOCOL))
        wanted = self.settings.api_key.encode()
        return any(hmac.compare_digest(key.encode("utf-8", "replace"), wanted) for key in keys)

    def refused(self, code: str) -> None:
        """Count and log a refusal; those who tell clients of one call it."""
        self.metrics.refusals.labels(code).inc()
        level = logging.WARNING if REFUSALS.get(code, (0,))[0] in (500, 507) else logging.INFO
        _LOG.log(level, "refused", extra={"fields": {"code": code, **CLIENT.get()}})

    async def drain(self) -> None:
        """Let no new streams in, and let open ones go on for a while; those left then are finished.

        Afterwards no stream is open, and `goodbye_s` of `drain_s` are left for the others.
        """
        self.draining = True
        total, words = self.limits.drain_s, self._last_words_s
        _LOG.info("draining", extra={"fields": {"streams": self.streams, "seconds": total}})
        loop = asyncio.get_running_loop()
        until = loop.time() + total - words
        while (self._sessions or self._opening) and loop.time() < until:
            await asyncio.sleep(_LOOK_AGAIN_S)
        if self._sessions:
            _LOG.warning("cutting off", extra={"fields": {"streams": self.streams}})
        for session in tuple(self._sessions):
            session.cut()
        until = loop.time() + words - self.goodbye_s
        while self._sessions and loop.time() < until:
            await asyncio.sleep(_LOOK_AGAIN_S)
        for session in tuple(self._sessions):
            session.close()

    def dismiss(self) -> None:
        """Tell those who wait for an answer that there will be none: uploads, silent websockets."""
        for here in self._in_flight:
            if not here.dismissed:
                here.dismissed = True
                here.task.cancel()

    def _unwanted(self, opening: asyncio.Future[Session]) -> None:
        """Nobody waits for this session any more: its place is free again."""
        self._opening -= 1
        if not opening.cancelled() and opening.exception() is None:
            opening.result().close()

    def _ended(self, update: Update, fields: Mapping[str, Any]) -> None:
        """An utterance has ended; what was said is logged only where somebody asked for it."""
        if self.settings.log_text:
            said = {"utterance": update.utterance, "text": update.committed}
            _LOG.info("utterance", extra={"fields": {**fields, **said}})

    def _closed(self, session: Session, fields: Mapping[str, Any]) -> None:
        if session not in self._sessions:
            return  # nobody has seen it
        model, protocol = fields["model"], fields["protocol"]
        final_ms = session.final_ms
        self._sessions.discard(session)
        self.metrics.streams.labels(model, protocol).dec()
        self.metrics.ended.labels(model, str(session.complete).lower()).inc()
        self.metrics.audio_seconds.labels(model).inc(session.heard_s)
        if final_ms is not None:
            self.metrics.final_seconds.labels(model).observe(final_ms / 1000)
        done = {
            "heard_s": round(session.heard_s, 3),
            "finished": session.complete,
            "final_ms": None if final_ms is None else round(final_ms, 1),
        }
        _LOG.info("stream closed", extra={"fields": {**fields, **done}})
