"""A protocol by its name on the command line, with the options that it has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias, get_args

from nearfuture.client.connection import websocket_url
from nearfuture.client.nearfuture_stream import NearfutureStream
from nearfuture.client.openai_realtime import OpenAIRealtime
from nearfuture.client.protocol import Protocol
from nearfuture.client.vosk import Vosk
from nearfuture.error import NearfutureError

ProtocolName: TypeAlias = Literal["nearfuture", "vosk", "openai"]

_CLASSES: dict[str, type[Protocol]] = {
    kind.name: kind for kind in (NearfutureStream, Vosk, OpenAIRealtime)
}
assert set(_CLASSES) == set(get_args(ProtocolName))


def choose(
    name: ProtocolName, *, budget_ms: float | None = None, model: str | None = None
) -> Callable[[int], Protocol]:
    """What makes the client's side of a protocol, for the rate of a recording.

    Args:
        name: of the protocol.
        budget_ms: the latency to ask for; only our own protocol can.
        model: the model to ask for; vosk-server's protocol cannot.

    Raises:
        NearfutureError: for an option that the protocol lacks.

    >>> choose("vosk")(8000).opening()
    ['{"config": {"sample_rate": 8000}}']
    """
    if budget_ms is not None and name != "nearfuture":
        raise NearfutureError(
            f"--budget has no place in the {name} protocol: start the server with it, or choose "
            f"--protocol nearfuture"
        )
    if model is not None and name == "vosk":
        raise NearfutureError(
            "--model has no place in the vosk protocol: start the server with it, or choose "
            "another --protocol"
        )
    if name == "openai":
        return lambda rate: OpenAIRealtime(rate, model=model)
    if name == "nearfuture":
        return lambda rate: NearfutureStream(rate, budget_ms=budget_ms, model=model)
    return Vosk


def address(name: ProtocolName, url: str) -> str:
    """The address to connect to.

    Raises:
        ServerError: for what is no address.

    >>> address("openai", "ws://here:8080/v1/realtime")
    'ws://here:8080/v1/realtime?intent=transcription'
    """
    return _CLASSES[name].address(websocket_url(url))


def rate_sent(name: ProtocolName, rate: int) -> int:
    """Samples per second at which a recording of some rate is sent.

    >>> rate_sent("openai", 8000), rate_sent("vosk", 8000)
    (24000, 8000)
    """
    return _CLASSES[name](rate).rate
