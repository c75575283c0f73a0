"""Graphs in low precision, calibrated and measured on recordings."""

from nearfuture.export.quantization.bundle import check_precisions, quantize
from nearfuture.export.quantization.calibration_data import CalibrationData

__all__ = ["CalibrationData", "check_precisions", "quantize"]
