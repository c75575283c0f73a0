"""Augmentation: each part measured alone, as often as it says, and all of it from the generator."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import soundfile

from nearfuture.data import AcousticEnvironment, Augmentation, corpus_folder
from nearfuture.data.augmentation import augmentation, environment
from tests.data.fixtures import tone, write_manifest
from tests.errors import refuses

NONE = Augmentation.none()
Environment = AcousticEnvironment


def only(**options: object) -> Augmentation:
    return dataclasses.replace(NONE, **options)  # type: ignore[arg-type]


def decibels(samples: np.ndarray) -> float:
    return 10 * float(np.log10(np.mean(np.square(samples, dtype=np.float64))))


def spread(values: list[float], low: float, high: float) -> None:
    """Asserts that values are uniform between two limits: their quartiles, and nothing beyond."""
    at = np.quantile((np.array(values) - low) / (high - low), [0, 0.25, 0.5, 0.75, 1])
    np.testing.assert_allclose(at, [0, 0.25, 0.5, 0.75, 1], atol=0.08)
    assert at[0] >= -1e-3
    assert at[-1] <= 1.001


def test_none_changes_nothing() -> None:
    x = tone(300, 0.5)
    rng = np.random.default_rng(0)
    assert NONE.apply(x, 8000, rng, environment=Environment(noises=[x], rooms=[x])) is x


def test_everything_follows_from_the_generator() -> None:
    x = tone(300, 0.5)
    environment = AcousticEnvironment(
        noises=[tone(900, 0.2), tone(700, 0.4)], rooms=[np.ones(3, np.float32)]
    )
    for seed in range(30):
        one, two = (
            Augmentation().apply(x, 8000, np.random.default_rng(seed), environment=environment)
            for _ in range(2)
        )
        np.testing.assert_array_equal(one, two)
        rng = np.random.default_rng(seed + 100)
        other = Augmentation().apply(x, 8000, rng, environment=environment)
        assert not np.array_equal(one, other)


@pytest.mark.parametrize("samples", [0, 1, 2, 79, 4000])
@pytest.mark.parametrize("level", [0.0, 1e-6, 0.3, 1.0])
def test_anything_comes_out_finite_and_within_full_scale(samples: int, level: float) -> None:
    x = np.full(samples, level, np.float32)
    x[::2] *= -1
    before = x.copy()
    for seed in range(20):
        got = Augmentation().apply(x, 8000, np.random.default_rng(seed))
        assert got.dtype == np.float32
        assert np.isfinite(got).all()
        assert abs(got).max(initial=0.0) <= 1
        assert got.size <= (samples + 2 * 0.3 * 8000) / 0.9 + 2
        assert (got.size == 0) <= (samples <= 1)
    np.testing.assert_array_equal(x, before)


def test_levels_are_uniform() -> None:
    x, rng = tone(300, 0.1), np.random.default_rng(0)
    levels = [decibels(only(level_dbfs=(-55, -10)).apply(x, 8000, rng)) for _ in range(400)]
    spread(levels, -55, -10)


def test_speeds_are_uniform() -> None:
    x, rng = tone(300, 1.0), np.random.default_rng(0)
    speeds = [8000 / only(speed=0.1).apply(x, 8000, rng).size for _ in range(400)]
    spread(speeds, 0.9, 1.1)


def test_recorded_noise_has_its_share_and_its_ratio() -> None:
    x, rng = tone(300, 0.1, level=0.05), np.random.default_rng(0)
    noise = [np.sign(tone(1000, 0.3)).astype(np.int16)]
    ratios = []
    for _ in range(1000):
        got = only(noise=0.4, noise_snr_db=(5, 30)).apply(
            x, 8000, rng, environment=Environment(noises=noise)
        )
        if got is not x:
            ratios.append(decibels(x) - decibels(got - x))
    assert 0.35 < len(ratios) / 1000 < 0.45
    spread(ratios, 5, 30)


def test_every_noise_and_every_room_is_heard() -> None:
    x, rng = tone(300, 0.1, level=0.05), np.random.default_rng(0)
    tones = [tone(hertz, 0.3) for hertz in (1000, 1500, 2000)]
    heard = set()
    for _ in range(40):
        got = only(noise=1.0).apply(x, 8000, rng, environment=Environment(noises=tones)) - x
        heard.add(round(np.argmax(abs(np.fft.rfft(got))) * 8000 / got.size))
    assert heard == {1000, 1500, 2000}
    rooms = [np.eye(1, 3, 0, np.float32)[0] + np.float32(n) * np.eye(1, 3, 1, np.float32)[0]
             for n in (0.2, 0.4, 0.6)]  # fmt: skip
    got = {
        only(reverberation=1.0).apply(x, 8000, rng, environment=Environment(rooms=rooms)).tobytes()
        for _ in range(40)
    }
    assert len(got) == 3


def test_the_others_have_a_faint_noise_of_many_colours() -> None:
    x, rng = tone(300, 0.25, level=0.1), np.random.default_rng(0)
    ratios, colours = [], []
    for _ in range(300):
        noise = only(synthetic_noise=1.0).apply(x, 8000, rng) - x
        ratios.append(decibels(x) - decibels(noise))
        power = abs(np.fft.rfft(noise)) ** 2
        colours.append(np.log10(power[10:100].mean() / power[500:].mean()))
    spread(ratios, 15, 45)
    assert min(colours) < 0.3
    assert max(colours) > 1.2


def test_recorded_noise_and_faint_noise_never_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = {"mix": 0, "add_noise": 0}

    def counted(name: str) -> None:
        original = getattr(augmentation, name)

        def called(*arguments: object) -> np.ndarray:
            counts[name] += 1
            return original(*arguments)

        monkeypatch.setattr(augmentation, name, called)

    counted("mix")
    counted("add_noise")
    x, rng = tone(300, 0.05), np.random.default_rng(0)
    for _ in range(500):
        Augmentation(synthetic_noise=1.0).apply(x, 8000, rng, environment=Environment(noises=[x]))
    assert sum(counts.values()) == 500
    assert 0.33 < counts["mix"] / 500 < 0.47
    counts["mix"] = counts["add_noise"] = 0
    for _ in range(50):  # without recordings of noise, all of it is synthetic
        Augmentation(synthetic_noise=1.0).apply(x, 8000, rng)
    assert counts == {"mix": 0, "add_noise": 50}


@pytest.mark.parametrize("rooms", [[], [np.array([1.0, 0.5], np.float32)]])
def test_rooms_have_their_share(rooms: list[np.ndarray]) -> None:
    x, rng = tone(300, 0.05), np.random.default_rng(0)
    dry = sum(
        np.array_equal(
            x,
            only(reverberation=0.2).apply(x, 8000, rng, environment=Environment(rooms=rooms)),
        )
        for _ in range(1000)
    )
    assert 0.15 < 1 - dry / 1000 < 0.25


def test_simulated_rooms_have_the_times_that_are_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []
    original = augmentation.simulated_room

    def noted(rate: int, rt60_s: float, drr_db: float, rng: np.random.Generator) -> np.ndarray:
        asked.append((rt60_s, drr_db))
        return original(rate, rt60_s, drr_db, rng)

    monkeypatch.setattr(augmentation, "simulated_room", noted)
    rng = np.random.default_rng(0)
    for _ in range(300):
        only(reverberation=1.0).apply(tone(300, 0.02), 8000, rng)
    spread([rt60_s for rt60_s, _ in asked], 0.15, 0.6)
    spread([drr_db for _, drr_db in asked], 0.0, 12.0)


def test_a_room_moves_no_word() -> None:
    x = np.concatenate([np.zeros(2000), tone(300, 0.2), np.zeros(2000)]).astype(np.float32)
    rng = np.random.default_rng(0)
    for _ in range(20):
        got = only(reverberation=1.0).apply(x, 8000, rng)
        assert got.size == x.size
        assert abs(got[:2000]).max() < 1e-5
        assert abs(got[2000:2100]).max() > 0.05


def test_a_room_that_rings_is_turned_down_and_not_cut_off() -> None:
    x, rng = tone(400, 1.0, level=0.9), np.random.default_rng(0)
    ringing = np.tile(np.eye(1, 20, dtype=np.float32)[0], 30)  # an echo with each period
    got = only(reverberation=1.0).apply(x, 8000, rng, environment=Environment(rooms=[ringing]))
    assert abs(got).max() == pytest.approx(1.0, abs=1e-4)
    spectrum = abs(np.fft.rfft(got[4000:])) ** 2
    assert spectrum.max() / spectrum.sum() > 0.999  # one tone: nothing was clipped


def ends(x: np.ndarray) -> tuple[int, int]:
    loud = np.nonzero(abs(x) > 1e-3)[0]
    return int(loud[0]), int(x.size - 1 - loud[-1])


def test_ends_are_cut_tight_as_often_as_said_each_for_itself() -> None:
    x = np.concatenate([np.zeros(800), tone(300, 0.2), np.zeros(800)]).astype(np.float32)
    rng = np.random.default_rng(0)
    tight = np.array(
        [[gap < 90 for gap in ends(only(trim=0.25).apply(x, 8000, rng))] for _ in range(1000)]
    )
    np.testing.assert_allclose(tight.mean(axis=0), 0.25, atol=0.05)
    assert abs(tight.all(axis=1).mean() - 0.0625) < 0.03


def test_silence_is_added_at_either_end() -> None:
    x, rng = tone(300, 0.2), np.random.default_rng(0)
    gaps = np.array([ends(only(silence=0.5).apply(x, 8000, rng)) for _ in range(1000)]) / 8000
    for each in gaps.T:
        added = each[each > 0.001]
        assert 0.45 < added.size / 1000 < 0.55
        spread(added.tolist(), 0.0, 0.3)
    # An end that was cut stays cut.
    both = only(trim=1.0, silence=1.0, silence_s=(0.2, 0.3))
    assert max(ends(both.apply(x, 8000, rng))) < 90


@pytest.mark.parametrize(
    ("options", "limit"),
    [
        ({"noise": 1.2}, "from 0 to 1"),
        ({"trim": -0.1}, "from 0 to 1"),
        ({"synthetic_noise": float("nan")}, "from 0 to 1"),
        ({"speed": 1.0}, "less than 1"),
        ({"level_dbfs": (-10.0, -55.0)}, "the smaller first"),
        ({"silence_s": (-1.0, 0.0)}, "from 0 on"),
        ({"rt60_s": (0.0, 0.5)}, "from 0.01 on"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, object], limit: str) -> None:
    ((name, value),) = options.items()
    with refuses("out_of_range", name, value, limit):
        only(**options)


def test_a_level_may_be_left_alone_and_a_range_may_be_one_value() -> None:
    x = tone(300, 0.1)
    got = only(level_dbfs=(-20.0, -20.0)).apply(x, 8000, np.random.default_rng(0))
    assert decibels(got) == pytest.approx(-20, abs=1e-3)


# The corpora


def test_noises_and_rooms_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEARFUTURE_CORPORA", str(tmp_path))
    nothing = Environment.load(8000)
    assert nothing.noises == nothing.rooms == []
    for corpus in ("noise", "rir"):
        write_manifest(
            tmp_path / corpus,
            [{"path": "a.wav", "seconds": "0.5"}, {"path": "silent.wav", "seconds": "0.1"}],
        )
        soundfile.write(tmp_path / corpus / "a.wav", tone(440, 0.5, 16000, level=0.01), 16000)
        soundfile.write(tmp_path / corpus / "silent.wav", np.zeros(800), 8000)
    two = np.stack([tone(500, 0.5), tone(900, 0.5)], axis=1)
    soundfile.write(tmp_path / "noise" / "a.wav", two, 8000)
    (noise,) = Environment.load(8000).noises
    assert (noise.dtype, noise.size, abs(noise).max()) == (np.int16, 4000, 32767)
    assert np.argmax(abs(np.fft.rfft(noise))) == 250  # the first channel's
    (room,) = Environment.load(8000).rooms
    assert (room.dtype, room.size) == (np.float32, 4000)
    assert abs(room).max() == pytest.approx(0.01, rel=0.1)


def test_the_real_responses_are_rooms(monkeypatch: pytest.MonkeyPatch) -> None:
    if corpus_folder("rir") is None:
        pytest.skip("needs the corpus 'rir' under NEARFUTURE_CORPORA")
    of = environment._paths
    monkeypatch.setattr(environment, "_paths", lambda name: of(name) if name == "rir" else [])
    rooms = Environment.load(16000).rooms
    assert len(rooms) == 6
    x = np.random.default_rng(1).uniform(-0.5, 0.5, 16000).astype(np.float32)
    for room in rooms:
        got = only(reverberation=1.0).apply(
            x, 16000, np.random.default_rng(0), environment=Environment(rooms=[room])
        )
        assert got.size == x.size
        assert abs(decibels(got) - decibels(x)) < 3
        assert not np.array_equal(got, x)
