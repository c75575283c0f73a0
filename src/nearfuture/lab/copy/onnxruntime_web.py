"""ONNX Runtime for the browser, from its npm package: of one version, and checked by its hash.

The package has 33 MB, and the two files of it that a copy needs 14; so it is fetched when a copy is
made, and is no part of this library.
"""

from __future__ import annotations

import base64
import hashlib
import io
import tarfile
from collections.abc import Callable
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from nearfuture.error import NearfutureError

VERSION = "1.30.0"
SHA512 = "q0y+JrrtukXSzsBWEMccVfqX25LRmosXHF+CaRJmg8pZClzcV7svNc4rKY3jL02Vb7QmRMDs1SigqR4CXAfKYQ=="
"""Of the package, as npm writes it."""

ADDRESS = f"https://registry.npmjs.org/onnxruntime-web/-/onnxruntime-web-{VERSION}.tgz"

FILES = {
    "ort.js": "ort.wasm.min.mjs",
    "ort-wasm.js": "ort-wasm-simd-threaded.mjs",
    "ort-wasm.wasm": "ort-wasm-simd-threaded.wasm",
}
"""What a browser loads, and its name in the package: the interface, and the library with how it is
started. Some file servers do not know that an `.mjs` is a script."""

_PART = 1 << 18
_MOST_BYTES = 64 << 20
_PATIENCE_S = 60.0


def unpacked(
    file: Path | None = None, *, on_part: Callable[[int, int], None] | None = None
) -> dict[str, bytes]:
    """Return the files of the package that a browser loads.

    Args:
        file: a copy of the package at hand; without it, it is fetched from npm.
        on_part: called with the bytes fetched and all of them.

    Raises:
        NearfutureError: where it cannot be fetched, and for a package that is another one.
    """
    package = _fetched(on_part) if file is None else _at_hand(file)
    if base64.b64encode(hashlib.sha512(package).digest()).decode() != SHA512:
        raise NearfutureError(
            f"{file or 'what npm sent'} is not onnxruntime-web {VERSION}: its sha512 is another; "
            f"`npm pack onnxruntime-web@{VERSION}` fetches the right one",
            code="damaged",
            parameter="onnxruntime_web",
        )
    with tarfile.open(fileobj=io.BytesIO(package), mode="r:gz") as archive:
        return {name: _member(archive, f"package/dist/{packed}") for name, packed in FILES.items()}


def _member(archive: tarfile.TarFile, name: str) -> bytes:
    member = archive.extractfile(name)
    assert member is not None, f"the package that has this hash has no {name}"
    return member.read()


def _at_hand(file: Path) -> bytes:
    try:
        with file.open("rb") as package:
            return package.read(_MOST_BYTES)  # more has another hash
    except OSError as error:
        raise NearfutureError(
            f"{file} cannot be read: {(error.strerror or str(error)).lower()}",
            code="not_found",
            parameter="onnxruntime_web",
        ) from error


def _fetched(on_part: Callable[[int, int], None] | None) -> bytes:
    parts: list[bytes] = []
    size = 0
    try:
        with urlopen(ADDRESS, timeout=_PATIENCE_S) as answer:
            whole = int(answer.headers.get("Content-Length") or 0)
            while size < _MOST_BYTES and (part := answer.read(_PART)):
                parts.append(part)
                size += len(part)
                if on_part is not None:
                    on_part(size, max(size, whole))
    except (URLError, OSError) as error:
        raise NearfutureError(
            f"onnxruntime-web {VERSION}, which runs the figures in a browser, could not be fetched "
            f"from npm: {getattr(error, 'reason', error)}. Where there is a network, `npm pack "
            f"onnxruntime-web@{VERSION}` fetches it; name that file with `onnxruntime_web`",
            code="unavailable",
            parameter="onnxruntime_web",
        ) from error
    return b"".join(parts)
