"""`nearfuture serve`: a model as a service, for many clients at once."""

import math
import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from nearfuture.error import NearfutureError

if TYPE_CHECKING:
    from nearfuture.runtime import Bundle, Dispatcher
    from nearfuture.serving.limits import Limits
    from nearfuture.serving.server import Address

_SWITCH_S = 0.0005
_AT_ONCE_S = 1.0
_KEY = "NEARFUTURE_API_KEY"

Flag = Annotated[bool, Parameter(negative="", show_default=False)]


def serve(
    *,
    model: Annotated[tuple[str, ...], Parameter(negative="", show_default=", ".join)] = ("digits",),
    budget_ms: Annotated[float | None, Parameter(name="--budget")] = None,
    host: str = "127.0.0.1",
    port: int = 8000,
    listen: Annotated[tuple[str, ...], Parameter(negative="", show_default=False)] = (),
    precision: str = "float32",
    threads: int | None = None,
    silence_ms: float = 800.0,
    longest_ms: float = 20_000.0,
    api_key_file: Path | None = None,
    allow_origin: Annotated[tuple[str, ...], Parameter(negative="", show_default=False)] = (),
    tls_cert: Path | None = None,
    tls_key: Path | None = None,
    max_streams: int = 100,
    max_connections: int = 1000,
    max_load: float = 0.8,
    max_seconds: float = 14_400.0,
    idle_seconds: float = 60.0,
    drain_seconds: float = 30.0,
    max_waiting_seconds: float = 60.0,
    max_message_bytes: int = 1 << 20,
    max_file_bytes: int = 25 << 20,
    max_upload_minutes: float = 120.0,
    log: Literal["text", "json"] = "text",
    log_text: Flag = False,
) -> None:
    """Serve models to live clients over websockets and HTTP; SIGTERM lets streams finish first.

    GET / lists models and protocols, /health, /ready and /metrics tell how it is. An API key is
    read from NEARFUTURE_API_KEY unless a file is given.

    Args:
        model: A bundled model, or a bundle's folder or zip file; may come several times, and the
            first is for clients that name none.
        budget_ms: The promise in ms for clients that ask for none, from the start of a sound to its
            final text; the largest the model has unless given.
        host: The address to listen on; 0.0.0.0 is all of this machine's.
        port: The port of all protocols, each at its own path; 0 is any that is free.
        listen: NAME=PORT gives a protocol a port of its own, for clients that want its root.
        precision: Of the graphs, as the bundle has them; auto is the fastest of them that this
            processor offers.
        threads: Of the engine; the physical cores unless given.
        silence_ms: Of a pause that ends an utterance, for clients that ask for nothing else.
        longest_ms: Of an utterance, likewise.
        api_key_file: A file with the key that clients must send as Authorization: Bearer KEY.
        allow_origin: Of web pages that may use the server, such as https://app.example; may come
            several times, * is every page. Without a key, no other pages may.
        tls_cert: A certificate chain in PEM, to serve https and wss.
        tls_key: Its private key in PEM.
        max_streams: That may be open at once.
        max_connections: That may be open at once, all ports together.
        max_load: Share of the time that open streams may need before new ones are refused; each
            model has an engine, and each engine this limit.
        max_seconds: Of audio in one stream, and of one connection.
        idle_seconds: Without a message from a client before it is disconnected.
        drain_seconds: From SIGTERM to the end of the process: meanwhile streams go on, and then get
            their last text.
        max_waiting_seconds: Of one client's audio that are held before its computation.
        max_message_bytes: Of one message on a websocket.
        max_file_bytes: Of one uploaded recording.
        max_upload_minutes: Of audio in one uploaded recording, however few bytes it has.
        log: Lines to read, or a JSON object a line; on stderr, without audio or text.
        log_text: Log what was said as well.
    """
    import asyncio

    from nearfuture.decoding import Endpoint
    from nearfuture.runtime.processor import AUTO
    from nearfuture.serving import log as logging
    from nearfuture.serving.descriptors import affordable, needed
    from nearfuture.serving.limits import Limits, Settings
    from nearfuture.serving.origin import as_origin
    from nearfuture.serving.server import Address, bound
    from nearfuture.serving.server import serve as run
    from nearfuture.serving.service import Service

    if (tls_cert is None) != (tls_key is None):
        raise NearfutureError("--tls-cert and --tls-key belong together: give both, or neither")
    for option, value in (
        ("--max-streams", max_streams),
        ("--max-connections", max_connections),
        ("--max-seconds", max_seconds),
        ("--idle-seconds", idle_seconds),
        ("--max-waiting-seconds", max_waiting_seconds),
        ("--max-message-bytes", max_message_bytes),
        ("--max-file-bytes", max_file_bytes),
        ("--max-upload-minutes", max_upload_minutes),
    ):
        if not 0 < value < math.inf:
            raise NearfutureError(f"{option} is {value}: a finite number above 0 is wanted")
    if not 0 <= drain_seconds < math.inf:
        raise NearfutureError(f"--drain-seconds is {drain_seconds}: a finite number from 0")
    if not max_load > 0:
        raise NearfutureError(f"--max-load is {max_load}: a share of the time above 0 is wanted")
    if threads is not None and threads < 1:
        raise NearfutureError(f"--threads is {threads}: a number from 1 is wanted")
    if not 0 < silence_ms <= longest_ms < math.inf:
        raise NearfutureError(
            f"--silence-ms is {silence_ms:g} and --longest-ms {longest_ms:g}: both are finite, the "
            f"first above 0 and not above the second"
        )
    asked = Limits(
        most_streams=max_streams,
        most_connections=max_connections,
        most_seconds=max_seconds,
        most_message_bytes=max_message_bytes,
        most_file_bytes=max_file_bytes,
        most_upload_s=60 * max_upload_minutes,
        most_waiting_s=max_waiting_seconds,
        idle_s=idle_seconds,
        drain_s=drain_seconds,
    )
    settings = Settings(
        limits=affordable(asked),
        budget_ms=budget_ms,
        endpoint=Endpoint(silence_ms, longest_ms),
        api_key=_api_key(api_key_file),
        allow_origins=tuple(as_origin(one) for one in allow_origin),
        log_text=log_text,
    )
    addresses = [Address(host, port), *(_address(host, one) for one in listen)]
    bundles = _bundles(model, budget_ms)
    sockets = bound(addresses)
    restore_log = logging.configure(log)
    # The event loop lets go of the interpreter at every socket, and would then wait 5 ms each time
    # for the engine's thread to do the same.
    switch_s = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_S)
    dispatchers: dict[str, Dispatcher] = {}
    ends: list[threading.Timer] = []
    try:
        for name, bundle in bundles.items():
            dispatchers[name] = _dispatcher(bundle, settings.limits, precision, threads, max_load)
        service = Service(dispatchers, settings)
        scheme = "http" if tls_cert is None else "https"
        lines = [
            f"{address.root or ', '.join(bundles)} at {_url(scheme, *one.getsockname()[:2])}"
            for address, one in zip(addresses, sockets, strict=True)
        ]
        tls = None if tls_cert is None or tls_key is None else (tls_cert, tls_key)

        if (most := settings.limits.most_connections) < max_connections:
            print(
                f"nearfuture: {most} connections at once instead of {max_connections}, which need "
                f"{needed(asked)} file descriptors: raise the hard limit (LimitNOFILE, ulimit -Hn)",
                file=sys.stderr,
            )

        def started() -> None:
            if precision == AUTO:
                for name, dispatcher in dispatchers.items():
                    told = f"nearfuture computes {name} in {dispatcher.precision}"
                    print(told, file=sys.stderr, flush=True)
            for line in lines:
                print(f"nearfuture serves {line}", file=sys.stderr, flush=True)

        def stopping(seconds: float) -> None:
            ends.append(_end_within(seconds))

        asyncio.run(run(service, addresses, sockets, tls=tls, started=started, stopping=stopping))
    finally:
        for one in sockets:
            one.close()
        for dispatcher in dispatchers.values():
            dispatcher.close(drain=False)
        for end in ends:
            end.cancel()
        sys.setswitchinterval(switch_s)
        restore_log()


