"""What a streaming model takes over from its bidirectional teacher."""

import pytest
import torch

from nearfuture.model import Recognizer
from nearfuture.training.teacher import initialise_from_teacher, same_features
from tests.recognizers import PLAIN, recognizer_config

CONFIG = recognizer_config(symbols=tuple("ab"), hidden=12, layers=2, heads=(0, 3), mel_bins=20)


@pytest.mark.parametrize("batch_norm", [False, True])
def test_a_model_begins_as_its_teacher_without_the_backward_direction(batch_norm: bool) -> None:
    config = CONFIG.replace(dropout=0.0, **(PLAIN if batch_norm else {}))
    teacher, model = Recognizer(config.twin()), Recognizer(config)
    teacher.features.fit(torch.randn(50, teacher.features.output_size))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    initialise_from_teacher(model, teacher)
    state = teacher.state_dict()
    theirs = {name.replace(".ahead.", "."): value.clone() for name, value in state.items()}
    for name, value in model.state_dict().items():
        expected = before[name] if name.startswith("lookahead.") else theirs[name]
        assert torch.equal(value, expected), name
    # It is a copy: what one learns the other does not.
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(1.0)
    assert all(torch.equal(theirs[name.replace(".ahead.", ".")], state[name]) for name in state)


def test_what_does_not_fit_is_left_alone() -> None:
    teacher = Recognizer(CONFIG.replace(hidden=16).twin())
    model = Recognizer(CONFIG)
    weight = "encoder.layers.2.inner.layers.1.weight_hh"
    before = model.get_parameter(weight).clone()
    initialise_from_teacher(model, teacher)
    assert torch.equal(model.get_parameter(weight), before)


def test_features_are_alike_where_everything_that_makes_them_is() -> None:
    teacher, model = Recognizer(CONFIG.twin()), Recognizer(CONFIG)
    assert same_features(teacher, model)
    teacher.features.fit(torch.randn(50, teacher.features.output_size))
    assert not same_features(teacher, model)
    initialise_from_teacher(model, teacher)
    assert same_features(teacher, model)
    other = CONFIG.replace(mel_bins=24)
    assert not same_features(Recognizer(other), Recognizer(CONFIG))
    model.features.floor *= 10
    assert not same_features(teacher, model)
