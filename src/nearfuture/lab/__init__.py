"""The lab: pages that teach what lookahead is, with figures that the library computes live."""

from nearfuture.lab.app import create_app
from nearfuture.lab.pages import PAGES

__all__ = ["PAGES", "create_app"]
