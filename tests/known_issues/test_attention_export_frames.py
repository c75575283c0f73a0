"""The graph of a whole attention layer had the number of frames of its example built in.

`min(T, T + right)` went through `int`, which makes a number of the symbol that an export puts in
place of T: the graph ran at every T and read the first frames alone.
"""

import pytest
import torch
from torch import Tensor, nn

from nearfuture.layers import CausalMask, ChunkedMask, FullMask, SelfAttention, SlidingMask


class Whole(nn.Module):
    def __init__(self, layer: SelfAttention) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        y: Tensor = self.layer(x, lengths)[0]
        return y


@pytest.mark.parametrize(
    "mask",
    [
        CausalMask(),
        SlidingMask(left=4, right=1),
        pytest.param(FullMask(), marks=pytest.mark.slow),
        pytest.param(ChunkedMask(chunk=4, left_chunks=1), marks=pytest.mark.slow),
    ],
    ids=lambda mask: type(mask).__name__,
)
def test_frames_stay_free(mask: CausalMask | FullMask | SlidingMask | ChunkedMask) -> None:
    layer = SelfAttention(4, heads=2, mask=mask).eval()
    frames = torch.export.Dim("T")
    program = torch.export.export(
        Whole(layer),
        (torch.randn(2, 6, 4), torch.tensor([6, 4])),
        dynamic_shapes={"x": {1: frames}, "lengths": {}},
    ).module()
    x, lengths = torch.randn(2, 17, 4), torch.tensor([17, 9])
    torch.testing.assert_close(program(x, lengths), layer(x, lengths)[0])
