"""The recurrences over pre-projected input: their hand-written gradients, and what they are for."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from safetensors.torch import load, save
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from nearfuture.error import NearfutureError
from nearfuture.layers import (
    GRU,
    LSTM,
    RNN,
    Bidirectional,
    Recurrent,
    SequenceBatchNorm,
    Serial,
    final_state,
    to_torch,
)
from nearfuture.layers.state import flatten, unflatten

CELLS: dict[str, dict[str, Any]] = {
    "tanh": {"cls": RNN},
    "relu": {"cls": RNN, "nonlinearity": "relu"},
    "clipped": {"cls": RNN, "nonlinearity": "clipped_relu"},
    "gru": {"cls": GRU},
    "lstm": {"cls": LSTM},
}
cells = pytest.mark.parametrize("kind", CELLS)
N = torch.tensor([7, 3, 5, 0])


def made(kind: str, **options: Any) -> Recurrent:
    """A float64 layer of 3 features and 4 units whose batch norm, if any, is not trivial."""
    torch.manual_seed(0)
    chosen = {**CELLS[kind], **options}
    layer: Recurrent = chosen.pop("cls")(3, 4, **chosen).double()
    if layer.norm is not None:
        nn.init.uniform_(layer.norm.weight, 0.5, 1.5)
        nn.init.normal_(layer.norm.bias)
        for _ in range(5):
            layer(2 * torch.randn(4, 9, 3).double() + 1, torch.tensor([9, 9, 9, 9]))
    return layer


def batch() -> Tensor:
    torch.manual_seed(1)
    return torch.randn(4, 7, 3, dtype=torch.float64)


def stepped(layer: Recurrent, projected: Tensor, state: Any) -> Tensor:
    """The reference: cell after cell, differentiated by torch."""
    outputs = []
    for t in range(projected.shape[1]):
        h, state = layer.cell(projected[:, t], state)
        outputs.append(h)
    return torch.stack(outputs, dim=1)


@cells
@pytest.mark.parametrize("bias", [True, False])
def test_a_run_is_cell_after_cell_in_values_and_gradients(kind: str, bias: bool) -> None:
    layer = made(kind, bias=bias)
    with torch.no_grad():
        layer.weight_hh *= 3  # far into saturation, clipping included
    width = layer.weight_ih.shape[0]
    projected = (8 * torch.randn(4, 7, width, dtype=torch.float64)).requires_grad_()
    start = layer.start(4)
    leaves = [torch.randn_like(leaf).requires_grad_() for leaf in flatten(start)]
    weights = [p for name, p in layer.named_parameters() if "hh" in name]
    y = layer.run(projected, unflatten(start, leaves))
    expected = stepped(layer, projected, unflatten(start, leaves))
    torch.testing.assert_close(y, expected, rtol=1e-12, atol=1e-12)
    if kind == "clipped":
        assert bool((y == 20).any())
    direction = torch.randn_like(y)
    sources = [projected, *leaves, *weights]
    found = torch.autograd.grad((y * direction).sum(), sources)
    wanted = torch.autograd.grad((expected * direction).sum(), sources)
    for a, b in zip(found, wanted, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)


@cells
@pytest.mark.parametrize("bias", [True, False])
def test_gradients_of_a_run_are_the_true_ones(kind: str, bias: bool) -> None:
    layer = made(kind, bias=bias)
    projected = torch.randn(2, 5, layer.weight_ih.shape[0], dtype=torch.float64)
    leaves = [torch.randn_like(leaf) for leaf in flatten(layer.start(2))]
    hidden = [p for name, p in layer.named_parameters() if "hh" in name]

    def run(projected: Tensor, *rest: Tensor) -> Tensor:
        state = unflatten(layer.start(2), list(rest[: len(leaves)]))
        return layer.run(projected, state)

    sources = [value.requires_grad_() for value in (projected, *leaves)]
    # A random combination of all; each by itself equals torch's own, above.
    assert torch.autograd.gradcheck(run, (*sources, *hidden), fast_mode=True)


@cells
def test_batch_norm_is_in_deep_speech_2s_place(kind: str) -> None:
    layer, x = made(kind, batch_norm=True), batch()
    norm = nn.BatchNorm1d(layer.weight_ih.shape[0]).double()
    norm.load_state_dict(
        {**layer.norm.state_dict(), "num_batches_tracked": torch.tensor(0)}  # type: ignore[union-attr]
    )
    for training in (True, False):
        layer.train(training), norm.train(training)
        frames = torch.cat([row[:n] for row, n in zip(x, N.tolist(), strict=True)])
        projected = torch.zeros(4, 7, layer.weight_ih.shape[0], dtype=torch.float64)
        rows = norm(frames @ layer.weight_ih.t()).split(N.tolist())
        for b, row in enumerate(rows):
            projected[b, : len(row)] = row
        expected = stepped(layer, projected, layer.start(4))
        y, _ = layer(x, N)
        for b, n in enumerate(N.tolist()):
            torch.testing.assert_close(y[b, :n], expected[b, :n], rtol=1e-10, atol=1e-10)
    assert {name for name, _ in layer.named_parameters()} == {
        "weight_ih",
        "weight_hh",
        "norm.weight",
        "norm.bias",  # the one bias
    }


@cells
@pytest.mark.parametrize("training", [True, False])
def test_gradients_through_the_batch_norm_are_the_true_ones(kind: str, training: bool) -> None:
    layer = made(kind, batch_norm=True).train(training)
    x = batch().requires_grad_()
    sources = (x, layer.weight_ih, layer.weight_hh, layer.norm.weight, layer.norm.bias)  # type: ignore[union-attr]
    # A random combination of all gradients: the whole Jacobian costs 50 times as much.
    assert torch.autograd.gradcheck(lambda x, *_: layer(x, N)[0], sources, fast_mode=True)


@cells
def test_a_batch_norm_folds_away(kind: str) -> None:
    layer, x = made(kind, batch_norm=True).eval(), batch()
    plain = layer.folded()
    assert plain.norm is None
    torch.testing.assert_close(plain(x, N)[0], layer(x, N)[0], rtol=1e-12, atol=1e-12)
    state, other = plain.start(4), layer.start(4)
    for t in range(7):
        chunk = x[:, t : t + 1], (t < N).long()
        y, _, state = plain.step(*chunk, state)
        expected, _, other = layer.step(*chunk, other)
        torch.testing.assert_close(y, expected, rtol=1e-12, atol=1e-12)
    assert made(kind).folded().norm is None
    if kind != "clipped":
        theirs = to_torch(plain)
        torch.testing.assert_close(theirs(x[:1])[0], layer(x[:1], N[:1])[0], rtol=1e-10, atol=1e-10)


@contextmanager
def counted(weight: Tensor) -> Iterator[list[str]]:
    """Matrix products with this very weight, in whatever layout."""
    place, products = weight.data_ptr(), []

    class Count(TorchDispatchMode):
        def __torch_dispatch__(self, f: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            tensors = [a for a in args if isinstance(a, Tensor)]
            if any(name in str(f) for name in ("mm", "linear", "matmul")):
                products.extend(str(f) for a in tensors if a.data_ptr() == place)
            return f(*args, **(kwargs or {}))

    with Count():
        yield products


def separate(shared: Bidirectional) -> Bidirectional:
    """Two directions of the same values, each with input weights of its own."""
    apart = Bidirectional(shared.ahead, merge=shared.merge)
    apart.back = copy.deepcopy(shared.back)
    return apart


@cells
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("batch_norm", [True, False])
def test_shared_input_is_projected_and_normalised_once(
    kind: str, training: bool, batch_norm: bool
) -> None:
    cell = made(kind, batch_norm=batch_norm)
    shared = Bidirectional(cell, share_input=True).double().train(training)
    norms: list[SequenceBatchNorm] = []
    for module in shared.modules():
        if isinstance(module, SequenceBatchNorm):
            module.register_forward_hook(lambda module, *_: norms.append(module))
    with torch.no_grad(), counted(cell.weight_ih) as products:
        y, _ = shared(batch(), N)
    assert len(products) == 1
    assert len(norms) == int(batch_norm)
    with torch.no_grad(), counted(cell.weight_ih) as products:
        final_state(shared, batch(), N)
    assert len(products) == 1
    # The same as two directions that each do it for themselves.
    if not training:
        apart = separate(shared).eval()
        torch.testing.assert_close(apart(batch(), N)[0], y, rtol=1e-10, atol=1e-10)


def test_a_shared_norm_learns_once_a_batch_and_stays_shared() -> None:
    layer = Bidirectional(GRU(3, 4, batch_norm=True), merge="sum", share_input=True).double()
    assert layer.ahead.norm is layer.back.norm
    alone = copy.deepcopy(layer.ahead)
    layer(batch(), N)
    alone(batch(), N)
    assert torch.equal(layer.back.norm.running_mean, alone.norm.running_mean)
    again = copy.deepcopy(layer)
    assert again.ahead.norm is again.back.norm
    assert again.ahead.norm is not layer.ahead.norm
    apart = Bidirectional(GRU(3, 4, batch_norm=True))
    assert apart.ahead.norm is not apart.back.norm


@cells
def test_shared_input_has_the_gradients_of_two_directions(kind: str) -> None:
    shared = Bidirectional(made(kind), merge="sum", share_input=True).double()
    apart = separate(shared)
    x = batch().requires_grad_()
    weights = torch.randn(4, 7, 4, dtype=torch.float64)
    found = torch.autograd.grad(
        (shared(x, N)[0] * weights).sum(),
        [x, shared.ahead.weight_ih, shared.ahead.weight_hh, shared.back.weight_hh],
    )
    inputs = [apart.ahead.weight_ih, apart.back.weight_ih]
    others = [x, apart.ahead.weight_hh, apart.back.weight_hh]
    loss = (apart(x, N)[0] * weights).sum()
    one, two, of_x, *of_hidden = torch.autograd.grad(loss, [*inputs, *others])
    wanted = [of_x, one + two, *of_hidden]
    for a, b in zip(found, wanted, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("batch_norm", [True, False])
def test_what_is_shared_is_saved_once(batch_norm: bool) -> None:
    layer = Serial(Bidirectional(GRU(3, 4, batch_norm=batch_norm), share_input=True))
    layer(batch().float(), N)
    saved = load(save(layer.state_dict()))  # which refuses tensors that share memory
    assert not any(name.startswith("layers.0.back.weight_ih") for name in saved)
    other = Serial(Bidirectional(GRU(3, 4, batch_norm=batch_norm), share_input=True))
    other.load_state_dict(saved)
    layer.eval(), other.eval()
    assert torch.equal(other(batch().float(), N)[0], layer(batch().float(), N)[0])
    with pytest.raises(RuntimeError, match=r"ahead\.weight_ih"):
        other.load_state_dict({k: v for k, v in saved.items() if "weight_ih" not in k})


@cells
@pytest.mark.parametrize("batch_norm", [True, False])
def test_what_is_shared_stays_shared_when_parameters_are_assigned(
    kind: str, batch_norm: bool
) -> None:
    layer = Serial(Bidirectional(made(kind, batch_norm=batch_norm), share_input=True))
    other = Serial(Bidirectional(made(kind, batch_norm=batch_norm), share_input=True))
    before = len(list(other.parameters()))
    other = copy.deepcopy(other)
    other.load_state_dict(layer.state_dict(), assign=True)
    assert len(list(other.parameters())) == before
    both = other.layers[0]
    assert both.ahead.weight_ih is both.back.weight_ih
    assert both.ahead.bias_ih is both.back.bias_ih
    assert both.ahead.norm is both.back.norm
    assert other.state_dict().keys() == layer.state_dict().keys()


def test_streaming_in_train_mode_is_refused_with_a_batch_norm() -> None:
    layer = GRU(3, 4, batch_norm=True)
    x, n = torch.zeros(1, 6, 3), torch.tensor([6])
    for frames in (1, 6):
        with pytest.raises(NearfutureError, match=r"call eval\(\)"):
            layer.step(x[:, :frames], n.clamp(max=frames), layer.start(1))


@pytest.mark.parametrize(
    "make",
    [
        lambda: GRU(3, 4, batch_norm=True),
        lambda: Serial(Bidirectional(LSTM(3, 4, batch_norm=True))),
    ],
)
def test_torch_has_no_batch_norm_inside(make: Any) -> None:
    with pytest.raises(NearfutureError, match=r"no batch norm inside .* folded\(\)"):
        to_torch(make())


@cells
def test_a_batch_norm_without_a_bias_is_refused(kind: str) -> None:
    with pytest.raises(NearfutureError, match="bias=False` would have no effect"):
        made(kind, batch_norm=True, bias=False)


def test_a_batch_of_no_frames_and_one_of_a_single_frame() -> None:
    layer = Bidirectional(GRU(3, 4, batch_norm=True), share_input=True)
    for frames, lengths in ((0, [0, 0]), (2, [0, 0]), (1, [1, 0])):
        x = torch.randn(2, frames, 3, requires_grad=True)
        y, n = layer(x, torch.tensor(lengths))
        assert y.shape == (2, frames, 8)
        assert n.tolist() == lengths
        assert bool(y.isfinite().all())
        if frames:
            y.sum().backward()
            assert all(bool(p.grad.isfinite().all()) for p in layer.parameters())
