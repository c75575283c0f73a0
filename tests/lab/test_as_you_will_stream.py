"""The twin without its backward direction is that model, and its figure says what it writes."""

from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import numpy_helper

from nearfuture.budget import RecognizerConfig
from nearfuture.lab import forward_alone, recordings
from nearfuture.lab.pages import as_you_will_stream
from nearfuture.layers import Bidirectional
from nearfuture.model import Recognizer
from nearfuture.runtime import Bundle

TORCH_GATES = (1, 0, 2)  # r, z, n of ONNX's z, r, n


def recognizer(*, backwards: bool) -> Recognizer:
    """The bundled twin in torch, with the weights of its bundle; its backward direction may be 0.

    The exporter keeps the names of parameters, but for matrices that it has transposed.
    """
    graph = onnx.load(Bundle.open(recordings.TWIN).folder / "offline.onnx").graph
    values = {each.name: numpy_helper.to_array(each) for each in graph.initializer}
    transposed = [
        values[node.input[1]].T
        for node in graph.node
        if node.op_type == "MatMul" and node.input[1].startswith("val_") and node.input[1] in values
    ]
    symbols = recordings.twin().manifest.vocabulary.symbols
    model = Recognizer(RecognizerConfig(symbols=symbols).twin())
    state = model.state_dict()
    for name, tensor in state.items():
        if f"model.{name}" in values:
            state[name] = torch.tensor(values[f"model.{name}"])
        elif tensor.ndim == 2 and ".ahead." not in name and ".back." not in name:
            matrix = torch.tensor(transposed.pop(0))
            assert matrix.shape == tensor.shape, name
            state[name] = matrix
    for path, layer in model.named_modules():
        if isinstance(layer, Bidirectional):
            inputs, states, bias = (
                values[f"model.{path}.{kind}"] for kind in ("weight", "recurrence", "bias")
            )
            for at, direction in enumerate(("ahead", "back")):
                kept = 1.0 if direction == "ahead" or backwards else 0.0
                of_x, of_h = np.split(bias[at], 2)
                for key, stacked in (
                    ("weight_ih", inputs[at]),
                    ("weight_hh", states[at]),
                    ("bias_ih", of_x),
                    ("bias_hh", of_h),
                ):
                    parts = np.split(stacked, 3)
                    ordered = np.concatenate([parts[gate] for gate in TORCH_GATES])
                    state[f"{path}.{direction}.{key}"] = kept * torch.tensor(ordered)
    assert transposed == []
    model.load_state_dict(state)
    return model.eval()


def log_probs_by_torch(recording: recordings.Recording, *, backwards: bool) -> Any:
    pcm = torch.tensor(recordings.samples(recording))[None, :, None]
    model = recognizer(backwards=backwards)
    with torch.no_grad():
        x, lengths = model.features(pcm, torch.tensor([pcm.shape[1]]))
        x, lengths = model.encoder(x, lengths)
        log_probs, lengths = model.output(x, lengths)
    return log_probs[0, : int(lengths[0])].numpy()


def test_the_graph_is_the_twin_without_its_backward_direction() -> None:
    recording = recordings.recordings()[1]
    found, _ = forward_alone.heard_forwards(recording)
    np.testing.assert_allclose(found, log_probs_by_torch(recording, backwards=False), atol=2e-4)


def test_the_weights_are_read_right() -> None:
    recording = recordings.recordings()[1]
    found = recordings.log_probs_of_twin(recording)
    np.testing.assert_allclose(found, log_probs_by_torch(recording, backwards=True), atol=2e-4)
    forwards, _ = forward_alone.heard_forwards(recording)
    assert np.abs(found - forwards).max() > 1  # they are two models


def test_the_spectrogram_is_what_the_model_hears() -> None:
    recording = recordings.recordings()[0]
    pcm = torch.tensor(recordings.samples(recording))[None, :, None]
    with torch.no_grad():
        features = recognizer(backwards=True).features.eval()
        expected, lengths = features(pcm, torch.tensor([pcm.shape[1]]))
    _, found = forward_alone.heard_forwards(recording)
    assert found.shape == (int(lengths[0]), 40)
    np.testing.assert_allclose(found, expected[0].numpy(), atol=1e-3)
    shades = as_you_will_stream.spectrogram(1)["shades"]
    assert shades.shape == found.shape
    assert shades.min() == 0
    assert shades.max() == 255


def lanes(recording: int, tau: Any) -> dict[str, dict[str, Any]]:
    _, *found = as_you_will_stream.lanes(recording, tau)
    return {each["lane"]: each for each in found}


@pytest.mark.parametrize("recording", [1, 4])
def test_the_forward_direction_alone_writes_noise_and_the_others_words(recording: int) -> None:
    found = lanes(recording, "8")

    def wrong(name: str) -> int:
        return sum(word["wrong"] for word in found[name]["words"])

    assert wrong("twin") == 0
    assert wrong("trained") <= 1
    assert wrong("alone") >= 4
    assert found["alone"]["nats"] > 5 * found["trained"]["nats"]


def test_letters_come_late_without_lookahead_and_not_with_it() -> None:
    assert lanes(1, "0")["trained"]["late_ms"] == 80
    assert lanes(1, "4")["trained"]["late_ms"] == 0
    assert lanes(1, "0")["twin"]["late_ms"] == 0


def test_letters_are_what_was_said_in_order() -> None:
    for lane in lanes(1, "0").values():
        assert "".join(each["text"] for each in lane["letters"]) == "sevenfivefourtwothree"
        frames = [each["frame"] for each in lane["letters"]]
        assert frames == sorted(frames)


def test_the_figures_at_its_end_are_the_benchmarks_own() -> None:
    found = as_you_will_stream.measured()
    assert found["command"] == "python benchmarks/drop_backward.py"
    rates = {each["model"]: each["wer"] for each in found["results"]}
    assert rates["its forward direction alone"] > 90 > 10 > rates["trained to stream, τ = 0"]
    assert {each["strings"] for each in found["results"]} == {500}
    assert found["commit"]
    assert found["processor"]
