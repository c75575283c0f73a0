"""The training loop: it learns, it resumes exactly, and nothing poisons it."""

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from nearfuture.data import Utterance
from nearfuture.error import NearfutureError
from nearfuture.speech import Recognizer, RecognizerConfig, tiny
from nearfuture.training import Progress, Trainer, TrainingOptions, evaluate, load_model
from nearfuture.training.trainer import Batches, padded
from tests.training.tones import CONFIG, LETTERS, Drawn, Listed, sentences, spoken

OPTIONS = TrainingOptions(steps=12, learning_rate=1e-2, warmup=3, save_every=5)


def trainer(
    folder: Path,
    batches: Batches | None = None,
    options: TrainingOptions = OPTIONS,
    *,
    config: RecognizerConfig = CONFIG,
    seed: int = 0,
) -> Trainer:
    torch.manual_seed(seed)
    return Trainer(Recognizer(config), batches or Drawn(), folder, options)


def after(steps: int) -> Callable[[], bool]:
    """A `stop` that lets so many steps pass."""
    asked = iter(range(steps + 1))
    return lambda: next(asked) == steps


def ignore(_: Progress) -> None:
    """A report nobody reads."""


def everything(of: Trainer) -> dict[str, Tensor]:
    """Weights, statistics and moments."""
    state = of.checkpoint.optimizer.state_dict()["state"]
    moments = {f"{i}.{k}": v for i, held in state.items() for k, v in held.items()}
    return {k: v.clone() for k, v in {**of.model.state_dict(), **moments}.items()}


def assert_same(one: dict[str, Tensor], two: dict[str, Tensor]) -> None:
    assert one.keys() == two.keys()
    assert [name for name, value in one.items() if not torch.equal(two[name], value)] == []


# Learning


