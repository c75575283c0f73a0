"""Single products in low precision: near what they stand for, on any processor."""

import numpy as np
import pytest

from nearfuture.export.quantization.int4 import int4_weights
from nearfuture.export.quantization.int8 import int8_weights
from nearfuture.runtime.precision import LOW_PRECISIONS
from tests.processor import OFFERED, session

pytestmark = pytest.mark.processor


@pytest.mark.slow
@pytest.mark.parametrize("precision", OFFERED)
def test_rows_are_bit_equal_at_the_deployed_width(precision: str) -> None:
    random = np.random.default_rng(0)
    weight = random.uniform(-0.02, 0.02, (2560, 7680)).astype(np.float32)
    run = session(precision, weight, random.standard_normal(7680).astype(np.float32)).run
    x = np.tanh(random.standard_normal((64, 2560))).astype(np.float32)
    alone = [run(None, {"x": x[b : b + 1]})[0][0] for b in range(64)]
    for batch in range(1, 65):
        mates = random.permutation(64)[:batch]
        together = run(None, {"x": x[mates]})[0]
        for place, b in enumerate(mates):
            assert np.array_equal(together[place], alone[b])


def test_pairs_of_weights_never_saturate_sixteen_bits() -> None:
    random = np.random.default_rng(0)
    for weight in (
        np.ones((6, 3)),
        -np.ones((7, 3)),
        random.standard_normal((512, 64)),
        random.standard_normal((511, 64)) ** 3,
    ):
        q, scale = int8_weights(weight.astype(np.float32))
        padded = np.zeros((len(q) + len(q) % 2, q.shape[1]), int)
        padded[: len(q)] = q
        pairs = padded.reshape(-1, 2, q.shape[1])
        for sign in (1, -1):  # unsigned activations, at most 255
            assert (255 * (sign * pairs).clip(0).sum(axis=1)).max() <= 32767
        assert np.abs(q * scale - weight).max() <= scale.max() / 2 * 1.001
        assert np.abs(q).max() >= 63


def test_an_empty_column_stays_zero() -> None:
    weight = np.zeros((64, 4), np.float32)
    weight[:, 1] = np.linspace(-1, 1, 64)
    for precision in LOW_PRECISIONS:
        y = session(precision, weight, np.zeros(4, np.float32)).run(
            None, {"x": np.ones((1, 64), np.float32)}
        )[0]
        assert np.array_equal(y[0, [0, 2, 3]], np.zeros(3))


@pytest.mark.parametrize("features", [32, 70, 128])
def test_four_bits_are_near_for_any_width(features: int) -> None:
    random = np.random.default_rng(features)
    weight = random.standard_normal((features, 48)).astype(np.float32)
    packed, scales = int4_weights(weight)
    q = np.stack([packed & 15, packed >> 4], axis=-1).reshape(48, -1, 32).astype(int) - 8
    back = (q * scales[..., None]).reshape(48, -1)[:, :features].T
    assert np.sqrt(np.square(back - weight).mean()) < 0.12
    x = random.uniform(-1, 1, (3, features)).astype(np.float32)
    found = session("int4", weight, np.zeros(48, np.float32)).run(None, {"x": x})[0]
    np.testing.assert_allclose(found, x @ back, atol=0.02 * np.sqrt(features))


def test_eight_bits_are_near() -> None:
    random = np.random.default_rng(0)
    weight = random.standard_normal((128, 48)).astype(np.float32)
    bias = random.standard_normal(48).astype(np.float32)
    x = random.uniform(-1, 1, (3, 128)).astype(np.float32)
    found = session("int8", weight, bias).run(None, {"x": x})[0]
    np.testing.assert_allclose(found, x @ weight + bias, atol=0.25)
