"""Renderers of a report: text, a page, a plot, and JSON, JUnit, SARIF and annotations for CI."""

from nearfuture.audit.render.file import FORMATS, form_of, save
from nearfuture.audit.render.github import github_annotations
from nearfuture.audit.render.junit import junit
from nearfuture.audit.render.page import html
from nearfuture.audit.render.plain import runs, to_json
from nearfuture.audit.render.plot import plot
from nearfuture.audit.render.sarif import sarif
from nearfuture.audit.render.terminal import lines, text

__all__ = [
    "FORMATS",
    "form_of",
    "github_annotations",
    "html",
    "junit",
    "lines",
    "plot",
    "runs",
    "sarif",
    "save",
    "text",
    "to_json",
]
