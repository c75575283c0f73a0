"""Recognisers of one sound: what they may hear, and that they learn it."""

import numpy as np
import pytest
import torch

from nearfuture.model import Recognizer
from recipes.evidence.plosives import BEFORE_MS, RATE, VOTS_MS, Voices, synthesise
from recipes.evidence.tagger import TaggerOptions
from recipes.evidence.voicing import (
    BURST_FRAME,
    LOOKAHEADS,
    Identification,
    VoicingOptions,
    config,
    consonants,
    ideal_accuracy,
    ideal_t,
    identify,
    onset_probabilities,
    t_probabilities,
    train,
)
from tests.errors import refuses

TINY = VoicingOptions(tokens=200, steps=60, tests=4, seeds=1)


def test_a_head_hears_ten_ms_more_for_each_frame_and_no_sample_more() -> None:
    torch.manual_seed(0)
    model = Recognizer(config(LOOKAHEADS)).eval()
    rng = np.random.default_rng(0)
    pcm = synthesise(np.array([40]), Voices.draw(1, rng), rng)
    before = t_probabilities(model, pcm)
    for tau in LOOKAHEADS:
        end = RATE * (BEFORE_MS + 10 * (tau + 1)) // 1000
        later, within = pcm.copy(), pcm.copy()
        later[0, end:] = 0.5
        within[0, end - 8 : end] = 0.5
        assert t_probabilities(model, later)[tau] == before[tau]
        assert t_probabilities(model, within)[tau] != before[tau]


def test_the_burst_is_in_its_frame() -> None:
    quiet, burst = 80 * BURST_FRAME, 80 * (BURST_FRAME + 1)
    rng = np.random.default_rng(0)
    (samples,) = synthesise(np.array([60]), Voices.draw(1, rng), rng)
    assert np.abs(samples[quiet:burst]).max() > 5 * np.abs(samples[:quiet]).max()


def test_what_can_be_known_is_settled_when_the_onset_is_heard() -> None:
    exact = onset_probabilities("t") / (onset_probabilities("t") + onset_probabilities("d"))
    for tau in LOOKAHEADS:
        heard = np.array(VOTS_MS) < 10 * (tau + 1)
        assert ideal_t(tau)[heard] == pytest.approx(exact[heard])
        assert len(set(ideal_t(tau)[~heard])) == 1
    assert [ideal_accuracy(tau) for tau in LOOKAHEADS] == sorted(map(ideal_accuracy, LOOKAHEADS))


def test_half_of_the_consonants_are_t_and_sound_like_it() -> None:
    _, labels = consonants(400, np.random.default_rng(0))
    assert 0.4 < labels.mean() < 0.6


def test_a_model_learns_what_its_lookahead_lets_it_hear() -> None:
    data = consonants(TINY.tokens, np.random.default_rng(0))
    losses: list[float] = []
    model = train((0, 4), TINY, seed=0, data=data, report=lambda step, loss: losses.append(loss))
    rng = np.random.default_rng(1)
    voices = Voices.draw(20, rng)
    d, t = (synthesise(np.full(20, onset), voices, rng) for onset in (15, 70))
    p_d, p_t = t_probabilities(model, d), t_probabilities(model, t)
    assert np.mean(losses[-10:]) < 0.6 * losses[0]
    assert p_t[4].mean() - p_d[4].mean() > 0.6  # it has heard that no voice came
    assert abs(p_t[0].mean() - p_d[0].mean()) < 0.2  # the same 10 ms


def test_an_identification_comes_back_from_json() -> None:
    rng = np.random.default_rng(0)
    t = rng.random((2, 3, len(VOTS_MS)))
    found = Identification(lookaheads=(0, 1, 2), t=t, answered_t=t > 0.5, shared=t)
    again = Identification.join([Identification.from_json(found.to_json())] * 2)
    assert again.t.shape == (4, 3, len(VOTS_MS))
    assert again.accuracy()[:2] == pytest.approx(found.accuracy())


@pytest.mark.slow
def test_more_lookahead_tells_more() -> None:
    options = VoicingOptions(tokens=600, steps=150, tests=10, seeds=1)
    (accuracy,) = identify(options, seed=0, lookaheads=(0, 1, 3)).accuracy()
    assert accuracy[0] < accuracy[1] < accuracy[2]
    for tau, value in zip((0, 1, 3), accuracy, strict=True):
        assert value == pytest.approx(ideal_accuracy(tau), abs=0.05)


def test_no_trainings_are_refused_by_name() -> None:
    with refuses("out_of_range", "seeds", "not 0"):
        VoicingOptions(seeds=0)
    with refuses("out_of_range", "steps", "not -1"):
        TaggerOptions(steps=-1)
