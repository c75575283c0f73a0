"""Synthesised plosives differ in the onset of voicing and in nothing else."""

import numpy as np
import pytest

from recipes.evidence.plosives import AFTER_MS, BEFORE_MS, RATE, VOWELS, Voices, synthesise


def spoken(*onsets: int, seed: int = 0) -> np.ndarray:
    """The same voice and the same noise at each onset."""
    voice = Voices.draw(1, np.random.default_rng(seed))
    return np.concatenate(
        [synthesise(np.array([each]), voice, np.random.default_rng(1)) for each in onsets]
    )


def at(ms: float) -> int:
    return int(RATE * (BEFORE_MS + ms) / 1000)


def test_a_token_lasts_as_long_as_it_says() -> None:
    (samples,) = spoken(30)
    assert len(samples) == RATE * (BEFORE_MS + AFTER_MS) // 1000
    assert np.abs(samples).max() <= 1.0


@pytest.mark.parametrize("seed", range(3))
def test_tokens_are_alike_up_to_the_earlier_onset(seed: int) -> None:
    early, late = spoken(30, 70, seed=seed)
    # The level is that of a stretch of vowel, whose pulses lie elsewhere in it.
    assert np.std(early[: at(29)] - late[: at(29)]) < 0.1 * np.std(early[: at(29)])
    assert np.std((early - late)[at(35) : at(65)]) > 0.5 * np.std(early[at(35) : at(65)])


@pytest.mark.parametrize("onset", [20, 50, 90])
def test_there_is_no_voice_before_its_onset(onset: int) -> None:
    def low(samples: np.ndarray) -> float:
        spectrum = np.abs(np.fft.rfft(samples * np.hanning(len(samples)))) ** 2
        return float(spectrum[np.fft.rfftfreq(len(samples), 1 / RATE) < 400].sum() / len(samples))

    (samples,) = spoken(onset)
    assert low(samples[at(onset + 5) : at(onset + 45)]) > 30 * low(samples[at(0) : at(onset)])


def test_a_voice_is_drawn_independently_of_the_onset() -> None:
    voices = Voices.draw(4000, np.random.default_rng(0))
    assert set(voices.vowel) == set(range(len(VOWELS)))
    assert 90 <= voices.pitch_hz.min() < voices.pitch_hz.max() <= 230
    assert [len(each) for each in vars(voices.repeat(2)).values()] == [8000] * len(vars(voices))
