"""One file from the network: goes on where it stopped, and is what its checksum says."""

from __future__ import annotations

import hashlib
import http.client
import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
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
_SUM = re.compile(r"(md5|sha256):([0-9a-f]+)")

Progress = Callable[[int, int | None], None]


def download(url: str, path: Path, *, progress: Progress | None = None) -> None:
    """Fetch `url` to `path`, or what is missing of it.

    Until it is complete it is called `path`.part. Where the connection drops, another is made and
    asked for the rest (HTTP Range); so does the next call. A server that does not know how sends
    all of it again.

    Args:
        url: http or https.
        path: of the file; where it is there already, nothing is done.
        progress: called with the bytes there and all of them, None where the server does not tell.

    Raises:
        NearfutureError: where the host cannot be reached, has no such file, or the connection drops
            again and again. What has arrived is kept.
    """
    host = urlsplit(url).hostname
    if urlsplit(url).scheme not in ("http", "https") or not host:
        raise NearfutureError(f"{url} is no address to fetch from: it begins with http or https")
    if path.is_file():
        return
    part = path.with_name(f"{path.name}.part")
    path.parent.mkdir(parents=True, exist_ok=True)
    dropped, reached = 0, False
    while True:
        before = part.stat().st_size if part.is_file() else 0
        try:
            _receive(url, part, progress)
            break
        except urllib.error.HTTPError as error:
            error.close()
            raise NearfutureError(
                f"{host} does not give {url} (HTTP {error.code}, {error.reason}): it may have "
                f"moved; {_way_out(path)}"
            ) from error
        except (OSError, http.client.HTTPException) as error:
            there = part.stat().st_size if part.is_file() else 0
            reached |= not isinstance(error, urllib.error.URLError)
            if not reached or there == 0:
                reason = getattr(error, "reason", error)
                raise NearfutureError(
                    f"cannot reach {host} ({reason}): is there a network? {_way_out(path)}"
                ) from error
            dropped = 0 if there > before else dropped + 1
            if dropped >= _RETRIES:
                raise NearfutureError(
                    f"the connection to {host} drops again and again ({error}), with {there} bytes "
                    f"of {path.name} there: the same command goes on from there"
                ) from error
            time.sleep(_PAUSE_S * dropped)
    part.replace(path)
    _etag(part).unlink(missing_ok=True)


def _way_out(path: Path) -> str:
    return (
        f"give another place with --mirror URL, or put {path.name} into {path.parent} by hand and "
        f"run the same command"
    )


def _receive(url: str, part: Path, progress: Progress | None) -> None:
    """One connection: all that it brings. An error where that is not all there is."""
    there = part.stat().st_size if part.is_file() else 0
    request = urllib.request.Request(url, headers={"User-Agent": "nearfuture"})
    if there:
        request.add_header("Range", f"bytes={there}-")
        if _etag(part).is_file():  # so that two versions of a file are never joined
            request.add_header("If-Range", _etag(part).read_text(encoding="ascii"))
    try:
        response = urllib.request.urlopen(request, timeout=_TIMEOUT_S)
    except urllib.error.HTTPError as error:
        if error.code != 416 or not there:
            raise
        # There is nothing after what is there: either it is all, or it is another file's.
        error.close()
        total = re.fullmatch(r"bytes \*/(\d+)", error.headers.get("Content-Range", ""))
        if total is not None and int(total.group(1)) == there:
            return
        part.unlink()
        return _receive(url, part, progress)
    with response:
        answer = _Answer.of(response, there)
        if answer.begin == 0:
            _etag(part).unlink(missing_ok=True)
            if answer.etag:
                _etag(part).write_text(answer.etag, encoding="ascii")
        there = answer.begin
        with part.open("r+b" if part.is_file() else "wb") as file:
            file.seek(there)
            file.truncate()
            while block := response.read(_BLOCK):
                file.write(block)
                there += len(block)
                if progress:
                    progress(there, answer.total)
    if answer.total is not None and there < answer.total:
        raise ConnectionError(f"it ended at {there} of {answer.total} bytes")
    return None


@dataclass(frozen=True)
class _Answer:
    """What a response brings: from which byte, of how many, and of which version of the file."""

    begin: int
    total: int | None
    etag: str

    @classmethod
    def of(cls, response: Any, there: int) -> _Answer:
        etag = response.headers.get("ETag", "")
        etag = etag if etag.isascii() and not etag.startswith("W/") else ""
        told = re.match(r"bytes (\d+)-\d+/(\d+)", response.headers.get("Content-Range", ""))
        if response.status == 206 and told is not None and int(told.group(1)) == there:
            return cls(there, int(told.group(2)), etag)
        if response.status == 206:
            raise ConnectionError("the server sent another part than it was asked for")
        length = response.headers.get("Content-Length")
        return cls(0, None if length is None else int(length), etag)


def _etag(part: Path) -> Path:
    return part.with_name(f"{part.name}.etag")


def verify(path: Path, url: str, checksum: str, record: Path) -> None:
    """Compare a file with its publisher's checksum; or, where there is none, with the first time.

    Args:
        path: the file.
        url: where it came from.
        checksum: "md5:…" or "sha256:…", or "".
        record: JSON file that keeps the size and SHA-256 of what was fetched.

    Raises:
        NearfutureError: where it is another file; it is put aside as *.wrong.
    """
    known = _recorded(record)
    first = known.get(path.name, {}).get("sha256")
    expected = [one for one in (checksum, f"sha256:{first}" if first else "") if one]
    for one in expected:
        match = _SUM.fullmatch(one)
        assert match is not None, one
        with path.open("rb") as file:
            found = hashlib.file_digest(file, match.group(1)).hexdigest()
        if found != match.group(2):
            wrong = path.with_name(f"{path.name}.wrong")
            path.replace(wrong)
            whose = "of its publisher" if one == checksum else "of the first time it was fetched"
            raise NearfutureError(
                f"{path.name} is not the file it should be: its {match.group(1)} is {found}, that "
                f"{whose} is {match.group(2)}; it was put aside as {wrong}. Run the command again, "
                f"or give another place with --mirror URL"
            )
    if not first:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        known[path.name] = {"url": url, "bytes": path.stat().st_size, "sha256": digest}
        scratch = record.with_name(f"{record.name}.part")
        scratch.write_text(json.dumps(known, indent=2) + "\n", encoding="utf-8")
        scratch.replace(record)


def _recorded(record: Path) -> dict[str, Any]:
    """What was fetched before; nothing where that cannot be read."""
    try:
        known = json.loads(record.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}
