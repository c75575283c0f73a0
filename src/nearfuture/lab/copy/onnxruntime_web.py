"""ONNX Runtime for the browser, from its npm package: of one version, and checked by its hash.

The package has 33 MB, and the files of it that a copy needs 14, so it is no part of this library:
when a copy is made, npm fetches it, from the registry that it is set to.
"""

from __future__ import annotations

import base64
import hashlib
import io
import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

from nearfuture.error import NearfutureError

VERSION = "1.30.0"
SHA512 = "q0y+JrrtukXSzsBWEMccVfqX25LRmosXHF+CaRJmg8pZClzcV7svNc4rKY3jL02Vb7QmRMDs1SigqR4CXAfKYQ=="
"""Of the package, as npm writes it."""

FILES = {
    "ort.js": "ort.wasm.min.mjs",
    "ort-wasm.js": "ort-wasm-simd-threaded.mjs",
    "ort-wasm.wasm": "ort-wasm-simd-threaded.wasm",
}
"""What a browser loads, and its name in the package: the interface, and the library with how it is
started. Some file servers do not know that an `.mjs` is a script."""

_MOST_BYTES = 64 << 20
_PATIENCE_S = 600.0
_FETCH = f"`npm pack onnxruntime-web@{VERSION}`"


def unpacked(file: Path | None = None) -> dict[str, bytes]:
    """Return the files of the package that a browser loads.

    Args:
        file: a copy of the package at hand; without it, npm fetches it.

    Raises:
        NearfutureError: where it cannot be fetched, and for a package that is another one.
    """
    package = _fetched() if file is None else _at_hand(file)
    if base64.b64encode(hashlib.sha512(package).digest()).decode() != SHA512:
        raise NearfutureError(
            f"{file or 'what npm sent'} is not onnxruntime-web {VERSION}: its sha512 is another; "
            f"{_FETCH} fetches the right one",
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


def _fetched() -> bytes:
    npm = shutil.which("npm")
    if npm is None:
        raise _unavailable("there is no npm on this machine; where there is one")
    with tempfile.TemporaryDirectory() as folder:
        command = [npm, "pack", f"onnxruntime-web@{VERSION}", "--pack-destination", folder]
        settings = {"npm_config_ignore_scripts": "true", "npm_config_fetch_retries": "1"}
        try:
            result = subprocess.run(
                command,
                env=settings | os.environ,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=_PATIENCE_S,
            )
        except subprocess.TimeoutExpired:
            raise _unavailable(f"npm had not fetched it in {_PATIENCE_S:g} s; elsewhere") from None
        files = [*Path(folder).glob("*.tgz")]
        if result.returncode or len(files) != 1:
            why = [line.removeprefix("npm error ") for line in result.stderr.splitlines()]
            raise _unavailable(f"npm says: {'; '.join(why[:4])[:300]}. Where there is a network")
        return _at_hand(files[0])


def _unavailable(why: str) -> NearfutureError:
    return NearfutureError(
        f"onnxruntime-web {VERSION}, which runs the figures in a browser, could not be fetched: "
        f"{why}, {_FETCH} fetches it; name that file with `onnxruntime_web`",
        code="unavailable",
        parameter="onnxruntime_web",
    )
