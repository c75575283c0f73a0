"""Language models four ways: what can be read is found before training, and shows after it."""

import math
import unicodedata
from pathlib import Path

import pytest
import torch
from torch import Tensor

from nearfuture import NearfutureError
from recipes.language_models import (
    TITLES,
    Batch,
    CharacterModel,
    Kind,
    NGram,
    Text,
    Trained,
    TrainingConfig,
    audit_labels,
    batch,
    fill,
    generate,
    next_log_probs,
    quality,
    random_windows,
    read,
    score,
    train,
    training,
)
from tests.errors import refuses

KINDS = list(TITLES)
HONEST: list[Kind] = [kind for kind in KINDS if kind != "both_ways"]
SYMBOLS, FRAMES = 6, 16
SMALL = TrainingConfig(steps=60, rows=32, frames=FRAMES, lr=0.02, size=24)


def random_text(seed: int, count: int = 4000) -> Tensor:
    """Symbols that nothing before them predicts."""
    return torch.randint(SYMBOLS, (count,), generator=torch.Generator().manual_seed(seed))


def trained_on_random_text(kind: Kind) -> Trained:
    """A model that meets fresh random text in each step, so that it cannot learn any by heart."""
    return train(kind, SYMBOLS, lambda step: random_text(1000 + step), random_text(1), SMALL)


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.slow] * (kind != HONEST[0])) for kind in HONEST]
)
def test_no_honest_model_gets_below_ln_v_on_random_text(kind: Kind) -> None:
    scored = score(trained_on_random_text(kind).model, random_text(2, 40_000), frames=FRAMES)
    assert scored.loss > math.log(SYMBOLS) - 4 * scored.deviation
    assert scored.loss < math.log(SYMBOLS) + 0.1  # it has learned that it knows nothing


def test_the_leaking_model_reads_random_text_off_its_input() -> None:
    scored = score(trained_on_random_text("both_ways").model, random_text(2), frames=FRAMES)
    assert scored.loss < 0.5 * math.log(SYMBOLS)
    assert scored.last_loss is not None
    assert scored.last_loss > math.log(SYMBOLS) - 0.2  # where no future follows, it knows nothing


