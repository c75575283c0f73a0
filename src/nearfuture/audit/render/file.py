"""A report written to a file, in the form that the file's name asks for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from nearfuture.audit.render.junit import junit
from nearfuture.audit.render.page import html
from nearfuture.audit.render.plain import to_json
from nearfuture.audit.render.sarif import sarif
from nearfuture.audit.report import Report
from nearfuture.error import NearfutureError

FORMATS: dict[str, Callable[[Report], str]] = {
    ".html": html,
    ".json": lambda report: json.dumps(to_json(report), ensure_ascii=False) + "\n",
    ".xml": junit,
    ".sarif": sarif,
}
"""What a file contains, by the end of its name."""


def save(report: Report, path: str | Path) -> None:
    """Write a report to a file: a page (.html), JSON (.json), JUnit (.xml) or SARIF (.sarif).

    Raises:
        NearfutureError: where the file's name has another end.
    """
    # Names of files may have bytes that are no UTF-8: they are written as in JSON, \\udcff.
    Path(path).write_text(form_of(path)(report), encoding="utf-8", errors="backslashreplace")


def form_of(path: str | Path) -> Callable[[Report], str]:
    """Return the renderer for a file by the end of its name.

    Raises:
        NearfutureError: where there is none.

    >>> form_of("report.sarif").__name__
    'sarif'
    """
    form = FORMATS.get(Path(path).suffix.lower())
    if form is None:
        raise NearfutureError(
            f"a report is written to a file that ends in {', '.join(FORMATS)}, not {path}",
            parameter="out",
        )
    return form
