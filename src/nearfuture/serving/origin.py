"""Which web pages may use a server: a browser sends the origin of the page that asks.

Without a key, any page that a user opens could use the server on their own machine. So the pages of
other origins are refused unless they are allowed, and so are host names that an attacker has
made to point at this machine (DNS rebinding: then the page's origin is the server's own).
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection

from nearfuture.error import NearfutureError
from nearfuture.serving.errors import RequestError
from nearfuture.serving.json_fields import brief

ANY = "*"
_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}


class OriginPolicy:
    """The web pages that may use one server; programs that are no browser send no origin.

    Args:
        allowed: origins as `as_origin` gives them, `*` for all. With any, no other page may come;
            the server's own pages always may.
        keyed: whether clients must bring a key; then pages of any origin may, as long as none is
            named, for they cannot know it.

    >>> OriginPolicy(["https://a.example"], keyed=False).allowed
    ('https://a.example',)
    """

    def __init__(self, allowed: Iterable[str], *, keyed: bool) -> None:
        self.allowed = tuple(allowed)
        self._hosts = {urlsplit(origin).hostname for origin in self.allowed}
        self._keyed = keyed
        self._any_origin = ANY in self.allowed or (keyed and not self.allowed)

    def refusal(self, connection: HTTPConnection) -> RequestError | None:
        """Return why a request or a websocket is refused; None if it is not."""
        if self._any_origin:
            return None
        hosts = connection.headers.getlist("host")
        host = _Authority.of(hosts[0], connection.url.scheme) if len(hosts) == 1 else None
        named = host is not None and (self._keyed or self._is_ours(host.name, connection))
        if hosts and not named:
            return RequestError(
                "forbidden",
                f"no server of this machine is called {brief(hosts[0], 80)}: use localhost, or "
                f"start the server with --allow-origin, naming the pages that are to use it",
            )
        for origin in connection.headers.getlist("origin"):
            if origin.lower() in self.allowed:
                continue
            scheme, _, rest = origin.partition("://")
            page = _Authority.of(rest, scheme)
            if host is not None and page is not None and page.is_at(host):
                continue
            return RequestError(
                "forbidden",
                f"pages of {brief(origin, 80)} may not use this server: start it with "
                f"--allow-origin {brief(origin, 80)}",
            )
        return None

    def _is_ours(self, name: str, connection: HTTPConnection) -> bool:
        """Return whether a server that was reached over loopback may have that name."""
        server = connection.scope.get("server")
        if server is None or not _is_loopback(str(server[0])):
            return True
        own = ("localhost", socket.gethostname().lower())
        return (
            name in own or name.endswith(".localhost") or _is_loopback(name) or name in self._hosts
        )


def as_origin(text: str) -> str:
    """Return an origin as browsers send it: `scheme://host`, with a port unless it is the default.

    Raises:
        NearfutureError: for anything else than that, `*` for all, or `null` for files.

    >>> as_origin("https://App.Example:443/"), as_origin("http://localhost:8080"), as_origin("*")
    ('https://app.example', 'http://localhost:8080', '*')
    """
    if text in (ANY, "null"):
        return text
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if (
        not host
        or parts.scheme not in ("http", "https")
        or parts.path not in ("", "/")
        or any((parts.username, parts.password, parts.query, parts.fragment))
        or not host.isascii()
        or "*" in host
    ):
        raise NearfutureError(
            f"{brief(text, 80)} is no origin: an origin is written as https://app.example or "
            f"http://localhost:8080; '*' is every page, 'null' is files that a browser opens",
            parameter="allow_origin",
        )
    name = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{name}" + ("" if port in (None, _PORTS[parts.scheme]) else f":{port}")


@dataclass(frozen=True)
class _Authority:
    """`host:port`, the port None where it is not written; `usual` is then meant."""

    name: str
    port: int | None
    usual: int | None

    @classmethod
    def of(cls, text: str, scheme: str) -> _Authority | None:
        """Parse `host:port`; None for anything else."""
        try:
            parts = urlsplit(f"//{text}")
            name, port = parts.hostname, parts.port
        except ValueError:
            return None
        if not name or parts.username is not None or parts.path:
            return None
        return cls(name.rstrip("."), port, _PORTS.get(scheme.lower()))

    def is_at(self, other: _Authority) -> bool:
        """Return whether both are one place; behind a proxy with TLS, no port is its port."""
        return self.name == other.name and (
            self.port == other.port or (self.port or self.usual) == (other.port or other.usual)
        )


def _is_loopback(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    # IPv4 on a socket of IPv6 (`--host ::`) is ::ffff:127.0.0.1
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback
