"""`nearfuture serve`: a model as a service, for many clients at once."""

import os
import re
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from nearfuture.cli.options import Flag
from nearfuture.error import NearfutureError
from nearfuture.serving.limits import ServerLimits

if TYPE_CHECKING:
    from nearfuture.runtime import Bundle, Dispatcher
    from nearfuture.serving.listener import Address, Listener
    from nearfuture.serving.settings import ServerSettings

_SWITCH_S = 0.0005
_AT_ONCE_S = 1.0
_KEY = "NEARFUTURE_API_KEY"

_Several = Annotated[tuple[str, ...], Parameter(negative="", show_default=False)]


def _flag(field: str) -> str:
    """Return the flag of a field: `idle_s` is --idle-seconds."""
    return "--" + re.sub("_s$", "_seconds", field).replace("_", "-")


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class RecognitionOptions:
    """The models and how they run.

    Attributes:
        model: A bundled model, or a bundle's folder or zip file; may be repeated, and the first is
            for clients that name none.
        budget_ms: The longest time in ms from the start of a sound to its final text, for clients
            that request none; by default the largest that the model has.
        silence_ms: Silence in ms that ends an utterance, for clients that request none.
        longest_ms: Longest utterance in ms, for clients that request none.
        precision: A precision of the graphs that the bundle has; auto is the fastest of them that
            this processor supports.
        threads: Threads of the engine; by default one per physical core.
        max_load: Share of the time that open streams may need before new ones are refused; each
            model has an engine, and each engine this limit.
    """

    model: Annotated[tuple[str, ...], Parameter(negative="", show_default=", ".join)] = ("digits",)
    budget_ms: Annotated[float | None, Parameter(name="--budget")] = None
    silence_ms: float = 800.0
    longest_ms: float = 20_000.0
    precision: str = "float32"
    threads: int | None = None
    max_load: float = 0.8


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class NetworkOptions:
    """The addresses and the certificate of the server.

    Attributes:
        host: The address to listen on; 0.0.0.0 is every address of this machine.
        port: The port of all protocols, each at its own path; 0 is any that is free.
        listen: NAME=PORT serves a protocol at the root of a port of its own.
        tls_cert: A certificate chain in PEM, to serve https and wss.
        tls_key: Its private key in PEM.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    listen: _Several = ()
    tls_cert: Path | None = None
    tls_key: Path | None = None

    @property
    def tls(self) -> tuple[Path, Path] | None:
        """Certificate and key, if there are any."""
        if self.tls_cert is None or self.tls_key is None:
            return None
        return self.tls_cert, self.tls_key


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class AccessOptions:
    """The API key and the web origins that may use the server.

    Attributes:
        api_key_file: A file with the key that clients must send as Authorization: Bearer KEY.
        allow_origin: Web pages that may use the server, such as https://app.example; may be
            repeated, * is every page. Without a key, no other pages may.
    """

    api_key_file: Path | None = None
    allow_origin: _Several = ()


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class LogOptions:
    """The format and the content of the log on stderr.

    Attributes:
        log: Format of the log: text, or one JSON object per line; without audio or transcripts.
        log_text: Log the transcripts as well.
    """

    log: Literal["text", "json"] = "text"
    log_text: Flag = False


def serve(
    *,
    models: RecognitionOptions = RecognitionOptions(),
    network: NetworkOptions = NetworkOptions(),
    access: AccessOptions = AccessOptions(),
    limits: Annotated[
        ServerLimits, Parameter(name="*", name_transform=_flag, group="Limits")
    ] = ServerLimits(),  # noqa: B008
    log: LogOptions = LogOptions(),
) -> None:
    """Serve models to live clients over websockets and HTTP; SIGTERM lets streams finish first.

    GET / lists models and protocols; /health, /ready and /metrics report the server's state.
    The API key is read from NEARFUTURE_API_KEY unless a file is given.

    Args:
        models: The models and how they run.
        network: The addresses and the certificate of the server.
        access: The API key and the web origins that may use the server.
        limits: What the server allows.
        log: What is logged.
    """
    import asyncio

    from nearfuture.decoding import Endpoint
    from nearfuture.serving import log as logging
    from nearfuture.serving.limits import needed_descriptors, within_descriptors
    from nearfuture.serving.listener import bind
    from nearfuture.serving.origin import as_origin
    from nearfuture.serving.server import serve as run
    from nearfuture.serving.service import Service
    from nearfuture.serving.settings import ServerSettings

    _check(models, network)
    settings = ServerSettings(
        limits=within_descriptors(limits),
        budget_ms=models.budget_ms,
        endpoint=Endpoint(models.silence_ms, models.longest_ms),
        api_key=_api_key(access.api_key_file),
        allow_origin=tuple(map(as_origin, access.allow_origin)),
        log_text=log.log_text,
    )
    addresses = _addresses(network)
    bundles = _bundles(models)
    listeners = bind(addresses)
    restore_log = logging.configure(log.log)
    # The event loop lets go of the interpreter at every socket, and would then wait 5 ms each time
    # for the engine's thread to do the same.
    switch_s = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_S)
    dispatchers: dict[str, Dispatcher] = {}
    ends: list[threading.Timer] = []
    try:
        for name, bundle in bundles.items():
            dispatchers[name] = _dispatcher(bundle, models, settings)
        if (most := settings.limits.max_connections) < limits.max_connections:
            print(
                f"nearfuture: {most} connections at once instead of {limits.max_connections}, "
                f"which need {needed_descriptors(limits)} file descriptors: raise the hard limit "
                f"(LimitNOFILE, ulimit -Hn)",
                file=sys.stderr,
            )
        asyncio.run(
            run(
                Service(dispatchers, settings),
                listeners,
                tls=network.tls,
                on_started=_announcement(models, dispatchers, listeners, network),
                on_stopping=lambda seconds: ends.append(_end_within(seconds)),
            )
        )
    finally:
        for listener in listeners:
            listener.socket.close()
        for dispatcher in dispatchers.values():
            dispatcher.close(drain=False)
        for end in ends:
            end.cancel()
        sys.setswitchinterval(switch_s)
        restore_log()


def _check(models: RecognitionOptions, network: NetworkOptions) -> None:
    if (network.tls_cert is None) != (network.tls_key is None):
        raise NearfutureError(
            "`tls_cert` and `tls_key` belong together: give both, or neither",
            code="conflict",
            parameter="tls_cert",
        )
    for name, value in (("max_load", models.max_load), ("threads", models.threads)):
        if value is not None and not value > 0:
            raise NearfutureError(
                f"`{name}` is {value:g}: a number above 0 is expected",
                code="out_of_range",
                parameter=name,
            )


def _announcement(
    models: RecognitionOptions,
    dispatchers: "dict[str, Dispatcher]",
    listeners: "Sequence[Listener]",
    network: NetworkOptions,
) -> Callable[[], None]:
    """Return what prints, once all ports answer, what is served where."""
    from nearfuture.runtime import AUTO

    scheme = "http" if network.tls is None else "https"

    def announce() -> None:
        if models.precision == AUTO:
            for name, dispatcher in dispatchers.items():
                line = f"nearfuture computes {name} in {dispatcher.precision}"
                print(line, file=sys.stderr, flush=True)
        for listener in listeners:
            served = listener.address.root or ", ".join(dispatchers)
            url = _url(scheme, *listener.socket.getsockname()[:2])
            print(f"nearfuture serves {served} at {url}", file=sys.stderr, flush=True)

    return announce


def _end_within(seconds: float) -> threading.Timer:
    """End this process then, even if a thread hangs in native code and will never come back.

    Returns:
        The timer, to be cancelled once everything has ended.
    """

    def end() -> None:
        print("nearfuture: something hangs: ended without it", file=sys.stderr, flush=True)
        os._exit(0)

    timer = threading.Timer(max(seconds, _AT_ONCE_S), end)
    timer.daemon = True
    timer.start()
    return timer


def _url(scheme: str, host: str, port: int) -> str:
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"


def _api_key(file: Path | None) -> str | None:
    if file is None:
        key = os.environ.get(_KEY)
        if key is not None and not key.strip():
            raise NearfutureError(
                f"{_KEY} is set but empty: put the API key into it, or unset it to serve anybody"
            )
        return key and key.strip()
    try:
        key = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise NearfutureError(
            f"cannot read the API key from {file}: {error}", parameter="api_key_file"
        ) from error
    if not key:
        raise NearfutureError(
            f"{file} is empty: it is to have the API key in it", parameter="api_key_file"
        )
    return key


def _addresses(network: NetworkOptions) -> "list[Address]":
    from nearfuture.serving.listener import Address
    from nearfuture.serving.protocols import PROTOCOLS

    addresses = [Address(network.host, network.port)]
    for option in network.listen:
        name, _, port = option.partition("=")
        if name not in PROTOCOLS or not (port.isdecimal() and int(port) < 65536):
            raise NearfutureError(
                f"`listen` {option}: NAME=PORT is expected, such as vosk=2700, with a protocol of "
                f"{', '.join(PROTOCOLS)}",
                parameter="listen",
            )
        addresses.append(Address(network.host, int(port), name))
    return addresses


def _bundles(options: RecognitionOptions) -> "dict[str, Bundle]":
    """Open the models by name, each of which can keep the budget."""
    from nearfuture.runtime import Bundle, StreamConfig
    from nearfuture.runtime.engine import refuse_bidirectional

    bundles: dict[str, Bundle] = {}
    for source in options.model:
        bundle = Bundle.open(source)
        manifest = bundle.manifest
        refuse_bidirectional(bundle)
        StreamConfig.choose(manifest, budget_ms=options.budget_ms)
        if manifest.name in bundles:
            raise NearfutureError(
                f"two models are called {manifest.name}: serve one of them",
                code="conflict",
                parameter="model",
            )
        bundles[manifest.name] = bundle
    return bundles


def _dispatcher(
    bundle: "Bundle", options: RecognitionOptions, settings: "ServerSettings"
) -> "Dispatcher":
    from nearfuture.runtime import Dispatcher

    return Dispatcher(
        bundle,
        precision=options.precision,
        threads=options.threads,
        max_streams=settings.limits.max_streams,
        max_waiting_s=settings.limits.max_waiting_s,
        max_load=options.max_load,
    )
