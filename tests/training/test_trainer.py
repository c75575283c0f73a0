"""The training loop: it learns, it resumes exactly, and nothing poisons it."""

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from nearfuture.budget import RecognizerConfig, tiny
from nearfuture.data import Batch, Batches, Skipped, Utterance
from nearfuture.error import NearfutureError
from nearfuture.model import Recognizer
from nearfuture.training import (
    OptimizerOptions,
    ScheduleOptions,
    StepProgress,
    Trainer,
    TrainingOptions,
    distillation_loss,
    evaluate,
    gradient,
    load_model,
)
from nearfuture.training.local_batch import pad
from nearfuture.training.optimizer import Optimizer
from nearfuture.training.teacher import initialise_from_teacher
from tests.errors import refuses
from tests.recognizers import PLAIN
from tests.training.settings import changed, plain, scripted, training_options
from tests.training.tones import CONFIG, LETTERS, Drawn, Listed, sentences, spoken

OPTIONS = training_options(steps=12, learning_rate=1e-2, warmup=3, save_every=5)


def trainer(
    folder: Path,
    batches: Batches | None = None,
    options: TrainingOptions = OPTIONS,
    *,
    config: RecognizerConfig = CONFIG,
    seed: int = 0,
) -> Trainer:
    torch.manual_seed(seed)
    return Trainer(Recognizer(config), plain(batches or Drawn()), options, folder)


def after(steps: int) -> Callable[[], bool]:
    """A `stop` that lets so many steps pass."""
    asked = iter(range(steps + 1))
    return lambda: next(asked) == steps


def ignore(_: StepProgress) -> None:
    """A report nobody reads."""


def everything(of: Trainer) -> dict[str, Tensor]:
    """Weights, statistics, their averages, how often those were updated, and moments."""
    ema = of.checkpoint.ema
    tensors = of.checkpoint.optimizer.state()
    tensors |= {f"ema.{k}": v for k, v in ema.model.state_dict().items()}
    tensors |= {"updates": torch.tensor(ema.updates), **of.model.state_dict()}
    return {k: v.clone() for k, v in tensors.items()}


def assert_same(one: dict[str, Tensor], two: dict[str, Tensor]) -> None:
    assert one.keys() == two.keys()
    assert [name for name, value in one.items() if not torch.equal(two[name], value)] == []


# Learning


