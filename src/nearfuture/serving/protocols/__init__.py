"""What clients speak: one file each, every one with `routes(service)`."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from starlette.routing import BaseRoute

from nearfuture.serving.service import Service

__all__ = ["PROTOCOLS", "routes"]

PROTOCOLS = ("stream", "vosk", "openai_rest", "openai_realtime")
"""The protocols by name. The first route of each is what `--listen NAME=PORT` puts at `/`."""


def routes(name: str, service: Service) -> Sequence[BaseRoute]:
    """The routes of one protocol."""
    module = importlib.import_module(f"{__name__}.{name}")
    found: Sequence[BaseRoute] = module.routes(service)
    return found
