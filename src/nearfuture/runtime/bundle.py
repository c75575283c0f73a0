"""A bundle: one model as a folder, or the same as one zip file, checked before it is trusted."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
import tempfile
import weakref
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath

from nearfuture.error import NearfutureError
from nearfuture.runtime.external_data import external_locations
from nearfuture.runtime.manifest import Manifest, StoredFile
from nearfuture.runtime.precision import FLOAT32, graph_name

MANIFEST = "model.json"
MODELS = Path(__file__).parents[1] / "assets" / "models"
MAX_MANIFEST_BYTES = 1 << 20
_MAX_EXPANSION = 100  # from a zip file to what model.json lists
_ALWAYS_BYTES = 1 << 24  # which expand to nothing that hurts
_BLOCK_BYTES = 1 << 20

_GRAPHS = {"streaming": ("step.onnx", "finish.onnx"), "bidirectional": ("offline.onnx",)}


def bundled() -> list[str]:
    """Return the names of the models that come with this package."""
    return sorted(path.parent.name for path in MODELS.glob(f"*/{MANIFEST}"))


@dataclass(frozen=True, eq=False)
class Bundle:
    """A model on disk whose files match the checksums in its `model.json`.

    Attributes:
        manifest: what `model.json` says.
        folder: where the files are; for a zip file a temporary folder, which goes when the bundle
            does.
        source: the name or path it was opened by.
    """

    manifest: Manifest
    folder: Path
    source: str = ""

    @classmethod
    def open(cls, source: str | Path) -> Bundle:
        """Open the bundle of a name, a folder or a zip file.

        Args:
            source: the name of a model that comes with this package, or else a path.

        Raises:
            NearfutureError: if there is no such bundle, if a file is missing or does not have its
                checksum, if it was written by a newer version, or if anything in it points out of
                its own folder.
        """
        path = MODELS / source if source in bundled() else Path(source)
        with _named(path):
            if path.is_dir():
                return cls._checked(path, str(source))
            if path.is_file():
                return cls._unzipped(path)
        raise NearfutureError(
            f"there is no model {str(source)!r}: it is no folder, no zip file, and none of the "
            f"models that come with nearfuture ({', '.join(bundled()) or 'none'})",
            code="not_found",
        )

    def graph(self, name: str) -> Path:
        """Return the path of a graph of this bundle, e.g. `step.onnx`."""
        assert name in self.manifest.files, name
        return self.folder / name

    @classmethod
    def _checked(cls, folder: Path, source: str) -> Bundle:
        if not (folder / MANIFEST).is_file():
            raise NearfutureError(
                f"{folder} holds no model: it has no {MANIFEST}", code="not_found"
            )
        manifest = _read_manifest(folder)
        graphs = [
            graph_name(name, precision)
            for precision in (FLOAT32, *manifest.precisions)
            for name in _GRAPHS[manifest.kind]
        ]
        for name in graphs:
            if name not in manifest.files:
                raise NearfutureError(
                    f"a {manifest.kind} model needs {name}, which is not listed", code="damaged"
                )
        for name, expected in manifest.files.items():
            _verify(folder, name, expected)
        for name in graphs:
            for location in _external_data(folder, name):
                if location not in manifest.files:
                    raise NearfutureError(
                        f"{name} wants to read weights from {location!r}, which is no file of "
                        f"this bundle: do not trust it"
                    )
        return cls(manifest, folder, source)

    @classmethod
    def _unzipped(cls, path: Path) -> Bundle:
        folder = Path(tempfile.mkdtemp(prefix="nearfuture-"))
        try:
            _unzip(path, folder)
            bundle = cls._checked(folder, str(path))
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        weakref.finalize(bundle, shutil.rmtree, folder, ignore_errors=True)
        return bundle


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Make every error one line that begins with the path of the bundle."""
    try:
        yield
    except NearfutureError as error:
        error.args = (f"{path}: {error}",)
        raise
    except (OSError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise NearfutureError(
            f"{path} cannot be read as a model: {error}", code="damaged"
        ) from error


def _read_manifest(folder: Path) -> Manifest:
    with (folder / MANIFEST).open("rb") as file:
        content = file.read(MAX_MANIFEST_BYTES + 1)
    if len(content) > MAX_MANIFEST_BYTES:
        raise NearfutureError(
            f"{MANIFEST} is larger than {MAX_MANIFEST_BYTES} bytes", code="too_large"
        )
    try:
        values = json.loads(content, parse_float=_finite, parse_constant=_finite)
    except (ValueError, RecursionError) as error:
        raise NearfutureError(f"{MANIFEST} is not JSON: {error}", code="damaged") from error
    return Manifest.from_json(values)


def _finite(text: str) -> float:
    """Read a number; NaN and infinity are none of JSON, but Python reads and writes them."""
    if not math.isfinite(number := float(text)):
        raise ValueError(f"{text[:20]} is no finite number")
    return number


def _verify(folder: Path, name: str, expected: StoredFile) -> None:
    path = folder / name
    if not path.is_file():
        raise NearfutureError(f"{name} is missing", code="damaged")
    if not path.resolve().is_relative_to(folder.resolve()):
        raise NearfutureError(f"{name} is a link out of the folder: do not trust it")
    size = path.stat().st_size
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if (size, digest) != (expected.bytes, expected.sha256):
        raise NearfutureError(
            f"{name} is damaged: {size} bytes with SHA-256 {digest[:12]}…, where {MANIFEST} states "
            f"{expected.bytes} bytes with {expected.sha256[:12]}…",
            code="damaged",
        )


def _external_data(folder: Path, name: str) -> list[str]:
    """Return the files that a graph reads its weights from."""
    try:
        return sorted(external_locations((folder / name).read_bytes()))
    except NearfutureError as error:
        raise NearfutureError(f"{name}: {error}", code="damaged") from error


def _unzip(path: Path, folder: Path) -> None:
    """Write the manifest and the files it lists, and nothing else, into an empty folder."""
    with zipfile.ZipFile(path) as archive:
        members = {member.filename: member for member in archive.infolist() if not member.is_dir()}
        for name, member in members.items():
            if not _stays_inside(name):
                raise NearfutureError(f"member {name!r} leaves the folder: do not trust it")
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise NearfutureError(
                    f"member {name!r} is compressed in another way than deflate: pack it again",
                    code="unsupported",
                )
        manifests = [name for name in archive.namelist() if PurePosixPath(name).name == MANIFEST]
        if len(manifests) != 1:
            raise NearfutureError(f"a bundle has one {MANIFEST}, this file has {len(manifests)}")
        parent = PurePosixPath(manifests[0]).parent
        _extract(archive, manifests[0], folder / MANIFEST, MAX_MANIFEST_BYTES)
        files = _read_manifest(folder).files
        _refuse_expansion(path, sum(file.bytes for file in files.values()))
        for name, expected in files.items():
            if str(parent / name) not in members:
                raise NearfutureError(f"{name} is missing", code="damaged")
            _extract(archive, str(parent / name), folder / name, expected.bytes)


def _refuse_expansion(path: Path, listed_bytes: int) -> None:
    """Refuse a zip file that would fill the disk: weights hardly become smaller in it."""
    packed_bytes = path.stat().st_size
    if listed_bytes > max(_MAX_EXPANSION * packed_bytes, _ALWAYS_BYTES):
        raise NearfutureError(
            f"{MANIFEST} lists files of {listed_bytes} bytes in all, more than {_MAX_EXPANSION} "
            f"times the {packed_bytes} bytes of the zip file: do not trust it, or unpack it "
            f"yourself and open the folder",
            code="too_large",
        )


def _extract(archive: zipfile.ZipFile, name: str, target: Path, max_bytes: int) -> None:
    """Write a member block by block; one byte more than allowed fails the check that follows."""
    remaining = max_bytes + 1
    with archive.open(name) as source, target.open("wb") as file:
        while remaining > 0 and (block := source.read(min(remaining, _BLOCK_BYTES))):
            file.write(block)
            remaining -= len(block)


def _stays_inside(member: str) -> bool:
    posix, windows = PurePosixPath(member), PureWindowsPath(member)
    outside = posix.is_absolute() or windows.is_absolute() or bool(windows.drive or windows.root)
    return not outside and ".." not in windows.parts and ".." not in posix.parts
