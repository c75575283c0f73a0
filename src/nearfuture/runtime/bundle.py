"""A bundle: one model as a folder, or the same as one zip file, checked before it is trusted."""

from __future__ import annotations

import hashlib
import json
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
LARGEST_MANIFEST = 1 << 20  # bytes

_GRAPHS = {"streaming": ("step.onnx", "finish.onnx"), "bidirectional": ("offline.onnx",)}


def bundled() -> list[str]:
    """The names of the models that come with this package."""
    return sorted(path.parent.name for path in MODELS.glob(f"*/{MANIFEST}"))


@dataclass(frozen=True, eq=False)
class Bundle:
    """A model on disk whose every file is what its `model.json` says.

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
        """The bundle of a name, a folder or a zip file.

        Args:
            source: the name of a model that comes with this package, or else a path.

        Raises:
            NearfutureError: if there is no such bundle, if a file is missing or does not have its
                checksum, if it was written by a newer version, or if anything in it points out of
                its own folder.
        """
        path = MODELS / source if source in bundled() else Path(source)
        with _told_in_one_line(path):
            if path.is_dir():
                return cls._checked(path, str(source))
            if path.is_file():
                return cls._unzipped(path)
        raise NearfutureError(
            f"there is no model {str(source)!r}: it is no folder, no zip file, and none of the "
            f"models that come with nearfuture ({', '.join(bundled()) or 'none'})"
        )

    def graph(self, name: str) -> Path:
        """The path of one of its graphs, e.g. `step.onnx`."""
        assert name in self.manifest.files, name
        return self.folder / name

    @classmethod
    def _checked(cls, folder: Path, source: str) -> Bundle:
        if not (folder / MANIFEST).is_file():
            raise NearfutureError(f"{folder} holds no model: it has no {MANIFEST}")
        manifest = _manifest((folder / MANIFEST).read_bytes()[: LARGEST_MANIFEST + 1])
        precisions = (FLOAT32, *manifest.precisions)
        graphs = [graph_name(name, one) for one in precisions for name in _GRAPHS[manifest.kind]]
        for name in graphs:
            if name not in manifest.files:
                raise NearfutureError(f"a {manifest.kind} model needs {name}, which is not listed")
        for name, expected in manifest.files.items():
            _verify(folder, name, expected)
        for name in graphs:
            for location in _weights_of(folder, name):
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
def _told_in_one_line(path: Path) -> Iterator[None]:
    try:
        yield
    except NearfutureError as error:
        raise NearfutureError(f"{path}: {error}") from error
    except (OSError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise NearfutureError(f"{path} cannot be read as a model: {error}") from error


def _manifest(content: bytes) -> Manifest:
    if len(content) > LARGEST_MANIFEST:
        raise NearfutureError(f"{MANIFEST} is larger than {LARGEST_MANIFEST} bytes")
    try:
        values = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise NearfutureError(f"{MANIFEST} is not JSON: {error}") from error
    return Manifest.from_json(values)


def _verify(folder: Path, name: str, expected: StoredFile) -> None:
    path = folder / name
    if not path.is_file():
        raise NearfutureError(f"{name} is missing")
    if not path.resolve().is_relative_to(folder.resolve()):
        raise NearfutureError(f"{name} is a link out of the folder: do not trust it")
    size = path.stat().st_size
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if (size, digest) != (expected.bytes, expected.sha256):
        raise NearfutureError(
            f"{name} is damaged: {size} bytes with SHA-256 {digest[:12]}…, where {MANIFEST} says "
            f"{expected.bytes} bytes with {expected.sha256[:12]}…"
        )


def _weights_of(folder: Path, name: str) -> list[str]:
    """The files that a graph reads its weights from."""
    try:
        return sorted(external_locations((folder / name).read_bytes()))
    except NearfutureError as error:
        raise NearfutureError(f"{name}: {error}") from error


def _unzip(path: Path, folder: Path) -> None:
    """Write the manifest and the files it lists, and nothing else, into an empty folder."""
    with zipfile.ZipFile(path) as archive:
        members = [member for member in archive.namelist() if not member.endswith("/")]
        for member in members:
            if not _stays_inside(member):
                raise NearfutureError(f"member {member!r} leaves the folder: do not trust it")
        manifests = [member for member in members if PurePosixPath(member).name == MANIFEST]
        if len(manifests) != 1:
            raise NearfutureError(f"a bundle has one {MANIFEST}, this file has {len(manifests)}")
        parent = PurePosixPath(manifests[0]).parent
        content = _member(archive, manifests[0], LARGEST_MANIFEST)
        (folder / MANIFEST).write_bytes(content)
        for name, expected in _manifest(content).files.items():
            member = str(parent / name)
            if member not in members:
                raise NearfutureError(f"{name} is missing")
            (folder / name).write_bytes(_member(archive, member, expected.bytes))


def _member(archive: zipfile.ZipFile, name: str, limit: int) -> bytes:
    with archive.open(name) as file:
        return file.read(limit + 1)  # one more byte than allowed fails the check that follows


def _stays_inside(member: str) -> bool:
    posix, windows = PurePosixPath(member), PureWindowsPath(member)
    outside = posix.is_absolute() or windows.is_absolute() or bool(windows.drive or windows.root)
    return not outside and ".." not in windows.parts and ".." not in posix.parts
