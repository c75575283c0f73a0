"""Law 8: the declared receptive field is the measured one; and FACTS A10, the three pictures."""

import pytest
import torch

from nearfuture import laws
from nearfuture.budget import ReceptiveField
from nearfuture.layers import GRU, Bidirectional, LayerNorm, Lookahead, Serial
from tests.laws.cases import DRAWN, drawn
from tests.laws.registry import ALL


@pytest.mark.parametrize("name", ALL)
def test_declared_is_measured(name: str) -> None:
    laws.declared_is_measured(ALL[name], examples=DRAWN if drawn(name) else 1)


@pytest.mark.parametrize("name", ["gru", "recogniser", "bidirectional gru", "lookahead 3"])
def test_a_layer_is_measured_as_given_and_left_alone(name: str) -> None:
    layer = ALL[name]()
    before = {key: value.clone() for key, value in layer.state_dict().items()}
    laws.declared_is_measured(layer)
    laws.check(layer, laws=laws.ALL[:1], dtype=torch.float32)
    for key, value in layer.state_dict().items():
        assert torch.equal(value, before[key])
        assert value.dtype == torch.float32


def test_one_direction_is_a_lower_triangle() -> None:
    matrix = laws.dependency_matrix(lambda: GRU(2, 3), 12)
    assert torch.equal(matrix, torch.ones(12, 12, dtype=torch.bool).tril())


def test_two_directions_fill_the_matrix() -> None:
    matrix = laws.dependency_matrix(lambda: Bidirectional(GRU(2, 3)), 12)
    assert bool(matrix.all())


def test_row_convolution_adds_a_band() -> None:
    matrix = laws.dependency_matrix(lambda: Serial(GRU(2, 3), Lookahead(3, 4)), 12)
    assert torch.equal(matrix, torch.ones(12, 12, dtype=torch.bool).tril(4))


def test_lookahead_adds_up_over_layers() -> None:
    layer = Serial(GRU(2, 3), Lookahead(3, 2), GRU(3, 3), Lookahead(3, 2), GRU(3, 3))
    matrix = laws.dependency_matrix(layer, 12)
    assert torch.equal(matrix, torch.ones(12, 12, dtype=torch.bool).tril(4))


def test_finite_probes_find_a_causal_triangle_without_nan() -> None:
    finite = [probe for probe in laws.PROBES if probe == probe]
    matrix = laws.dependency_matrix(lambda: GRU(2, 3), 12, probes=finite)
    assert torch.equal(matrix, torch.ones(12, 12, dtype=torch.bool).tril())


def test_more_frames_than_probes_run_together() -> None:
    matrix = laws.dependency_matrix(Lookahead(1, 2), 150, initialisations=1)
    assert torch.equal(matrix, torch.ones(150, 150, dtype=torch.bool).tril(2).triu())


def test_a_weight_of_0_that_lets_nan_pass_is_told_from_a_look_ahead() -> None:
    layer = Lookahead(2, 1)
    layer.field = ReceptiveField()
    with pytest.raises(laws.LawBroken) as ahead:
        laws.declared_is_measured(layer, examples=1)
    assert "NaN" not in str(ahead.value)
    torch.nn.init.ones_(layer.weights[0])
    with torch.no_grad():
        layer.weights[0][:, 1] = 0.0
    with pytest.raises(laws.LawBroken, match=r"only NaN shows it.*by torch\.where"):
        laws.declared_is_measured(layer, examples=1)


def test_nan_shows_a_path_whose_output_is_constant() -> None:
    # One feature is its own mean; only NaN passes.
    matrix = laws.dependency_matrix(lambda: LayerNorm(1), 6)
    assert torch.equal(matrix, torch.eye(6, dtype=torch.bool))