def test_targets_that_are_not_shifted_show_as_a_loss_below_ln_v(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The bound is no property of the model alone: a shift forgotten lets any model copy."""
    monkeypatch.setattr(training, "batch", unshifted)
    scored = score(trained_on_random_text("one_way").model, random_text(2), frames=FRAMES)
    assert scored.loss < 0.5 * math.log(SYMBOLS)


def unshifted(kind: Kind, windows: Tensor, generator: torch.Generator) -> Batch:
    made = batch(kind, windows, generator)
    return Batch(inputs=made.inputs, targets=made.inputs, counted=made.counted)


def example(kind: Kind) -> tuple[CharacterModel, Batch]:
    generator = torch.Generator().manual_seed(0)
    torch.manual_seed(0)
    windows = random_windows(random_text(3), 4, 12, generator)
    return CharacterModel(kind, SYMBOLS, size=12), batch(kind, windows, generator)


@pytest.mark.parametrize("kind", KINDS)
def test_the_audit_says_before_the_first_step_which_model_leaks_and_where(kind: Kind) -> None:
    report = audit_labels(*example(kind))
    found = [f.evidence["offset"] for f in report.findings if f.kind == "label"]
    assert found == ([1] if kind == "both_ways" else [])
    assert report.lookahead == (math.inf if kind in ("both_ways", "masked") else 0)


def test_the_audit_finds_a_masked_model_whose_input_was_not_erased() -> None:
    model, made = example("masked")
    kept = Batch(inputs=made.inputs, targets=made.targets, counted=torch.zeros_like(made.counted))
    assert (read(model, kept) == made.inputs).all()
    everywhere = Batch(
        inputs=read(model, kept), targets=made.targets, counted=torch.ones_like(made.counted)
    )
    model.kind = "one_way"  # reads its input as it is
    found = [f for f in audit_labels(model, everywhere).findings if f.kind == "label"]
    assert [f.evidence["offset"] for f in found] == [0]


def test_the_audit_finds_targets_that_are_not_shifted() -> None:
    model, made = example("one_way")
    same = Batch(inputs=made.inputs, targets=made.inputs, counted=made.counted)
    found = [f for f in audit_labels(model, same).findings if f.kind == "label"]
    assert [f.evidence["offset"] for f in found] == [0]


def test_models_are_of_the_same_size_within_a_tenth() -> None:
    counts = [CharacterModel(kind, 70).parameter_count for kind in KINDS]
    assert max(counts) <= 1.1 * min(counts)


@pytest.mark.parametrize("kind", ["one_way", "masked"])
def test_a_training_that_was_interrupted_ends_as_if_it_never_was(
    kind: Kind, tmp_path: Path
) -> None:
    config = TrainingConfig(steps=8, rows=2, frames=8, size=8)
    text, dev = random_text(4, 200), random_text(5, 60)
    whole = train(kind, SYMBOLS, text, dev, config)
    file = tmp_path / "model.safetensors"
    asked = iter(range(99))
    first = train(
        kind, SYMBOLS, text, dev, config, checkpoint=file, interrupted=lambda: next(asked) == 4
    )
    assert (first.finished, first.curve) == (False, whole.curve[:2])
    rest = train(kind, SYMBOLS, text, dev, config, checkpoint=file)
    assert (rest.finished, rest.curve) == (True, whole.curve)
    for mine, other in zip(rest.model.parameters(), whole.model.parameters(), strict=True):
        assert torch.equal(mine, other)


def test_a_checkpoint_of_another_training_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    config = TrainingConfig(steps=1, rows=2, frames=8, size=8)
    text = random_text(4, 60)
    train("one_way", SYMBOLS, text, text, config, checkpoint=file)
    with pytest.raises(NearfutureError) as refused:
        train("masked", SYMBOLS, text, text, config, checkpoint=file)
    assert (refused.value.code, refused.value.parameter) == ("conflict", "checkpoint")


@pytest.mark.parametrize("language", ["ko", "en"])
def test_texts_are_composed_and_split_by_paragraphs_without_loss(language: str) -> None:
    text = Text.load(language)  # type: ignore[arg-type]
    whole = text.train + text.dev + text.judge
    assert len(text.train) > 50_000
    assert min(len(text.dev), len(text.judge)) > 5_000
    assert set(whole) == set(text.symbols)
    assert not set(text.dev.splitlines()) & set(text.judge.splitlines()) - {"CHORUS."} - {
        p for p in text.dev.splitlines() if whole.splitlines().count(p) > 1
    }
    assert text.decode(text.encode(text.dev)) == unicodedata.normalize("NFC", text.dev)


def test_a_symbol_that_the_text_lacks_is_named() -> None:
    with pytest.raises(NearfutureError, match="no '☃'") as refused:
        Text.of("abc\n" * 10).encode("☃")
    assert refused.value.parameter == "written"


def test_probabilities_of_the_judge_sum_to_one() -> None:
    judge = NGram("abracadabra", symbols=5, order=3)
    for history in ("", "a", "br", "xx", "cab"):
        total = sum(judge.probability(history, symbol) for symbol in "abcdr")
        assert total == pytest.approx(1)


def test_noise_is_judged_badly_and_repetition_is_caught_by_the_other_direction() -> None:
    text = Text.load("en")
    real = text.train[:3000]
    order = torch.randperm(len(real), generator=torch.Generator().manual_seed(0)).tolist()
    found = {
        "real": quality(real, text),
        "noise": quality("".join(real[i] for i in order), text),
        "repetition": quality("said Alice. " * 250, text),
    }
    assert found["real"].judged < 2.4 < 3.5 < found["noise"].judged
    assert found["repetition"].judged < found["real"].judged
    assert found["repetition"].judging > found["real"].judging + 0.5
    assert found["real"].real_words > 0.99 > 0.5 > found["noise"].real_words


def test_writing_reads_nothing_but_what_is_written() -> None:
    model, _ = example("both_ways")
    written = random_text(6, 20)[None]
    assert torch.equal(next_log_probs(model, written), model(written)[:, -1])
    masked, _ = example("masked")
    blank = torch.full((1, 1), masked.erased)
    assert torch.equal(
        next_log_probs(masked, written), masked(torch.cat([written, blank], dim=1))[:, -1]
    )


def test_what_cannot_be_trained_or_drawn_is_refused_by_name() -> None:
    with refuses("out_of_range", "steps", "not 0"):
        TrainingConfig(steps=0)
    text = Text.of("hello world\n")
    model = CharacterModel("one_way", len(text.symbols), size=12)
    for temperature in (0.0, -1.0, math.nan, math.inf):
        with refuses("out_of_range", "temperature", f"{temperature:g}"):
            generate(model, text, "h", count=1, temperature=temperature)


def test_the_interval_of_a_masked_model_counts_a_window_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Four readings that erase the same symbols know no more than one."""
    once = torch.rand(9, FRAMES, generator=torch.Generator().manual_seed(0)) < 0.3

    def same(kind: Kind, windows: Tensor, generator: torch.Generator) -> Batch:
        inputs = windows[:, :-1]
        counted = once[: min(9, len(windows))].repeat(-(-len(windows) // 9), 1)
        return Batch(inputs=inputs, targets=inputs, counted=counted)

    monkeypatch.setattr(training, "batch", same)
    model, _ = example("masked")
    text = random_text(3, 9 * FRAMES + 1)
    masked = score(model, text, frames=FRAMES)
    windows = text.unfold(0, FRAMES + 1, FRAMES)[:, :-1]
    erased = windows.masked_fill(once, model.erased)
    losses = -model(erased).gather(2, windows[..., None])[..., 0].double() * once
    loss = losses.sum() / once.sum()
    deviation = ((losses - loss * once).sum(dim=1) ** 2).sum().sqrt() / once.sum()
    assert masked.loss == pytest.approx(loss.item())
    assert masked.deviation == pytest.approx(deviation.item())


def test_the_same_seed_writes_the_same_text() -> None:
    text = Text.of("hello world\nhow are you\n" * 20)
    model = CharacterModel("one_way", len(text.symbols), size=12)
    first, again, other = (
        generate(model, text, "\n", count=20, rows=2, seed=seed) for seed in (0, 0, 1)
    )
    assert first == again != other
    assert [len(row) for row in first] == [20, 20]


def test_blanks_are_filled_and_nothing_else_is_touched() -> None:
    text = Text.of("hello world\nhow are you\n" * 20)
    model = CharacterModel("masked", len(text.symbols), size=12)
    filled = fill(model, text, "hello world how are you", share=0.4)
    assert "_" in filled.blanks
    for blank, guess, truth in zip(filled.blanks, filled.guess, filled.truth, strict=True):
        assert blank in ("_", truth)
        assert blank == "_" or guess == truth
