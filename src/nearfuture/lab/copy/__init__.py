"""A static copy of the lab: what a file server can give of it, and what it says about the rest."""

from nearfuture.lab.copy.export import check, export
from nearfuture.lab.copy.onnxruntime_web import unpacked as onnxruntime_web

__all__ = ["check", "export", "onnxruntime_web"]
