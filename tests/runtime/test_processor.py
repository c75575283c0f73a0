"""What a processor offers: asked once, true for every width, refused by name where it is not."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from nearfuture.error import NearfutureError
from nearfuture.runtime import Bundle, Dispatcher, Engine, load, processor
from nearfuture.runtime.precision import LOW_PRECISIONS
from nearfuture.runtime.processor import PRODUCTS, UnsupportedPrecision
from tests.processor import offers, question, session

pytestmark = pytest.mark.processor


def test_a_processor_is_asked_about_what_twins_multiply_with() -> None:
    assert onnx.load(PRODUCTS) == question(), "python -m tests.processor --write"


def test_it_is_asked_once() -> None:
    assert processor.offered() is processor.offered()
    assert processor.offered()[0] == "float32"


def rows_are_independent(precision: str, shape: tuple[int, int]) -> bool:
    random = np.random.default_rng(shape[0])
    weight = random.uniform(-0.1, 0.1, shape).astype(np.float32)
    run = session(precision, weight, random.standard_normal(shape[1]).astype(np.float32)).run
    x = np.tanh(random.standard_normal((64, shape[0]))).astype(np.float32)
    alone = np.concatenate([run(None, {"x": x[b : b + 1]})[0] for b in range(64)])
    return all(np.array_equal(run(None, {"x": x[:n]})[0], alone[:n]) for n in range(1, 65))


@pytest.mark.parametrize("precision", LOW_PRECISIONS)
def test_the_answer_is_true_for_every_width(precision: str) -> None:
    """Rows are independent where it is offered, and somewhere they are not where it is not."""
    shapes = [(70, 48), (128, 384), (144, 432), (192, 576), (320, 128)]
    independent = [rows_are_independent(precision, shape) for shape in shapes]
    assert all(independent) == (precision in processor.offered())


def test_a_product_that_mixes_rows_is_found(tmp_path: Path) -> None:
    """A scale that is computed from the whole batch, beside a sum that is not."""
    weight = np.random.default_rng(0).integers(-99, 99, (64, 8)).astype(np.int8)
    made = helper.make_graph(
        [
            helper.make_node(
                "DynamicQuantizeMatMul", ["x", "w", "s"], ["mixed"], domain="com.microsoft"
            ),
            helper.make_node("Abs", ["x"], ["apart"]),
        ],
        "rows",
        [helper.make_tensor_value_info("x", 1, ["batch", 64])],
        [
            helper.make_tensor_value_info("mixed", 1, ["batch", 8]),
            helper.make_tensor_value_info("apart", 1, ["batch", 64]),
        ],
        [
            numpy_helper.from_array(weight, "w"),
            numpy_helper.from_array(np.array(0.01, np.float32), "s"),
        ],
    )
    domains = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(made, opset_imports=domains, ir_version=10), tmp_path / "rows.onnx")
    assert processor.row_independent(tmp_path / "rows.onnx") == ["apart"]


def test_a_twin_that_was_made_on_another_processor_is_refused_by_name(
    int8_digits: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offers(monkeypatch)
    bundle = Bundle.open(int8_digits)
    for run in (Engine, Dispatcher):
        with pytest.raises(UnsupportedPrecision, match=r"^int8 is not offered on this processor"):
            run(bundle, precision="int8")
    with pytest.raises(NearfutureError, match="choose float32, or let 'auto' choose"):
        load(int8_digits, precision="int8")
    assert Engine(bundle).precision == "float32"


@pytest.mark.parametrize(
    ("low", "chosen"), [((), "float32"), (("int4",), "float32"), (("int8", "int4"), "int8")]
)
def test_auto_is_the_fastest_that_is_there_and_offered(
    int8_digits: Path, monkeypatch: pytest.MonkeyPatch, low: tuple[str, ...], chosen: str
) -> None:
    offers(monkeypatch, *low)
    assert Engine(Bundle.open(int8_digits), precision="auto").precision == chosen
    assert Engine(Bundle.open("digits"), precision="auto").precision == "float32"
    load("digits-bidirectional", precision="auto")


def test_what_is_not_offered_is_said_before_what_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody is sent to make a twin that would be refused."""
    offers(monkeypatch, "int8")
    with pytest.raises(UnsupportedPrecision, match="choose int8 or float32"):
        load("digits", precision="int4")
    offers(monkeypatch, "int8", "int4")
    with pytest.raises(NearfutureError, match=r"no graphs in 'int4'.*nearfuture quantize"):
        load("digits", precision="int4")
