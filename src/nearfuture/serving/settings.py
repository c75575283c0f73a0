"""The settings of one server."""

from __future__ import annotations

from dataclasses import dataclass, field

from nearfuture.decoding import Endpoint
from nearfuture.error import NearfutureError
from nearfuture.serving.limits import ServerLimits


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """The settings of one server.

    Attributes:
        limits: what it allows.
        budget_ms: of streams that ask for none; by default the largest lookahead.
        endpoint: of streams that ask for none.
        api_key: what clients must send as `Authorization: Bearer …`; by default anyone may come.
        allow_origin: web pages that may use the server, see `OriginPolicy`.
        log_text: whether transcripts may be written into the log.
    """

    limits: ServerLimits = field(default_factory=ServerLimits)
    budget_ms: float | None = None
    endpoint: Endpoint = field(default_factory=Endpoint)
    api_key: str | None = field(default=None, repr=False)
    allow_origin: tuple[str, ...] = ()
    log_text: bool = False

    def __post_init__(self) -> None:
        key = self.api_key
        if key is not None and not (
            key and key.isascii() and key.isprintable() and key == key.strip()
        ):
            raise NearfutureError(
                "the API key is empty, or has more than printable ASCII, or a space at an end: no "
                "header can carry it",
                parameter="api_key",
            )
