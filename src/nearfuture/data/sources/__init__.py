"""The forms in which recordings come: one file for each; `read(path, builder)` adds its rows."""

from nearfuture.data.sources.builder import Source
from nearfuture.data.sources.folder import AUDIO
from nearfuture.data.sources.lhotse_manifest import import_lhotse
from nearfuture.data.sources.reading import read_source

__all__ = ["AUDIO", "Source", "import_lhotse", "read_source"]