def _end_within(seconds: float) -> threading.Timer:
    """End this process then, even if a thread hangs in native code and will never come back.

    Returns:
        What is cancelled once everything has ended.
    """

    def end() -> None:
        print("nearfuture: something hangs: ended without it", file=sys.stderr, flush=True)
        os._exit(0)

    watch = threading.Timer(max(seconds, _AT_ONCE_S), end)
    watch.daemon = True
    watch.start()
    return watch


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
        raise NearfutureError(f"cannot read the API key from {file}: {error}") from error
    if not key:
        raise NearfutureError(f"{file} is empty: it is to have the API key in it")
    return key


def _address(host: str, told: str) -> "Address":
    from nearfuture.serving.protocols import PROTOCOLS
    from nearfuture.serving.server import Address

    name, _, port = told.partition("=")
    if name not in PROTOCOLS or not (port.isdecimal() and int(port) < 65536):
        raise NearfutureError(
            f"--listen {told}: NAME=PORT is wanted, such as vosk=2700, with a protocol of "
            f"{', '.join(PROTOCOLS)}"
        )
    return Address(host, int(port), name)


def _bundles(sources: tuple[str, ...], budget_ms: float | None) -> "dict[str, Bundle]":
    """The models by name, each of which can keep the budget."""
    from nearfuture.runtime import Bundle, StreamConfig
    from nearfuture.runtime.engine import refuse_bidirectional

    found: dict[str, Bundle] = {}
    for source in sources:
        bundle = Bundle.open(source)
        manifest = bundle.manifest
        refuse_bidirectional(bundle)
        StreamConfig.choose(manifest, budget_ms=budget_ms)
        if manifest.name in found:
            raise NearfutureError(f"two models are called {manifest.name}: serve one of them")
        found[manifest.name] = bundle
    return found


def _dispatcher(
    bundle: "Bundle", limits: "Limits", precision: str, threads: int | None, max_load: float
) -> "Dispatcher":
    from nearfuture.runtime import Dispatcher

    return Dispatcher(
        bundle,
        precision=precision,
        threads=threads,
        max_streams=limits.most_streams,
        max_waiting_s=limits.most_waiting_s,
        max_load=max_load,
    )
