"""Renderers of a report: text for a terminal, a page, a plot, and values for JSON."""

from nearfuture.audit.render.page import html, save
from nearfuture.audit.render.plain import runs, to_json
from nearfuture.audit.render.plot import plot
from nearfuture.audit.render.terminal import lines, text

__all__ = ["html", "lines", "plot", "runs", "save", "text", "to_json"]
