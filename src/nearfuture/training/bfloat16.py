"""Where bfloat16 is worth its rounding."""

from __future__ import annotations

import platform

import torch


def multiplies_bfloat16(device: torch.device) -> bool:
    """Whether a device has instructions for products in bfloat16.

    Any GPU is taken to have them; a processor has where torch finds AVX-512's or AMX's, or where
    oneDNN finds those of Arm.
    """
    if device.type != "cpu":
        return True
    if platform.machine().lower() in ("aarch64", "arm64"):
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())
