"""What is no batch is refused where a caller calls, with the row; inside nothing is looked at."""

import threading
from typing import Any

import pytest
import torch
from torch import Tensor

from nearfuture.error import NearfutureError, NotStreamable
from nearfuture.layers import (
    GRU,
    LSTM,
    Bidirectional,
    Convolution,
    LayerNorm,
    Lookahead,
    Residual,
    SequenceBatchNorm,
    Serial,
    Stack,
    StreamingLayer,
    validation,
)
from nearfuture.layers.state import batch_size
from nearfuture.model import LogMel, Recognizer
from tests.recognizers import recognizer_config

X = torch.arange(24.0).reshape(2, 3, 4)
LAYERS: dict[str, StreamingLayer] = {
    "GRU": GRU(4, 4),
    "LSTM": LSTM(4, 4),
    "Bidirectional": Bidirectional(GRU(4, 4)),
    "Lookahead": Lookahead(4, frames=2),
    "Convolution": Convolution(4, 4, left=2),
    "Stack": Stack(4, 2),
    "LayerNorm": LayerNorm(4),
    "SequenceBatchNorm": SequenceBatchNorm(4).eval(),
    "Residual": Residual(GRU(4, 4)),
    "Serial": Serial(LayerNorm(4), GRU(4, 4), Lookahead(4, frames=1)),
}
WRONG: dict[str, tuple[Any, Any, str]] = {
    "above T": (X, torch.tensor([3, 5]), "row 1 has a length of 5, but the batch has 3 frames"),
    "negative": (X, torch.tensor([-1, 3]), "row 0 has a length of -1, .*from 0 to 3"),
    "floating": (X, torch.tensor([3.0, 2.0]), "lengths is a tensor of float32 .*in int64"),
    "boolean": (X, torch.tensor([True, True]), "lengths is a tensor of bool "),
    "32 bits": (X, torch.tensor([3, 3], dtype=torch.int32), "lengths is a tensor of int32 "),
    "a list": (X, [3, 3], "lengths is a list"),
    "one for two": (X, torch.tensor([3]), r"lengths has shape \(1,\), and the batch \(2, 3, 4\)"),
    "a column": (X, torch.tensor([[3], [3]]), r"lengths has shape \(2, 1\)"),
    "a number": (X, torch.tensor(3), r"lengths has shape \(\)"),
    "elsewhere": (X, torch.zeros(2, dtype=torch.int64, device="meta"), "lengths is on meta"),
    "one recording": (
        X[0],
        torch.tensor([3]),
        r"a tensor of float32 and shape \(3, 4\) is no batch",
    ),
    "an image": (X[None], torch.tensor([3]), r"shape \(1, 2, 3, 4\) is no batch"),
    "whole numbers": (X.long(), torch.tensor([3, 3]), "a tensor of int64 .*is no batch of frames"),
    "an array": (X.numpy(), torch.tensor([3, 3]), "a ndarray is no batch of frames"),
    "other features": (X[..., :3], torch.tensor([3, 3]), "x has 3 features, and .* reads 4"),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("name", LAYERS)
def test_every_layer_refuses_what_is_no_batch(name: str, wrong: str) -> None:
    x, lengths, message = WRONG[wrong]
    layer = LAYERS[name]
    with pytest.raises(NearfutureError, match=message):
        layer(x, lengths)
    if name != "Bidirectional":
        with pytest.raises(NearfutureError, match=message):
            layer.step(x, lengths, layer.start(2))


def test_a_row_never_reads_its_neighbours_frames() -> None:
    # Row 0 has three frames: a length of five would read the first two of row 1.
    with pytest.raises(NearfutureError, match="row 0 has a length of 5"):
        Bidirectional(GRU(4, 4))(X, torch.tensor([5, 3]))


def test_a_layer_that_cannot_stream_says_so_first_of_a_right_batch() -> None:
    with pytest.raises(NotStreamable):
        LAYERS["Bidirectional"].step(X, torch.tensor([3, 3]), ())


@pytest.mark.parametrize("name", [name for name in LAYERS if name != "Bidirectional"])
def test_a_state_of_other_rows_is_refused(name: str) -> None:
    layer = LAYERS[name]
    with pytest.raises(NearfutureError, match="the state is of 3 rows, and the chunk of 2"):
        layer.step(X, torch.tensor([3, 3]), layer.start(3))


@pytest.mark.parametrize("rows", [0, 2])
@pytest.mark.parametrize("frames", [0, 3])
def test_batches_of_nothing_are_batches(rows: int, frames: int) -> None:
    layer = LAYERS["Serial"]
    x = torch.zeros(rows, frames, 4)
    lengths = torch.zeros(rows, dtype=torch.int64)
    y, n = layer(x, lengths)
    assert (y.shape[0], n.tolist()) == (rows, [0] * rows)
    _, n, state = layer.step(x, lengths, layer.start(rows))
    assert (batch_size(state), n.tolist()) == (rows, [0] * rows)


def test_a_layer_of_ones_own_may_have_options() -> None:
    class Scaled(Lookahead):
        def forward(
            self, x: Tensor, lengths: Tensor, *, scale: float = 1.0
        ) -> tuple[Tensor, Tensor]:
            return super().forward(x * scale, lengths)

    layer, lengths = Scaled(4, frames=1), torch.tensor([3, 2])
    torch.testing.assert_close(layer(X, lengths, scale=2.0)[0], layer(2 * X, lengths)[0])
    with pytest.raises(NearfutureError, match="row 1 has a length of 5"):
        layer(X, torch.tensor([3, 5]), scale=2.0)


def test_every_head_of_a_lookahead_refuses_what_is_no_batch() -> None:
    layer = Lookahead(4, frames=(0, 2))
    with pytest.raises(NearfutureError, match="row 1 has a length of 5"):
        layer.all(X, torch.tensor([3, 5]))
    with pytest.raises(NearfutureError, match="row 1 has a length of 5"):
        layer.step_all(X, torch.tensor([3, 5]), layer.start(2))


def test_a_recogniser_refuses_what_is_no_batch() -> None:
    model = Recognizer(recognizer_config(hidden=4, layers=1)).eval()
    features = torch.zeros(2, 8, model.features.output_size)
    with pytest.raises(NearfutureError, match="row 1 has a length of 9, but the batch has 8"):
        model(features, torch.tensor([8, 9]))
    with pytest.raises(NearfutureError, match="Serial reads 1"):
        model.at(8)(features, torch.tensor([8, 8]))
    with pytest.raises(NearfutureError, match="row 0 has a length of 801, but the batch has 800"):
        LogMel(8000)(torch.zeros(1, 800, 1), torch.tensor([801]))


class Own(StreamingLayer):
    """A layer as a user writes it."""

    def __init__(self) -> None:
        super().__init__()
        self.input_size = self.output_size = 4

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        return x, lengths

    def start(self, batch_size: int, **_: Any) -> Tensor:
        return torch.zeros(batch_size, 0)

    def step(self, x: Tensor, lengths: Tensor, state: Any) -> Any:
        return x, lengths, state

    def finish(self, state: Any) -> Any:
        return state, state


def test_a_users_layer_is_guarded_without_a_word_in_it() -> None:
    with pytest.raises(NearfutureError, match="row 1 has a length of 4"):
        Own()(X, torch.tensor([3, 4]))
    with pytest.raises(NearfutureError, match="row 1 has a length of 4"):
        Own().step(X, torch.tensor([3, 4]), Own().start(2))


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[Tensor]:
    """Every look at a batch."""
    seen: list[Tensor] = []
    fits = validation._fits

    def counting(x: Tensor, lengths: Tensor, features: int) -> bool:
        seen.append(lengths)
        return fits(x, lengths, features)

    monkeypatch.setattr(validation, "_fits", counting)
    return seen


def test_a_batch_is_looked_at_once_however_many_layers_there_are(looks: list[Tensor]) -> None:
    layer, lengths = LAYERS["Serial"], torch.tensor([3, 2])
    layer(X, lengths)
    assert len(looks) == 1
    layer.step(X, lengths, layer.start(2))
    assert len(looks) == 2


def test_after_an_error_batches_are_looked_at_again(looks: list[Tensor]) -> None:
    with pytest.raises(NotStreamable):
        LAYERS["Bidirectional"].step(X, torch.tensor([3, 3]), ())
    LAYERS["GRU"](X, torch.tensor([3, 3]))
    assert len(looks) == 2


def test_a_thread_is_looked_at_while_another_is_inside_a_layer() -> None:
    messages = []

    class Outer(Own):
        def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
            def other() -> None:
                try:
                    Own()(x, lengths + 1)
                except NearfutureError as error:
                    messages.append(str(error))

            thread = threading.Thread(target=other)
            thread.start()
            thread.join()
            return x, lengths

    Outer()(X, torch.tensor([3, 3]))
    assert messages == [
        "row 0 has a length of 4, but the batch has 3 frames: lengths go from 0 to 3"
    ]


def test_a_graph_that_is_exported_holds_no_look(looks: list[Tensor]) -> None:
    class Step(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = GRU(4, 4)

        def forward(self, x: Tensor, lengths: Tensor, state: Tensor) -> Any:
            return self.layer.step(x, lengths, state)

    example = (X[:, :1], torch.tensor([1, 1]), torch.zeros(2, 4))
    program = torch.export.export(Step(), example)
    assert looks == []
    calls = {str(node.target) for node in program.graph.nodes if node.op == "call_function"}
    assert not any("aten.item" in call or "_assert" in call for call in calls)