def test_ten_sentences_are_learnt_by_heart(tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = dataclasses.replace(tiny(symbols=tuple(LETTERS)), frames=(0, 2))
    options = TrainingOptions(steps=150, learning_rate=1e-2, warmup=10, save_every=1000)
    items = sentences(10)
    losses: list[float] = []
    learning = Trainer(Recognizer(config), Listed(items), tmp_path, options)
    assert learning.run(lambda progress: losses.append(progress.loss))
    assert losses[-1] < 0.5 < losses[0]
    for words, characters in evaluate(learning.model, items).values():
        assert (words.errors, characters.errors) == (0, 0)
    model, about = load_model(learning.path)
    assert about["step"] == 150
    assert [record["step"] for record in about["history"]] == [50, 100, 150]
    assert evaluate(model, items)[2][1].errors == 0


def test_the_loss_is_ctc_per_character_and_the_mean_over_heads(tmp_path: Path) -> None:
    config = dataclasses.replace(CONFIG, dropout=0.0)
    one = trainer(tmp_path, Listed(sentences(3)), config=config)
    with torch.no_grad():
        one.model.features.mean.fill_(1e4)  # so far off that a blanked bin is what matters
        one.model.features.scale.fill_(0.0)  # and now nothing is: every feature is 0
    heads, counts = one.model.eval()(*one.model.features(*padded(sentences(3))))
    targets = [one.model.vocabulary.encode(s.text) for s in sentences(3)]
    expected = 0.0
    for head in heads:
        for row, target in enumerate(targets):
            log_probs = head[row, : int(counts[row])][:, None]
            lengths = torch.tensor([log_probs.shape[0]]), torch.tensor([len(target)])
            expected += torch.nn.functional.ctc_loss(
                log_probs, torch.tensor([target]), *lengths, reduction="sum"
            ).item()
    expected /= len(heads) * sum(map(len, targets))
    seen: list[Progress] = []
    one.run(seen.append, stop=after(1))
    assert seen[0].loss == pytest.approx(expected, rel=1e-5)
    assert (seen[0].step, seen[0].steps, seen[0].skipped) == (1, 12, ())
    assert seen[0].seconds > 0


def test_features_are_normalised_by_the_first_batches(tmp_path: Path) -> None:
    one = trainer(tmp_path)
    frames = []
    for step in range(4):
        features, counts = one.model.features(*padded(Drawn().batch(step)))
        frames += [row[: int(n)] for row, n in zip(features, counts, strict=True)]
    together = torch.cat(frames)
    torch.testing.assert_close(together.mean(dim=0), torch.zeros(20), atol=1e-4, rtol=0)
    torch.testing.assert_close(together.var(dim=0), torch.ones(20), atol=1e-3, rtol=0)


def test_a_trained_model_keeps_its_statistics(tmp_path: Path) -> None:
    one = trainer(tmp_path / "first")
    one.run(ignore)
    model, _ = load_model(one.path)
    quiet = [dataclasses.replace(s, samples=s.samples * np.float32(0.01)) for s in sentences(3)]
    again = Trainer(model, Listed(quiet), tmp_path / "second", OPTIONS)
    assert torch.equal(again.model.features.mean, one.model.features.mean)
    assert torch.equal(again.model.features.scale, one.model.features.scale)


# Exactly


@pytest.mark.parametrize("config", [CONFIG, CONFIG.twin()], ids=["streaming", "twin"])
@pytest.mark.parametrize("cuts", [(1,), (5, 1, 3)])
def test_a_resumed_training_is_the_one_that_was_not(
    tmp_path: Path, cuts: tuple[int, ...], config: RecognizerConfig
) -> None:
    straight = trainer(tmp_path / "straight", config=config)
    losses: list[float] = []
    assert straight.run(lambda p: losses.append(p.loss))
    resumed: list[float] = []
    for number, steps in enumerate(cuts):
        part = trainer(tmp_path / "cut", config=config, seed=0 if number == 0 else 99)
        assert not part.run(lambda p: resumed.append(p.loss), stop=after(steps))
    last = trainer(tmp_path / "cut", config=config, seed=5)
    torch.rand(17)  # whatever else draws random numbers
    assert last.run(lambda p: resumed.append(p.loss))
    assert resumed == losses
    assert last.checkpoint.step == straight.checkpoint.step == 12
    assert_same(everything(last), everything(straight))
    written = [tmp_path / name / "checkpoint.safetensors" for name in ("straight", "cut")]
    assert_same(load_model(written[0])[0].state_dict(), load_model(written[1])[0].state_dict())


def test_a_training_follows_from_its_seed(tmp_path: Path) -> None:
    runs = []
    for number, seed in enumerate((0, 0, 1)):
        one = trainer(tmp_path / str(number), options=dataclasses.replace(OPTIONS, seed=seed))
        one.run(ignore, stop=after(2))
        runs.append(everything(one))
    assert_same(runs[0], runs[1])
    assert any(not torch.equal(runs[2][name], value) for name, value in runs[0].items())


def test_dropout_and_augmentation_differ_from_step_to_step(tmp_path: Path) -> None:
    still = dataclasses.replace(OPTIONS, learning_rate=0.0)
    losses = [p.loss for p in reports_of(trainer(tmp_path, Listed(sentences(3)), still), 4)]
    assert len(set(losses)) == 4


def test_features_are_augmented_and_it_matters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    augmented = reports_of(trainer(tmp_path / "a", Listed(sentences(3))), 1)
    monkeypatch.setattr("nearfuture.training.trainer.spec_augment", lambda features, *_: features)
    plain = reports_of(trainer(tmp_path / "b", Listed(sentences(3))), 1)
    assert plain[0].loss != augmented[0].loss


def test_a_finished_training_does_nothing_more(tmp_path: Path) -> None:
    one = trainer(tmp_path)
    one.run(ignore)
    again = trainer(tmp_path)
    assert again.run(lambda progress: pytest.fail("a step too many"))
    assert_same(everything(again), everything(one))


def test_other_options_are_refused_by_name(tmp_path: Path) -> None:
    trainer(tmp_path).run(ignore, stop=after(1))
    with pytest.raises(NearfutureError, match=r"learning_rate: 0\.01 → 0\.02, clip: 1\.0 → 2\.0"):
        trainer(tmp_path, options=dataclasses.replace(OPTIONS, learning_rate=0.02, clip=2.0))
    with pytest.raises(NearfutureError, match="task: None → digits"):
        Trainer(Recognizer(CONFIG), Drawn(), tmp_path, OPTIONS, task={"task": "digits"})
    with pytest.raises(NearfutureError, match="holds another model"):
        trainer(tmp_path, config=CONFIG.twin())


# Interruptions


def test_stop_leaves_a_usable_checkpoint(tmp_path: Path) -> None:
    one = trainer(tmp_path / "new" / "folder")
    assert one.run(ignore, stop=after(3)) is False
    model, about = load_model(tmp_path / "new" / "folder" / "checkpoint.safetensors")
    assert about["step"] == 3
    assert_same(model.state_dict(), one.model.state_dict())


def test_stop_before_the_first_step_leaves_one_as_well(tmp_path: Path) -> None:
    one = trainer(tmp_path)
    assert not one.run(ignore, stop=lambda: True)
    assert load_model(one.path)[1]["step"] == 0
    straight = trainer(tmp_path / "straight")
    straight.run(ignore)
    again = trainer(tmp_path, seed=3)
    again.run(ignore)
    assert_same(everything(again), everything(straight))


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_an_error_inside_report_leaves_a_checkpoint(
    tmp_path: Path, error: type[BaseException]
) -> None:
    def report(progress: Progress) -> None:
        if progress.step == 4:
            raise error

    one = trainer(tmp_path)
    with pytest.raises(error):
        one.run(report)
    assert load_model(one.path)[1]["step"] == 4
    straight = trainer(tmp_path / "straight")
    straight.run(ignore)
    again = trainer(tmp_path)
    again.run(ignore)
    assert_same(everything(again), everything(straight))


def test_half_a_step_of_the_optimiser_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = trainer(tmp_path)
    optimizer = one.checkpoint.optimizer
    whole = optimizer.step

    def interrupted() -> None:
        whole()
        if one.checkpoint.step == 7:
            raise KeyboardInterrupt

    monkeypatch.setattr(optimizer, "step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        one.run(ignore)
    assert load_model(one.path)[1]["step"] == 5  # where it was saved last
    monkeypatch.setattr(optimizer, "step", whole)
    one.run(ignore)  # and the same trainer goes on from there
    straight = trainer(tmp_path / "straight")
    straight.run(ignore)
    assert_same(everything(one), everything(straight))


# Poison


def nan(text: str) -> Utterance:
    one = spoken(text, name="nan.wav")
    one.samples[500] = math.nan
    return one


def hurried(text: str) -> Utterance:
    one = spoken(text, name="hurried.wav")
    return dataclasses.replace(one, samples=one.samples[:2000])


POISON: dict[str, tuple[Utterance, str]] = {
    "NaN": (nan("abc"), "nan.wav: it has samples that are not finite"),
    "impossible": (hurried("abcdabcdabcd"), "hurried.wav: 5 frames cannot spell 12 symbols"),
    "too short": (hurried("aaaa"), "hurried.wav: 5 frames cannot spell 4 symbols with 3 repeats"),
    "unknown": (spoken("axé", name="odd.wav"), "odd.wav: cannot write 'x' (at 1), 'é' (at 2)"),
    "empty": (
        Utterance(name="empty.wav", samples=np.zeros(0, np.float32), text="a"),
        "empty.wav: 0 frames cannot spell 1 symbols",
    ),
}


def reports_of(one: Trainer, steps: int) -> list[Progress]:
    seen: list[Progress] = []
    one.run(seen.append, stop=after(steps))
    return seen


@pytest.mark.parametrize("kind", POISON)
def test_a_batch_of_poison_changes_no_weight_and_is_named(tmp_path: Path, kind: str) -> None:
    utterance, reason = POISON[kind]
    batches = Listed(sentences(3), special={6: [utterance, utterance]})
    one = trainer(tmp_path, batches)
    reports_of(one, 6)
    before = everything(one)
    (poisoned,) = reports_of(one, 1)
    assert_same(everything(one), before)
    assert poisoned.step == 7
    assert math.isnan(poisoned.loss)
    assert len(poisoned.skipped) == 3
    assert all(reason in line and "\n" not in line for line in poisoned.skipped[:2])
    assert poisoned.skipped[2] == "step 6: nothing to train on, batch skipped"
    (next_one,) = reports_of(one, 1)
    assert math.isfinite(next_one.loss)
    assert next_one.skipped == ()
    assert any(not torch.equal(everything(one)[name], value) for name, value in before.items())


@pytest.mark.parametrize("kind", POISON)
def test_poison_among_others_is_left_out(tmp_path: Path, kind: str) -> None:
    utterance, reason = POISON[kind]
    good = sentences(3)
    one = trainer(tmp_path, Listed(good, special={2: [good[0], utterance, good[2]]}))
    reports_of(one, 2)
    before = everything(one)
    (mixed,) = reports_of(one, 1)
    assert math.isfinite(mixed.loss)
    (line,) = mixed.skipped
    assert reason in line
    assert any(not torch.equal(everything(one)[name], value) for name, value in before.items())
    assert all(bool(value.isfinite().all()) for value in everything(one).values())


def test_a_loss_that_is_not_finite_changes_no_weight(tmp_path: Path) -> None:
    loud = dataclasses.replace(spoken("ab"), samples=spoken("ab").samples * np.float32(1e30))
    batches = Listed(sentences(3), special={4: [spoken("cd", name="calm"), loud]})
    one = trainer(tmp_path, batches)
    reports_of(one, 4)
    before = everything(one)
    (poisoned,) = reports_of(one, 1)
    assert not math.isfinite(poisoned.loss)
    assert poisoned.skipped == ("step 4: not finite, batch skipped (calm, ab)",)
    assert_same(everything(one), before)


def test_a_gradient_that_is_not_finite_changes_no_weight(tmp_path: Path) -> None:
    one = trainer(tmp_path, Listed(sentences(3)))
    reports_of(one, 2)
    before = everything(one)
    weight = next(one.model.parameters())
    handle = weight.register_hook(lambda grad: grad * math.nan)
    (poisoned,) = reports_of(one, 1)
    handle.remove()
    assert math.isfinite(poisoned.loss)
    assert "step 2: not finite" in poisoned.skipped[0]
    assert_same(everything(one), before)


@pytest.mark.parametrize("kind", ["NaN", "unknown", "empty"])
def test_poison_in_the_first_batch_spoils_no_statistics(tmp_path: Path, kind: str) -> None:
    good = sentences(3)
    clean = trainer(tmp_path / "clean", Listed(good))
    spoilt = trainer(tmp_path / "spoilt", Listed(good, special={0: [*good, POISON[kind][0]]}))
    assert torch.equal(spoilt.model.features.mean, clean.model.features.mean)
    assert torch.equal(spoilt.model.features.scale, clean.model.features.scale)


def test_nothing_at_all_is_refused_before_it_begins(tmp_path: Path) -> None:
    for batch in ([], [nan("abc")], [POISON["empty"][0]]):
        with pytest.raises(NearfutureError, match="at least two frames"):
            trainer(tmp_path, Listed(batch))


def test_history_stays_json(tmp_path: Path) -> None:
    options = dataclasses.replace(OPTIONS, steps=50)
    one = trainer(tmp_path, Listed(sentences(2, letters=3), special={49: [nan("a")]}), options)
    one.run(ignore)
    assert load_model(one.path)[1]["history"] == []


# Options


def test_the_learning_rate_rises_and_falls() -> None:
    options = TrainingOptions(steps=1000, learning_rate=1.0, warmup=100)
    assert options.rate_at(0) == pytest.approx(0.01)
    assert options.rate_at(99) == 1.0
    assert options.rate_at(100) == 1.0
    assert options.rate_at(550) == pytest.approx(0.5)
    assert options.rate_at(999) == pytest.approx(1 / 900)
    assert options.rate_at(1000) == 0.0
    rates = [options.rate_at(step) for step in range(100, 1001)]
    assert rates == sorted(rates, reverse=True)


@pytest.mark.parametrize(("steps", "warmup"), [(10, 0), (10, 10), (5, 300), (1, 1)])
def test_any_warm_up_gives_a_rate(steps: int, warmup: int) -> None:
    options = TrainingOptions(steps=steps, learning_rate=1.0, warmup=warmup)
    assert all(0 < options.rate_at(step) <= 1 for step in range(steps))


def test_the_rate_reaches_the_optimiser(tmp_path: Path) -> None:
    one = trainer(tmp_path)
    rates: list[float] = []
    one.run(lambda _: rates.append(one.checkpoint.optimizer.param_groups[0]["lr"]))
    assert rates == [OPTIONS.rate_at(step) for step in range(12)]


def test_a_batch_is_padded_with_zeros() -> None:
    pcm, lengths = padded([spoken("a"), spoken("abc")])
    assert (tuple(pcm.shape), pcm.dtype) == ((2, int(lengths[1]), 1), torch.float32)
    assert lengths.dtype == torch.int64
    np.testing.assert_array_equal(pcm[0, : lengths[0], 0], spoken("a").samples)
    assert (pcm[0, lengths[0] :] == 0).all()
    nothing, none = padded([])
    assert (tuple(nothing.shape), none.dtype) == ((0, 0, 1), torch.int64)
