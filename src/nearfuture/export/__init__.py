"""From a recogniser in torch to a bundle that runs without it."""

from nearfuture.export.bundle import ModelCard, export_bundle
from nearfuture.export.quantization import CalibrationData, quantize
from nearfuture.export.verification import verify

__all__ = ["CalibrationData", "ModelCard", "export_bundle", "quantize", "verify"]
