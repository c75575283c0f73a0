"""One file from the network: a download resumes where it stopped, and its checksum is compared."""

from __future__ import annotations

import hashlib
import http.client
import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from nearfuture.error import NearfutureError

RECORD = "fetched.json"
"""What was fetched, with sizes and checksums; beside the files."""

_BLOCK = 1 << 18
_TIMEOUT_S = 30
_RETRIES = 5
_PAUSE_S = 1.0  # before another connection; longer each time

Progress = Callable[[int, int | None], None]


def download(url: str, path: Path, *, progress: Progress | None = None) -> None:
    """Fetch `url` to `path`, or what is missing of it.

    Until it is complete it is called `path`.part. Where the connection drops, another is made and
    asked for the rest (HTTP Range); so does the next call. A server without ranges sends all of it
    again.

    Args:
        url: http or https.
        path: of the file; where it exists already, nothing is done.
        progress: called with the bytes received and all of them, None where the server does not
            state them.

    Raises:
        NearfutureError: where the host cannot be reached, has no such file, or the connection drops
            again and again. What has arrived is kept.
    """
    host = urlsplit(url).hostname
    if urlsplit(url).scheme not in ("http", "https") or not host:
        raise NearfutureError(f"{url} is no address to fetch from: it begins with http or https")
    if path.is_file():
        return
    remedy = (
        f"give another place with `mirror`, or put {path.name} into {path.parent} by hand and "
        f"run the same command"
    )
    part = path.with_name(f"{path.name}.part")
    part.parent.mkdir(parents=True, exist_ok=True)
    retries, reached = 0, False
    while True:
        before = _size(part)
        try:
            _receive(url, part, progress)
            break
        except urllib.error.HTTPError as error:
            error.close()
            raise NearfutureError(
                f"{host} does not give {url} (HTTP {error.code}, {error.reason}): it may have "
                f"moved; {remedy}",
                code="not_found",
            ) from error
        except (OSError, http.client.HTTPException) as error:
            received = _size(part)
            reached |= not isinstance(error, urllib.error.URLError)
            if not reached or received == 0:
                reason = getattr(error, "reason", error)
                raise NearfutureError(
                    f"cannot reach {host} ({reason}): is there a network? {remedy}",
                    code="unavailable",
                ) from error
            retries = 0 if received > before else retries + 1
            if retries >= _RETRIES:
                raise NearfutureError(
                    f"the connection to {host} drops again and again ({error}), with {received} "
                    f"bytes of {path.name} received: the same command resumes there",
                    code="unavailable",
                ) from error
            time.sleep(_PAUSE_S * retries)
    part.replace(path)
    _etag(part).unlink(missing_ok=True)


def _receive(url: str, part: Path, progress: Progress | None) -> None:
    """Append what one connection sends; raise an OSError where that is not all of it."""
    begin = _size(part)
    request = urllib.request.Request(url, headers={"User-Agent": "nearfuture"})
    if begin:
        request.add_header("Range", f"bytes={begin}-")
        if _size(_etag(part)):  # so that two versions of a file are never joined
            request.add_header("If-Range", _etag(part).read_text(encoding="ascii"))
    try:
        response = urllib.request.urlopen(request, timeout=_TIMEOUT_S)
    except urllib.error.HTTPError as error:
        if error.code != 416 or not begin:
            raise
        error.close()  # nothing follows: the part is complete, or it is another file's
        if error.headers.get("Content-Range") != f"bytes */{begin}":
            part.unlink()
            _receive(url, part, progress)
        return
    with response:
        if response.status == 206:
            received = response.headers.get("Content-Range", "")
            total = re.match(rf"bytes {begin}-\d+/(\d+)", received)
            if total is None:
                raise ConnectionError("the server sent another part than the one requested")
            size: int | None = int(total[1])
        else:
            begin, size = 0, response.length
            etag = response.headers.get("ETag", "")
            strong = etag.isascii() and not etag.startswith("W/")
            _etag(part).write_text(etag if strong else "", encoding="ascii")
        with part.open("r+b" if part.is_file() else "wb") as file:
            file.seek(begin)
            file.truncate()
            while block := response.read(_BLOCK):
                file.write(block)
                begin += len(block)
                if progress:
                    progress(begin, size)
    if size is not None and begin < size:
        raise ConnectionError(f"it ended at {begin} of {size} bytes")


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _etag(part: Path) -> Path:
    return part.with_name(f"{part.name}.etag")


def verify(path: Path, url: str, checksum: str, record: Path) -> None:
    """Compare a file with its publisher's checksum, and with that of its first download.

    Args:
        path: the file.
        url: where it came from.
        checksum: "md5:…" or "sha256:…", or "" where there is none.
        record: JSON file that keeps the size and SHA-256 of what was fetched.

    Raises:
        NearfutureError: where it is another file; it is renamed to *.wrong.
    """
    known = _recorded(record)
    first = known.get(path.name, {}).get("sha256", "")
    for expected, whose in (
        (checksum, "of its publisher"),
        (first and f"sha256:{first}", "of the first time it was fetched"),
    ):
        algorithm, _, digest = expected.partition(":")
        if expected and (actual := _digest(path, algorithm)) != digest:
            wrong = path.with_name(f"{path.name}.wrong")
            path.replace(wrong)
            raise NearfutureError(
                f"{path.name} is not the file it should be: its {algorithm} is {actual}, that "
                f"{whose} is {digest}; it was put aside as {wrong}. Run the command again, or give "
                f"another place with `mirror`",
                code="damaged",
            )
    if not first:
        size, digest = path.stat().st_size, _digest(path, "sha256")
        known[path.name] = {"url": url, "bytes": size, "sha256": digest}
        scratch = record.with_name(f"{record.name}.part")
        scratch.write_text(json.dumps(known, indent=2) + "\n", encoding="utf-8")
        scratch.replace(record)


def _digest(path: Path, algorithm: str) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()


def _recorded(record: Path) -> dict[str, Any]:
    """What was fetched before; nothing where that cannot be read."""
    try:
        known = json.loads(record.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}
