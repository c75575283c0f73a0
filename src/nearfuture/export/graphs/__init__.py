"""The graphs of a recogniser, translated from torch to ONNX."""
