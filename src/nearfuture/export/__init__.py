"""From torch to a bundle that runs without it."""

from nearfuture.export.bundle import export_bundle
from nearfuture.export.quantization import quantize
from nearfuture.export.sounds import Sounds, bundled_sounds, given_sounds
from nearfuture.export.verification import verify

__all__ = ["Sounds", "bundled_sounds", "export_bundle", "given_sounds", "quantize", "verify"]
