"""The base of all layers with a finite window: buffering, phase, warm-up and tail."""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor
from torch.nn import functional as F

from nearfuture.budget import ReceptiveField
from nearfuture.error import NearfutureError
from nearfuture.layers.contract import StreamingLayer
from nearfuture.layers.ragged import align, mask, newest
from nearfuture.layers.state import Device, DType, State, flatten


class Windowed(StreamingLayer):
    """A layer whose output `t` is a function of frames `t·stride - left … t·stride + right`.

    A subclass defines `slide`; a buffer of the last `kernel - 1` frames does the rest. Padded
    layers see zeros beyond both ends: `left` zero frames count from the beginning, and `finish`
    reads `right` more. Layers of complete windows (`padded=False`, `left = 0`) begin empty and
    finish without a tail.

    Args:
        input_size: features in.
        output_size: features out.
        left: frames of the past.
        right: frames of the future.
        stride: frames between windows, at most `left + 1 + right`.
        padded: False for complete windows.

    Raises:
        NearfutureError: where the stride would leave frames between windows unread.
    """

    def __init__(
        self,
        input_size: int,
        output_size: int,
        *,
        left: int = 0,
        right: int = 0,
        stride: int = 1,
        padded: bool = True,
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.output_size = output_size
        self.field = ReceptiveField(left=left, right=right, stride=stride, padded=padded)
        self.left, self.right, self.stride, self.padded = left, right, stride, padded
        self.kernel = left + 1 + right
        if stride > self.kernel:
            raise NearfutureError(
                f"a stride of {stride} skips frames that no window of {self.kernel} reads; widen "
                f"`left` or `right` until left + 1 + right is at least {stride}",
                code="out_of_range",
                parameter="stride",
            )

    @abstractmethod
    def slide(self, frames: Tensor) -> Tensor:
        """Every complete window: (B, N >= kernel, D) → (B, (N - kernel) // stride + 1, E)."""

    def _windows(self, count: Tensor) -> Tensor:
        """Complete windows in `count` frames, without dividing a negative number."""
        return (count - (self.kernel - self.stride)).clamp(min=0) // self.stride

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        frames = mask(x, lengths)
        if self.padded:
            frames = F.pad(frames, (0, 0, self.left, self.right))
            lengths = lengths + (self.kernel - 1)
        count = self._windows(lengths)
        if frames.shape[1] < self.kernel:
            return frames.new_zeros(frames.shape[0], 0, self.output_size), count
        return mask(self.slide(frames), count), count

    def start(self, batch_size: int, *, device: Device = None, dtype: DType = None) -> State:
        frames = self.new_zeros(
            batch_size, self.kernel - 1, self.input_size, device=device, dtype=dtype
        )
        begun = self.left if self.padded else 0
        return frames, torch.full((batch_size,), begun, dtype=torch.int64, device=frames.device)

    def step(self, x: Tensor, lengths: Tensor, state: State) -> tuple[Tensor, Tensor, State]:
        frames, count = flatten(state)
        if x.shape[1] == 0:
            return *self.no_output(frames), state
        keep = self.kernel - 1
        frames = torch.cat([frames, mask(x, lengths)], dim=1)
        total = count + lengths
        emitted = self._windows(total)
        # One frame completes a window only where the buffer is full, so that its first is first.
        windows = frames if x.shape[1] == 1 else align(frames, keep - count)
        y = mask(self.slide(windows), emitted)
        return y, emitted, (newest(frames, lengths, keep), total - emitted * self.stride)

    def finish(self, state: State) -> tuple[Tensor, Tensor]:
        frames, count = flatten(state)
        future = self.right if self.padded else 0
        zeros = frames.new_zeros(frames.shape[0], future, self.input_size)
        y, emitted, _ = self.step(zeros, torch.full_like(count, future), state)
        return y, emitted
