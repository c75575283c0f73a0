"""What a copy computes in the browser is what the running lab answers."""

from typing import Any

import numpy as np
import onnxruntime as ort
import pytest

from nearfuture.decoding import Detokenizer, GreedyDecoder
from nearfuture.lab.page import ASSETS
from nearfuture.lab.pages import unrolled
from nearfuture.runtime import load

FOLDER = ASSETS / "in-browser"


def run(name: str, **feeds: Any) -> dict[str, Any]:
    session = ort.InferenceSession(FOLDER / f"{name}.onnx", providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_outputs()]
    found = session.run(None, {key: np.asarray(each) for key, each in feeds.items()})
    return dict(zip(names, found, strict=True))


def read(text: str) -> list[int]:
    return [unrolled.LETTERS.index(letter) for letter in text]


def written(letters: Any) -> str:
    return "".join(unrolled.LETTERS[letter] for letter in letters)


@pytest.mark.parametrize("cell", ["tanh", "relu", "gru", "lstm"])
@pytest.mark.parametrize(("text", "swap"), [("abacdabc", 0), ("dc", 1), ("cabba", 4), ("b", 3)])
def test_states_are_those_of_the_page(cell: Any, text: str, swap: int) -> None:
    page = unrolled.states(text, cell, swap)
    found = run(f"unrolled-{cell}", text=read(text), swap=swap)
    assert written(found["swapped"]) == page["swapped"]
    assert written(found["other"]) == page["other"]
    same = {"rtol": 0, "atol": 1e-6}
    for name in ("h", "moved", "left"):
        np.testing.assert_allclose(found[name], page[name], **same)
    assert ("sum" in found) == (page["terms"] is not None)
    for name, each in (page["terms"] or {}).items():
        np.testing.assert_allclose(found[name], each, **same)


@pytest.mark.parametrize("directions", ["one", "both"])
@pytest.mark.parametrize("layout", ["batch-first", "time-first"])
@pytest.mark.parametrize(
    ("text", "rows", "layers"), [("abacdabc", 2, 1), ("ad", 4, 3), ("cab", 1, 2)]
)
def test_stacks_are_those_of_the_page(
    directions: Any, layout: Any, text: str, rows: int, layers: int
) -> None:
    page = unrolled.stack(text, layers, directions, rows, layout)
    found = run(f"stacked-{directions}", text=read(text), rows=range(rows))
    order = layout.replace("-", "_")
    assert found[f"x_{order}"].shape == tuple(page["inputs_shape"])
    assert found[f"outputs_{order}_{layers}"].shape == tuple(page["outputs_shape"])
    assert found[f"h_n_{layers}"].shape == tuple(page["h_n_shape"])
    for name, key in (("outputs", "outputs"), ("first_h_n", "h_n"), ("apart", "apart")):
        np.testing.assert_allclose(found[f"{name}_{layers}"], page[key], rtol=0, atol=1e-6)


def test_greedy_decoding_is_the_library_s() -> None:
    manifest = load("digits").manifest
    detokenizer = Detokenizer(manifest.vocabulary, manifest.frame_ms, manifest.centre_ms)
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(120, len(manifest.vocabulary))).astype(np.float32)
    scores[:, 0] += 2
    scores[40:56, 0] += 9  # a pause
    log_probs = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    greedy = GreedyDecoder()
    expected, _ = greedy.step(log_probs, greedy.start())
    last, silence, got = 0, 0, []
    for frame, each in enumerate(log_probs):
        found = run("greedy", log_probs=each, last=last, silence=silence, frame=frame)
        last, silence = int(found["last_next"]), int(found["silence_next"])
        np.testing.assert_array_equal(found["light"], np.rint(255 * np.exp(each)))
        if found["symbol"]:
            times = float(found["start_ms"]), float(found["end_ms"])
            got.append((int(found["symbol"]), frame, bool(found["pause"]), *times))
    begins = [detokenizer.begins_word(token) for token in expected]
    assert len(got) == len(expected) > 20
    assert any(pause for _, _, pause, _, _ in got)
    for (symbol, frame, pause, start, end), token, begin in zip(got, expected, begins, strict=True):
        assert (symbol, frame) == (token.index, token.frame)
        assert (pause or detokenizer.is_space(symbol)) == begin
        (word,) = detokenizer.words([token]) or [None]
        if word is not None:
            assert (start, end) == (word.start_ms, word.end_ms)