def test_ten_sentences_are_learnt_by_heart(tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = tiny(symbols=tuple(LETTERS)).replace(heads=(0, 2))
    options = training_options(steps=150, learning_rate=1e-2, warmup=10, save_every=1000)
    items = sentences(10)
    losses: list[float] = []
    learning = Trainer(Recognizer(config), plain(Listed(items)), options, tmp_path)
    assert learning.run(lambda progress: losses.append(progress.loss))
    assert losses[-1] < 0.5 < losses[0]
    for words, characters in evaluate(learning.checkpoint.ema.model, items).values():
        assert (words.errors, characters.errors) == (0, 0)
    model, about = load_model(learning.path)
    assert about["step"] == 150
    assert [record["step"] for record in about["history"]] == [50, 100, 150]
    assert evaluate(model, items)[2][1].errors == 0


def test_the_loss_is_ctc_per_character_and_the_mean_over_heads(tmp_path: Path) -> None:
    config = CONFIG.replace(dropout=0.0)
    one = trainer(tmp_path, Listed(sentences(3)), config=config)
    with torch.no_grad():
        one.model.features.mean.fill_(1e4)  # so far off that a blanked bin is what matters
        one.model.features.scale.fill_(0.0)  # and now nothing is: every feature is 0
    heads, counts = one.model.eval()(*one.model.features(*pad(sentences(3))))
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
    seen: list[StepProgress] = []
    one.run(seen.append, stop=after(1))
    assert seen[0].loss == pytest.approx(expected, rel=1e-5)
    assert (seen[0].step, seen[0].steps, seen[0].skipped) == (1, 12, ())
    assert seen[0].seconds > 0


def test_features_are_normalised_by_the_first_batches(tmp_path: Path) -> None:
    one = trainer(tmp_path)
    frames = []
    for step in range(4):
        features, counts = one.model.features(*pad(Drawn().batch(step).utterances))
        frames += [row[: int(n)] for row, n in zip(features, counts, strict=True)]
    together = torch.cat(frames)
    torch.testing.assert_close(together.mean(dim=0), torch.zeros(20), atol=1e-4, rtol=0)
    torch.testing.assert_close(together.var(dim=0), torch.ones(20), atol=1e-3, rtol=0)


def test_a_trained_model_keeps_its_statistics(tmp_path: Path) -> None:
    one = trainer(tmp_path / "first")
    one.run(ignore)
    model, _ = load_model(one.path)
    quiet = [dataclasses.replace(s, samples=s.samples * np.float32(0.01)) for s in sentences(3)]
    again = Trainer(model, plain(Listed(quiet)), OPTIONS, tmp_path / "second")
    assert torch.equal(again.model.features.mean, one.model.features.mean)
    assert torch.equal(again.model.features.scale, one.model.features.scale)


# Exactly


@pytest.mark.parametrize(
    "config",
    [CONFIG, CONFIG.twin(), CONFIG.replace(**PLAIN)],
    ids=["streaming", "twin", "batch norm"],
)
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
        one = trainer(tmp_path / str(number), options=changed(OPTIONS, seed=seed))
        one.run(ignore, stop=after(2))
        runs.append(everything(one))
    assert_same(runs[0], runs[1])
    assert any(not torch.equal(runs[2][name], value) for name, value in runs[0].items())


def test_dropout_and_augmentation_differ_from_step_to_step(tmp_path: Path) -> None:
    still = changed(OPTIONS, learning_rate=0.0)
    losses = [p.loss for p in reports_of(trainer(tmp_path, Listed(sentences(3)), still), 4)]
    assert len(set(losses)) == 4


def test_features_are_augmented_and_it_matters(tmp_path: Path) -> None:
    augmented = reports_of(trainer(tmp_path / "a", Listed(sentences(3))), 1)
    options = changed(OPTIONS, freq_masks=0, time_masks=0)
    plain = reports_of(trainer(tmp_path / "b", Listed(sentences(3)), options), 1)
    assert plain[0].loss != augmented[0].loss


def test_a_finished_training_does_nothing_more(tmp_path: Path) -> None:
    one = trainer(tmp_path)
    one.run(ignore)
    again = trainer(tmp_path)
    assert again.run(lambda progress: pytest.fail("a step too many"))
    assert_same(everything(again), everything(one))


def test_other_options_are_refused_by_name(tmp_path: Path) -> None:
    trainer(tmp_path).run(ignore, stop=after(1))
    with refuses("conflict", "learning_rate", "`learning_rate` 0.01 → 0.02, `clip` 1.0 → 2.0"):
        trainer(tmp_path, options=changed(OPTIONS, learning_rate=0.02, clip=2.0))
    with refuses("conflict", "task", "`task` None → digits"):
        Trainer(Recognizer(CONFIG), plain(Drawn(), task="digits"), OPTIONS, tmp_path)
    with refuses("conflict", "bidirectional", "`heads` [0, 2] → []"):
        trainer(tmp_path, config=CONFIG.twin())


def test_more_or_fewer_steps_go_on_and_say_what_the_learning_rate_does(
    tmp_path: Path,
) -> None:
    trainer(tmp_path).run(ignore)
    more = trainer(tmp_path, options=changed(OPTIONS, steps=24, warmup=4))
    (line,) = more.notes
    assert line == (
        "steps 12 → 24: the learning rate follows from their number, so that after step 12 it is "
        "60% of its greatest value, where it was 0%"
    )
    seen = reports_of(more, 1)
    assert seen[0].learning_rate == pytest.approx(1e-2 * 12 / 20)
    assert (seen[0].step, seen[0].steps) == (13, 24)
    fewer = trainer(tmp_path, options=changed(OPTIONS, steps=5))
    assert fewer.notes == ("steps 24 → 5: 13 are done, so that nothing remains to be trained",)
    assert fewer.run(lambda progress: pytest.fail("a step too many"))


def test_fewer_steps_than_are_done_are_validated_all_the_same(tmp_path: Path) -> None:
    reports_of(validating(tmp_path, Script(), validate_every=10), 8)
    fewer = validating(tmp_path, Script(0.5), validate_every=10, steps=5)
    assert fewer.run(ignore)
    assert load_model(fewer.best_path)[1]["best"] == {"cer": 0.5, "other": 1.0, "step": 8}


@pytest.mark.parametrize("key", ["threads", "processes", "newton_schulz", "bfloat16"])
def test_what_only_rounds_otherwise_goes_on_with_a_word(tmp_path: Path, key: str) -> None:
    one = trainer(tmp_path)
    assert one.checkpoint.run["newton_schulz"] == "float32"
    reports_of(one, 2)
    values = one.checkpoint.options["hardware"] if key == "bfloat16" else one.checkpoint.run
    before, values[key] = values[key], "something else"
    one.checkpoint.save(one.path)
    again = trainer(tmp_path)
    (line,) = again.notes
    assert line.startswith(f"{key} something else → {before}: the weights")
    assert reports_of(again, 1)[0].step == 3
    assert trainer(tmp_path).notes == ()  # it was said once


# Interruptions


def test_stop_leaves_a_usable_checkpoint(tmp_path: Path) -> None:
    one = trainer(tmp_path / "new" / "folder")
    assert one.run(ignore, stop=after(3)) is False
    model, about = load_model(tmp_path / "new" / "folder" / "checkpoint.safetensors")
    assert about["step"] == 3
    assert_same(model.state_dict(), one.checkpoint.ema.model.state_dict())


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
    def report(progress: StepProgress) -> None:
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

    def interrupted(lr_scale: float) -> None:
        whole(lr_scale)
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


def loud(text: str) -> Utterance:
    """Finite, but its power is not."""
    one = spoken(text)
    return dataclasses.replace(one, samples=one.samples * np.float32(1e30))


POISON: dict[str, tuple[Utterance, str]] = {
    "NaN": (nan("abc"), "nan.wav: it has samples that are not finite"),
    "impossible": (hurried("abcdabcdabcd"), "hurried.wav: its 0.25 s are 5 frames"),
    "too short": (hurried("aaaa"), "hurried.wav: its 0.25 s are 5 frames"),
    "unknown": (spoken("axé", name="odd.wav"), "odd.wav: cannot write 'x' (at 1), 'é' (at 2)"),
    "empty": (
        Utterance(name="empty.wav", samples=np.zeros(0, np.float32), text="a"),
        "empty.wav: its 0.00 s are 0 frames",
    ),
}


def reports_of(one: Trainer, steps: int) -> list[StepProgress]:
    seen: list[StepProgress] = []
    one.run(seen.append, stop=after(steps))
    return seen


NORMED = CONFIG.replace(dropout=0.0, **PLAIN)
configs = pytest.mark.parametrize("config", [CONFIG, NORMED], ids=["layer norm", "batch norm"])


@configs
@pytest.mark.parametrize("kind", POISON)
def test_a_batch_of_poison_changes_nothing_and_is_named(
    tmp_path: Path, kind: str, config: RecognizerConfig
) -> None:
    utterance, reason = POISON[kind]
    batches = Listed(sentences(3), special={3: [utterance, utterance]})
    one = trainer(tmp_path, batches, config=config)
    reports_of(one, 3)
    before = everything(one)
    (poisoned,) = reports_of(one, 1)
    assert_same(everything(one), before)
    assert (poisoned.step, poisoned.skipped_total) == (4, 2)
    assert math.isnan(poisoned.loss)
    assert len(poisoned.skipped) == 2  # the same one twice is named once
    assert reason in str(poisoned.skipped[0])
    assert "\n" not in str(poisoned.skipped[0])
    assert str(poisoned.skipped[1]) == "step 3: nothing to train on, batch skipped"
    (next_one,) = reports_of(one, 1)
    assert math.isfinite(next_one.loss)
    assert next_one.skipped == ()
    assert any(not torch.equal(everything(one)[name], value) for name, value in before.items())


@configs
@pytest.mark.parametrize("kind", POISON)
def test_poison_among_others_is_as_if_it_were_not_there(
    tmp_path: Path, kind: str, config: RecognizerConfig
) -> None:
    utterance, reason = POISON[kind]
    good = sentences(3)
    mixed = Listed(good, special={2: [good[0], utterance, good[2]]})
    pure = Listed(good, special={2: [good[0], good[2]]})
    runs = [
        trainer(tmp_path / name, batches, config=config)
        for name, batches in (("mixed", mixed), ("pure", pure))
    ]
    seen = [reports_of(one, 5) for one in runs]
    assert [p.loss for p in seen[0]] == [p.loss for p in seen[1]]
    (line,) = seen[0][2].skipped
    assert reason in str(line)
    assert [p.skipped_total for p in seen[0]] == [0, 0, 1, 1, 1]
    assert_same(everything(runs[0]), everything(runs[1]))


def test_what_the_data_could_not_load_is_named_and_counted(tmp_path: Path) -> None:
    torn = Skipped("torn.wav", "cut off", "it ends in the middle")

    class Torn(Listed):
        def batch(self, step: int, *, rank: int = 0, world_size: int = 1) -> Batch:
            whole = super().batch(step, rank=rank, world_size=world_size)
            return dataclasses.replace(whole, skipped=(torn,))

    one = trainer(tmp_path, Torn(sentences(2)))
    first, second = reports_of(one, 2)
    assert first.skipped == (torn,)
    assert second.skipped == ()  # once is enough
    assert (first.skipped_total, second.skipped_total) == (1, 2)
    assert load_model(one.path)[1]["skipped"] == 2


def test_names_with_a_colon_are_told_apart(tmp_path: Path) -> None:
    same_speaker = [dataclasses.replace(nan("abc"), name=f"anna: {n}") for n in range(2)]
    one = trainer(tmp_path, Listed([*sentences(2), *same_speaker]))
    first, second = reports_of(one, 2)
    assert [line.name for line in first.skipped] == ["anna: 0", "anna: 1"]
    assert second.skipped == ()


@configs
def test_a_loss_that_is_not_finite_changes_nothing(
    tmp_path: Path, config: RecognizerConfig
) -> None:
    batches = Listed(sentences(3), special={2: [spoken("cd", name="calm"), loud("ab")]})
    one = trainer(tmp_path, batches, config=config)
    reports_of(one, 2)
    before = everything(one)
    (poisoned,) = reports_of(one, 1)
    assert not math.isfinite(poisoned.loss)
    assert poisoned.skipped == (
        Skipped("step 2", "not finite", "not finite, batch skipped (calm, ab)"),
    )
    assert poisoned.skipped_total == 2
    assert_same(everything(one), before)


@configs
def test_a_gradient_that_is_not_finite_changes_nothing(
    tmp_path: Path, config: RecognizerConfig
) -> None:
    one = trainer(tmp_path, Listed(sentences(3)), config=config)
    reports_of(one, 2)
    before = everything(one)
    weight = next(one.model.parameters())
    handle = weight.register_hook(lambda grad: grad * math.nan)
    (poisoned,) = reports_of(one, 1)
    handle.remove()
    assert math.isfinite(poisoned.loss)
    assert "step 2: not finite" in str(poisoned.skipped[0])
    assert_same(everything(one), before)


@pytest.mark.parametrize("kind", ["NaN", "unknown", "empty", "loud"])
def test_poison_in_the_first_batch_spoils_no_statistics(tmp_path: Path, kind: str) -> None:
    good = sentences(3)
    poison = loud("ab") if kind == "loud" else POISON[kind][0]
    clean = trainer(tmp_path / "clean", Listed(good))
    spoilt = trainer(tmp_path / "spoilt", Listed(good, special={0: [*good, poison]}))
    assert torch.equal(spoilt.model.features.mean, clean.model.features.mean)
    assert torch.equal(spoilt.model.features.scale, clean.model.features.scale)


def test_nothing_at_all_is_refused_before_it_begins(tmp_path: Path) -> None:
    for batch in ([], [nan("abc")], [POISON["empty"][0]]):
        with pytest.raises(NearfutureError, match="none of the first 64 batches can be trained on"):
            trainer(tmp_path, Listed(batch))


def test_features_are_fitted_to_the_first_batches_that_can_be_used(tmp_path: Path) -> None:
    good = sentences(3)
    clean = trainer(tmp_path / "clean", Listed(good))
    spoilt = trainer(
        tmp_path / "spoilt", Listed(good, special={step: [nan("abc")] for step in range(6)})
    )
    assert torch.equal(spoilt.model.features.mean, clean.model.features.mean)


def test_history_stays_json(tmp_path: Path) -> None:
    options = changed(OPTIONS, steps=50)
    one = trainer(tmp_path, Listed(sentences(2, letters=3), special={49: [nan("a")]}), options)
    one.run(ignore)
    assert load_model(one.path)[1]["history"] == [{"step": 50, "skipped": 1}]


def test_an_interrupted_forward_pass_leaves_no_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = trainer(tmp_path, config=NORMED)
    reports_of(one, 3)
    before = everything(one)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    # After the encoder, whose batch norms have moved their averages by then.
    monkeypatch.setattr(one.model.lookahead, "all", interrupted)
    with pytest.raises(KeyboardInterrupt):
        one.run(ignore)
    assert_same(everything(one), before)
    monkeypatch.undo()
    straight = trainer(tmp_path / "straight", config=NORMED)
    straight.run(ignore)
    again = trainer(tmp_path, config=NORMED)
    again.run(ignore)
    assert_same(everything(again), everything(straight))


def test_the_loss_counts_the_characters_that_are_left_only(tmp_path: Path) -> None:
    good, still = sentences(3), changed(OPTIONS, learning_rate=0.0)
    mixed = [*good, POISON["impossible"][0]]
    losses = [
        reports_of(trainer(tmp_path / name, Listed(good, special={0: batch}), still), 1)[0].loss
        for name, batch in (("good", good), ("mixed", mixed))
    ]
    assert losses[0] == losses[1]


# The average, and the best


def test_the_average_follows_the_weights_by_its_equation(tmp_path: Path) -> None:
    options = changed(OPTIONS, ema=0.3)
    one = trainer(tmp_path, options=options, config=NORMED)
    expected = {k: v.clone() for k, v in one.model.state_dict().items()}
    for update in range(6):
        reports_of(one, 1)
        decay = min(0.3, (1 + update) / (10 + update))
        for name, value in one.model.state_dict().items():
            expected[name] = decay * expected[name] + (1 - decay) * value
        for name, value in one.checkpoint.ema.model.state_dict().items():
            torch.testing.assert_close(value, expected[name], rtol=1e-5, atol=1e-6)
    assert any("running_mean" in name for name in expected)


def test_without_averaging_the_average_is_the_model(tmp_path: Path) -> None:
    one = trainer(tmp_path, options=changed(OPTIONS, ema=0.0), config=NORMED)
    reports_of(one, 4)
    assert_same(one.checkpoint.ema.model.state_dict(), one.model.state_dict())


class Script:
    """Metrics that are written down, in the order in which they are asked for."""

    def __init__(self, *rates: float) -> None:
        self.rates = list(rates)
        self.seen: list[dict[str, Tensor]] = []

    def __call__(self, model: Recognizer) -> dict[str, float]:
        self.seen.append({k: v.clone() for k, v in model.state_dict().items()})
        return {"cer": self.rates.pop(0), "other": 1.0}


def validating(folder: Path, script: Script, **fields: int | str) -> Trainer:
    torch.manual_seed(0)
    options = changed(OPTIONS, **{"validate_every": 3, **fields})
    return Trainer(Recognizer(CONFIG), scripted(Drawn(), script), options, folder)


def test_the_best_average_is_kept(tmp_path: Path) -> None:
    script = Script(0.5, 0.25, math.nan, 0.3)
    one = validating(tmp_path, script)
    seen: list[StepProgress] = []
    one.run(seen.append)
    assert [p.step for p in seen if p.validation] == [3, 6, 9, 12]
    model, about = load_model(one.best_path)
    assert about["best"] == {"cer": 0.25, "other": 1.0, "step": 6}
    assert about["step"] == 6
    assert_same(model.state_dict(), script.seen[1])
    assert_same(script.seen[3], one.checkpoint.ema.model.state_dict())
    history = load_model(one.path)[1]["history"]
    assert [record["validation"].get("cer") for record in history] == [0.5, 0.25, None, 0.3]


def test_of_equals_the_later_one_is_kept(tmp_path: Path) -> None:
    one = validating(tmp_path, Script(1.0, 1.0, 1.0, 1.0))  # what it writes is still nothing
    one.run(ignore)
    assert load_model(one.best_path)[1]["step"] == 12


def test_the_last_step_is_validated_as_well(tmp_path: Path) -> None:
    one = validating(tmp_path, Script(0.5, 0.25), validate_every=7)
    one.run(ignore)
    assert load_model(one.best_path)[1]["step"] == 12


def test_a_metric_that_is_not_computed_cannot_choose(tmp_path: Path) -> None:
    one = validating(tmp_path, Script(0.5), checkpoint_metric="wer")
    with refuses("not_found", "checkpoint_metric", "'wer'", "cer, other"):
        one.run(ignore)


def test_an_interrupted_validation_is_made_up_for(tmp_path: Path) -> None:
    class Impatient(Script):
        def __call__(self, model: Recognizer) -> dict[str, float]:
            super().__call__(model)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        validating(tmp_path, Impatient(0.1)).run(ignore)
    script = Script(0.1, 0.2, 0.3, 0.4)
    one = validating(tmp_path, script)
    one.run(ignore)
    assert script.rates == []
    assert load_model(one.best_path)[1]["step"] == 3
    straight = validating(tmp_path / "straight", Script(0.1, 0.2, 0.3, 0.4))
    straight.run(ignore)
    assert straight.checkpoint.history == one.checkpoint.history
    assert_same(everything(straight), everything(one))


# A teacher


def taught(folder: Path, teacher: Recognizer | None, **fields: Any) -> Trainer:
    torch.manual_seed(0)
    options, data = changed(OPTIONS, **fields), plain(Listed(sentences(3)))
    return Trainer(Recognizer(CONFIG), data, options, folder, teacher=teacher)


def test_a_teacher_pulls_its_student_towards_itself(tmp_path: Path) -> None:
    torch.manual_seed(1)
    teacher = Recognizer(CONFIG.twin())
    teacher.features.fit(torch.randn(50, 20))
    before = {k: v.clone() for k, v in teacher.state_dict().items()}
    pcm = pad(sentences(3))

    def distance(one: Trainer) -> float:
        model = one.model.eval()
        heads, counts = model(*model.features(*pcm))
        (told,), _ = teacher(*teacher.features(*pcm))
        return sum(distillation_loss(head, told, counts).item() for head in heads)

    with torch.no_grad():
        far = taught(tmp_path / "far", teacher, distill=1e-6)
        near = taught(tmp_path / "near", teacher, distill=100.0)
        start = distance(near)
    far.run(ignore)
    near.run(ignore)
    with torch.no_grad():
        assert distance(near) < 0.5 * start
        assert distance(near) < 0.5 * distance(far)
    assert_same(teacher.state_dict(), before)
    assert not teacher.training


def test_features_that_both_share_are_made_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    teacher = Recognizer(CONFIG.twin())
    teacher.features.fit(torch.randn(50, 20))
    runs = {}
    for alike in (True, False):
        one = taught(tmp_path / str(alike), teacher, distill=1.0)
        initialise_from_teacher(one.model, teacher)
        made = []
        hook = teacher.features.register_forward_hook(lambda *_: made.append(1))  # noqa: B023
        if not alike:
            monkeypatch.setattr(gradient, "same_features", lambda *_: False)
        one.run(ignore)
        hook.remove()
        runs[alike] = everything(one), len(made)
    assert runs[True][1] == 0
    assert runs[False][1] == OPTIONS.schedule.steps
    assert_same(runs[True][0], runs[False][0])


def test_a_delay_penalty_and_a_shift_change_the_gradient(tmp_path: Path) -> None:
    teacher = Recognizer(CONFIG.twin())
    runs = {
        "plain": (None, {}),
        "penalty": (None, {"delay_penalty": 1.0}),
        "teacher": (teacher, {"distill": 1.0}),
        "shifted": (teacher, {"distill": 1.0, "shifts": {0: 2}}),
        "other head": (teacher, {"distill": 1.0, "shifts": {2: 2}}),
    }
    norms = [
        reports_of(taught(tmp_path / name, who, **options), 1)[0].gradient_norm
        for name, (who, options) in runs.items()
    ]
    assert len(set(norms)) == len(runs)


def test_what_cannot_teach_is_refused(tmp_path: Path) -> None:
    twin = Recognizer(CONFIG.twin())
    with refuses("conflict", "distill", "without a teacher"):
        taught(tmp_path, None, distill=1.0)
    with refuses("conflict", "distill", "`distill=0`"):
        taught(tmp_path, twin)
    with refuses("not_found", "shifts", "1, 5", "0, 2"):
        taught(tmp_path, twin, distill=1.0, shifts={5: 1, 1: 1, 2: 0})
    with refuses("unsupported", None, "one head, not 2"):
        taught(tmp_path, Recognizer(CONFIG), distill=1.0)
    other = CONFIG.twin().replace(symbols=("a", "b"))
    with refuses("unsupported", None, "symbols"):
        taught(tmp_path, Recognizer(other), distill=1.0)
    with refuses("conflict", "shifts"):
        taught(tmp_path, None, distill=0.0, shifts={0: 1})


def test_another_teacher_goes_on_teaching_and_is_told(tmp_path: Path) -> None:
    torch.manual_seed(5)
    one, two = Recognizer(CONFIG.twin()), Recognizer(CONFIG.twin())
    taught(tmp_path, one, distill=1.0).run(ignore, stop=after(1))
    same = taught(tmp_path, one, distill=1.0)
    assert same.notes == ()
    same.run(ignore, stop=after(1))
    other = taught(tmp_path, two, distill=1.0)
    assert other.notes == ("the bidirectional model changed: it teaches as it is now",)
    assert reports_of(other, 1)[0].step == 3


# Options


def test_the_learning_rate_rises_and_falls() -> None:
    options = ScheduleOptions(steps=1000, warmup=100)
    assert options.lr_scale(0) == pytest.approx(0.01)
    assert options.lr_scale(99) == 1.0
    assert options.lr_scale(100) == 1.0
    assert options.lr_scale(550) == pytest.approx(0.5)
    assert options.lr_scale(999) == pytest.approx(1 / 900)
    assert options.lr_scale(1000) == 0.0
    rates = [options.lr_scale(step) for step in range(100, 1001)]
    assert rates == sorted(rates, reverse=True)


def test_bfloat16_is_for_the_encoder_only(tmp_path: Path) -> None:
    seen: dict[str, set[torch.dtype]] = {"encoder": set(), "output": set()}
    losses = {}
    for exact in (True, False):
        options = changed(OPTIONS, bfloat16=not exact)
        one = trainer(tmp_path / str(exact), Listed(sentences(3)), options)
        for name, types in seen.items():
            layer = getattr(one.model, name)
            layer.register_forward_hook(lambda _, __, y, types=types: types.add(y[0].dtype))
        losses[exact] = [p.loss for p in reports_of(one, 8)]
    assert torch.bfloat16 in seen["encoder"]
    assert seen["output"] == {torch.float32}
    assert losses[True] != losses[False]
    assert losses[True] == pytest.approx(losses[False], rel=0.02)


def test_other_ways_to_fall() -> None:
    half = ScheduleOptions(steps=1000, warmup=100, decay="cosine")
    assert half.lr_scale(99) == half.lr_scale(100) == 1.0
    assert half.lr_scale(550) == pytest.approx(0.5)
    assert half.lr_scale(325) == pytest.approx((1 + math.cos(math.pi / 4)) / 2)
    assert half.lr_scale(1000) == 0.0
    level = ScheduleOptions(steps=10, warmup=5, decay="none")
    more = dataclasses.replace(level, steps=1000)
    assert [level.lr_scale(n) for n in range(10)] == [more.lr_scale(n) for n in range(10)]
    assert level.lr_scale(9) == 1.0


def test_more_steps_go_on_where_the_rate_stays(tmp_path: Path) -> None:
    short = changed(OPTIONS, decay="none", steps=6)
    long = changed(short, steps=12)
    trainer(tmp_path / "cut", options=short).run(ignore)
    resumed = trainer(tmp_path / "cut", options=long)
    assert resumed.checkpoint.step == 6
    resumed.run(ignore)
    straight = trainer(tmp_path / "straight", options=long)
    straight.run(ignore)
    assert_same(everything(resumed), everything(straight))
    assert load_model(resumed.path)[1]["options"]["schedule"]["steps"] == 12


@pytest.mark.parametrize(
    ("field", "value", "limit"),
    [
        ("steps", 0, "at least 1"),
        ("epochs", 0, "at least 1"),
        ("warmup", -1, "at least 0"),
        ("learning_rate", math.nan, "at least 0"),
        ("muon_lr", -1.0, "at least 0"),
        ("clip", 0.0, "above 0"),
        ("ema", 1.0, "from 0 to below 1"),
        ("distill", -1.0, "at least 0"),
        ("delay_penalty", -1.0, "at least 0"),
        ("threads", 0, "at least 1"),
    ],
)
def test_options_out_of_range_are_refused(field: str, value: float, limit: str) -> None:
    with refuses("out_of_range", field, value, limit):
        training_options(**{field: value})


def test_options_that_exclude_each_other_are_refused() -> None:
    with refuses("invalid", "decay", "exponential"):
        training_options(decay="exponential")
    with refuses("conflict", "epochs", "`steps`"):
        training_options(steps=3, epochs=3)


def test_a_short_training_warms_up_and_validates_accordingly() -> None:
    short = ScheduleOptions(epochs=2).scaled(159)
    assert (short.steps, short.epochs, short.warmup) == (159, None, 16)
    assert (short.validate_every, short.report_every) == (16, 2)
    long = ScheduleOptions().scaled(6000)
    assert long == ScheduleOptions(steps=6000)


def test_fine_tuning_has_smaller_rates_where_none_are_given() -> None:
    assert OptimizerOptions().rates == (2e-3, 3e-3)
    assert OptimizerOptions().fine_tuning().rates == pytest.approx((5e-4, 7.5e-4))
    assert OptimizerOptions(learning_rate=0.1).fine_tuning().rates == pytest.approx((0.1, 0.15))
    assert OptimizerOptions(muon_lr=0.0).fine_tuning().rates == (5e-4, 0.0)


def test_the_names_of_all_fields_differ() -> None:
    """A message or a flag names a field without the path to it."""
    names = [
        name
        for part in TrainingOptions().stored().values()
        if isinstance(part, dict)
        for name in part
    ]
    names += [name for name, part in TrainingOptions().stored().items()]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(("steps", "warmup"), [(10, 0), (10, 10), (5, 300), (1, 1)])
def test_any_warm_up_gives_a_rate(steps: int, warmup: int) -> None:
    options = ScheduleOptions(steps=steps, warmup=warmup)
    assert all(0 < options.lr_scale(step) <= 1 for step in range(steps))


def test_the_rates_reach_the_optimisers(tmp_path: Path) -> None:
    one = trainer(tmp_path)
    rates: list[tuple[float, ...]] = []

    def note(_: StepProgress) -> None:
        optimizers = one.checkpoint.optimizer.optimizers
        rates.append(tuple(optimizer.param_groups[0]["lr"] for optimizer, _ in optimizers))

    one.run(note)
    schedule = one.options.schedule
    scales = [schedule.lr_scale(step) for step in range(schedule.total_steps)]
    assert rates == [tuple(rate * scale for rate in (1e-2, 3e-3)) for scale in scales]


def test_restored_moments_are_where_their_parameters_are() -> None:
    model = Recognizer(CONFIG)
    of = Optimizer(model, OPTIONS.optimizer)
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    of.step(1.0)
    elsewhere = Optimizer(Recognizer(CONFIG).to("meta"), OPTIONS.optimizer)
    elsewhere.restore(of.state())
    moments = {name: value for name, value in elsewhere.state().items() if ".step" not in name}
    assert moments.keys() < of.state().keys()
    assert {value.device.type for value in moments.values()} == {"meta"}


def test_muon_moves_the_matrices_of_the_encoder_and_nothing_else() -> None:
    model = Recognizer(CONFIG)
    (_, learning_rate), (muon, muon_lr) = Optimizer(model, OPTIONS.optimizer).optimizers
    assert (learning_rate, muon_lr) == (1e-2, 3e-3)
    moved = {id(value) for group in muon.param_groups for value in group["params"]}
    names = {name for name, value in model.named_parameters() if id(value) in moved}
    assert any(name.endswith("weight_ih") for name in names)
    assert all(name.startswith("encoder.") for name in names)
    alone = Optimizer(model, OptimizerOptions(muon_lr=0.0))
    assert len(alone.optimizers) == 1


def test_a_batch_is_padded_with_zeros() -> None:
    pcm, lengths = pad([spoken("a"), spoken("abc")])
    assert (tuple(pcm.shape), pcm.dtype) == ((2, int(lengths[1]), 1), torch.float32)
    assert lengths.dtype == torch.int64
    np.testing.assert_array_equal(pcm[0, : lengths[0], 0], spoken("a").samples)
    assert (pcm[0, lengths[0] :] == 0).all()
    nothing, none = pad([])
    assert (tuple(nothing.shape), none.dtype) == ((0, 0, 1), torch.int64)
