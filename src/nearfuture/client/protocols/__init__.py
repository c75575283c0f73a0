"""The client's side of three protocols, chosen by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

from nearfuture.client.connection import websocket_url
from nearfuture.client.protocols.base import Pcm, StreamProtocol
from nearfuture.client.protocols.nearfuture import NearfutureStream
from nearfuture.client.protocols.openai import OpenAIRealtime
from nearfuture.client.protocols.vosk import Vosk
from nearfuture.error import NearfutureError

__all__ = [
    "NearfutureStream",
    "OpenAIRealtime",
    "Pcm",
    "ProtocolName",
    "StreamProtocol",
    "Vosk",
    "address",
    "protocol_factory",
    "sent_rate",
]

ProtocolName: TypeAlias = Literal["nearfuture", "vosk", "openai"]

_CLASSES: dict[ProtocolName, type[StreamProtocol]] = {
    "nearfuture": NearfutureStream,
    "vosk": Vosk,
    "openai": OpenAIRealtime,
}


def protocol_factory(
    name: ProtocolName, *, budget_ms: float | None = None, model: str | None = None
) -> Callable[[int], StreamProtocol]:
    """Return a function that makes the client's side of a protocol for a sample rate.

    Args:
        name: of the protocol.
        budget_ms: the latency to ask for; only our own protocol can.
        model: the model to ask for; vosk-server's protocol cannot.

    Raises:
        NearfutureError: for an option that the protocol lacks.

    >>> protocol_factory("vosk")(8000).opening()
    ['{"config": {"sample_rate": 8000}}']
    """
    if budget_ms is not None and name != "nearfuture":
        raise NearfutureError(
            f"`budget_ms` has no place in the {name} protocol: start the server with it, or choose "
            f"another `protocol`, nearfuture",
            code="unsupported",
            parameter="budget_ms",
        )
    if model is not None and name == "vosk":
        raise NearfutureError(
            "`model` has no place in the vosk protocol: start the server with it, or choose "
            "another `protocol`",
            code="unsupported",
            parameter="model",
        )
    if name == "openai":
        return lambda rate: OpenAIRealtime(rate, model=model)
    if name == "nearfuture":
        return lambda rate: NearfutureStream(rate, budget_ms=budget_ms, model=model)
    return Vosk


def address(name: ProtocolName, url: str) -> str:
    """Return the address to connect to.

    Raises:
        ServerError: for what is no address.

    >>> address("openai", "ws://here:8080/v1/realtime")
    'ws://here:8080/v1/realtime?intent=transcription'
    """
    return _CLASSES[name].address(websocket_url(url))


def sent_rate(name: ProtocolName, rate: int) -> int:
    """Return the sample rate at which a recording of some rate is sent.

    >>> sent_rate("openai", 8000), sent_rate("vosk", 8000)
    (24000, 8000)
    """
    return _CLASSES[name](rate).rate
