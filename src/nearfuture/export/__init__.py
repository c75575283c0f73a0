"""From torch to a bundle that runs without it."""

from nearfuture.export.bundle import export_bundle
from nearfuture.export.verification import verify

__all__ = ["export_bundle", "verify"]
