"""The protocols that clients speak: one file each, every one with `routes(service)`."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from starlette.routing import BaseRoute

from nearfuture.serving.service import Service

__all__ = ["PROTOCOLS", "routes"]

PROTOCOLS = ("stream", "vosk", "openai_rest", "openai_realtime")
"""The protocols by name. The first route of each is what `--listen NAME=PORT` puts at `/`."""


def routes(name: str, service: Service) -> Sequence[BaseRoute]:
    """Return the routes of one protocol."""
    module = importlib.import_module(f"{__name__}.{name}")
    protocol_routes: Sequence[BaseRoute] = module.routes(service)
    return protocol_routes
