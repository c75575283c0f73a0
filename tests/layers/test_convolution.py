"""The convolution over time and frequency, against torch's."""

import pytest
import torch
from torch import nn

from nearfuture.layers import Convolution2d


@pytest.mark.parametrize(
    ("left", "right", "stride", "bands", "kernel", "band_stride", "out"),
    [
        (5, 5, 2, 161, 41, 2, 81),
        (5, 5, 2, 81, 21, 2, 41),
        (3, 1, 1, 10, 4, 3, 4),
        (2, 0, 2, 5, 3, 1, 5),
    ],
)
def test_it_is_torchs_on_a_padded_image(
    left: int, right: int, stride: int, bands: int, kernel: int, band_stride: int, out: int
) -> None:
    layer = Convolution2d(
        (2, 3),
        bands=bands,
        band_kernel=kernel,
        band_stride=band_stride,
        left=left,
        right=right,
        stride=stride,
    ).double()
    theirs = nn.Conv2d(2, 3, (left + 1 + right, kernel), stride=(stride, band_stride)).double()
    theirs.weight, theirs.bias = layer.weight, layer.bias
    x = torch.randn(1, 13, 2 * bands, dtype=torch.float64)
    y, n = layer(x, torch.tensor([13]))
    image = x.reshape(1, 13, 2, bands).permute(0, 2, 1, 3)
    low = (kernel - 1) // 2
    padded = nn.functional.pad(image, (low, kernel - 1 - low, left, right))
    expected = theirs(padded).permute(0, 2, 1, 3).flatten(2)
    assert layer.bands == out
    assert y.shape == expected.shape == (1, -(-13 // stride), 3 * out)
    assert n.tolist() == [expected.shape[1]]
    torch.testing.assert_close(y, expected, rtol=1e-12, atol=1e-12)


def test_the_front_end_of_deep_speech_2() -> None:
    first = Convolution2d(
        (1, 32), bands=161, band_kernel=41, band_stride=2, left=5, right=5, stride=2, bias=False
    )
    second = Convolution2d(
        (32, 32), bands=81, band_kernel=21, band_stride=2, left=5, right=5, stride=2, bias=False
    )
    field = first.field.then(second.field)
    assert (field.stride, field.right, field.left) == (4, 15, 15)
    assert second.output_size == 32 * 41
    assert first.weight.shape == (32, 1, 11, 41)
