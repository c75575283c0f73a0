"""Channels that cancel are not mixed to silence; any cut of a recording is mixed alike."""

import itertools
from pathlib import Path

import numpy as np
import pytest
import soundfile

from nearfuture.audio import open_audio, read
from nearfuture.audio.mixdown import Mixdown
from nearfuture.audio.probe import read_part

RATE = 8000
RNG = np.random.default_rng(0)
VOICE = (0.2 * RNG.standard_normal(2 * RATE)).astype(np.float32)
OTHER = (0.2 * RNG.standard_normal(2 * RATE)).astype(np.float32)
PAUSE = np.zeros(RATE, np.float32)


def stereo(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    both = np.stack([left, right], axis=1).astype(np.float32)
    return np.concatenate([np.zeros((RATE, 2), np.float32), both])


def mixed(samples: np.ndarray, cuts: list[int] | None = None) -> tuple[np.ndarray, Mixdown]:
    mix = Mixdown(samples.shape[1], RATE)
    ends = [0, *(cuts or []), len(samples)]
    parts = [mix.step(samples[a:b]) for a, b in itertools.pairwise(ends)]
    return np.concatenate([*parts, mix.finish()]), mix


@pytest.mark.parametrize(
    ("right", "chosen"),
    [
        (VOICE, None),
        (OTHER, None),
        (0 * VOICE, None),
        (-0.5 * VOICE, None),  # its rest is loud enough
        (-VOICE, 0),
        (-0.9 * VOICE, 0),
        (-1.1 * VOICE, 1),
        (-VOICE + 0.05 * OTHER, 1),  # the louder of the two
        (np.concatenate([-VOICE[:RATE], VOICE[RATE:]]), 0),  # decided once
    ],
)
def test_what_cancels_is_one_channel_and_all_else_the_mean(
    right: np.ndarray, chosen: int | None
) -> None:
    samples = stereo(VOICE, right)
    mono, mix = mixed(samples)
    assert mix.chosen == chosen
    expected = samples.mean(axis=1) if chosen is None else samples[:, chosen]
    np.testing.assert_array_equal(mono, expected)


def test_any_cut_gives_the_same_samples() -> None:
    samples = stereo(VOICE, -VOICE)
    whole, _ = mixed(samples)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        cuts = sorted(rng.integers(0, len(samples), 20).tolist())
        np.testing.assert_array_equal(mixed(samples, cuts)[0], whole)
    np.testing.assert_array_equal(mixed(samples, list(range(0, len(samples), 160)))[0], whole)


def test_dead_channels_and_silence_are_known() -> None:
    _, mix = mixed(stereo(VOICE, 0 * VOICE))
    assert (mix.dead, mix.silent) == ((1,), False)
    mono, mix = mixed(np.zeros((100, 2), np.float32))
    assert (mix.dead, mix.silent, mix.decided, len(mono)) == ((), True, False, 100)
    assert len(mixed(np.zeros((0, 2), np.float32))[0]) == 0


def test_a_part_is_a_part_of_the_whole(tmp_path: Path) -> None:
    # The part alone does not cancel: what counts is the recording.
    right = np.concatenate([-VOICE[:RATE], OTHER[RATE:]])
    path = tmp_path / "a.wav"
    soundfile.write(path, stereo(VOICE, right), RATE, subtype="FLOAT")
    whole = read(path).samples
    part = read_part(path, start_s=2.25, duration_s=0.5).samples
    np.testing.assert_array_equal(part, whole[round(2.25 * RATE) : round(2.75 * RATE)])
    with open_audio(path) as reader:
        blocks = list(reader.blocks(500))
    assert max(map(len, blocks)) <= 500
    np.testing.assert_array_equal(np.concatenate(blocks), whole)
    assert np.abs(whole[RATE : 2 * RATE]).max() > 0.1


def test_a_channel_that_is_asked_for_is_that_channel(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    soundfile.write(path, stereo(VOICE, -VOICE), RATE, subtype="FLOAT")
    np.testing.assert_array_equal(read_part(path, channel=1).samples[RATE:], -VOICE)
