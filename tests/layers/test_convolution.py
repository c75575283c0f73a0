"""The convolutions over time, and over time and frequency, against torch's."""

import pytest
import torch
from torch import nn

from nearfuture.error import NearfutureError
from nearfuture.layers import Convolution2d, from_torch


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


CONVERTED = [
    {"kernel_size": 1},
    {"kernel_size": 1, "dilation": 3},
    {"kernel_size": 5, "padding": 2},
    {"kernel_size": 3, "padding": "valid", "stride": 3},
    {"kernel_size": 4, "padding": "same"},  # an even kernel looks one frame further ahead
    {"kernel_size": 3, "dilation": 4},
    {"kernel_size": 3, "dilation": 2, "padding": 2, "stride": 3, "groups": 2},
    {"kernel_size": 4, "dilation": 3, "padding": "same", "groups": 2, "bias": False},
    {"kernel_size": 5, "padding": 2, "stride": 2, "groups": 4},
]


@pytest.mark.filterwarnings("ignore:Using padding=.same.")  # torch pads a copy, and says so
@pytest.mark.parametrize("options", CONVERTED, ids=str)
def test_a_torch_convolution_is_carried_over(options: dict) -> None:
    theirs = nn.Conv1d(4, 8, **options).double()
    ours = from_torch(theirs)
    x = torch.randn(2, 23, 4, dtype=torch.float64)
    expected = theirs(x.transpose(1, 2)).transpose(1, 2)
    y, n = ours(x, torch.tensor([23, 23]))
    assert n.tolist() == [expected.shape[1]] * 2
    torch.testing.assert_close(y, expected, rtol=1e-12, atol=1e-12)
    assert ours.weight.data_ptr() != theirs.weight.data_ptr()
    assert ours.field.right - ours.field.left in (0, 1) or not ours.field.padded


def test_a_row_is_convolved_as_if_it_were_alone() -> None:
    theirs = nn.Conv1d(4, 4, 3, dilation=2, padding=2, groups=4).double()
    x = torch.randn(2, 9, 4, dtype=torch.float64)
    y, n = from_torch(theirs)(x, torch.tensor([9, 5]))
    alone = theirs(x[1:, :5].transpose(1, 2)).transpose(1, 2)
    assert n.tolist() == [9, 5]
    torch.testing.assert_close(y[1:, :5], alone, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("theirs", "parameter", "message"),
    [
        (nn.Conv1d(2, 2, 5, padding=1), "padding", "padding of 1 .* the 2 frames on each side"),
        (nn.Conv1d(2, 2, 4, padding=1), "padding", r"1\.5 frames"),
        (nn.Conv1d(2, 2, 3, padding=1, padding_mode="circular"), "padding_mode", "'circular'"),
        (nn.Conv1d(2, 2, 1, stride=2), "stride", "stride of 2 skips frames"),
        (nn.Conv2d(2, 2, 3), "module", "Conv2d has no conversion"),
    ],
)
def test_a_convolution_that_cannot_be_carried_over_is_refused(
    theirs: nn.Module, parameter: str, message: str
) -> None:
    with pytest.raises(NearfutureError, match=message) as refused:
        from_torch(theirs)  # type: ignore[call-overload]
    assert refused.value.parameter == parameter
