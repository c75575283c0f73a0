"""A training of both models: what is told, what is kept, what it refuses."""

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from nearfuture.error import NearfutureError
from nearfuture.runtime.bundle import MODELS
from nearfuture.training import Group, Progress, best, load_model, session
from nearfuture.training.request import Request
from nearfuture.training.session import Note, Outcome
from nearfuture.training.teacher import fingerprint

pytestmark = pytest.mark.usefixtures("no_corpora")
SAMPLES = MODELS.parent / "samples" / "manifest.tsv"


@pytest.fixture(autouse=True)
def exported(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What is asked to be exported; that takes seconds, and has tests of its own."""
    asked: list[dict[str, Any]] = []

    def export(model: object, folder: Path, **about: Any) -> Path:
        asked.append(about)
        return folder

    monkeypatch.setattr(best, "export_bundle", export)
    return asked


def request(folder: Path, **changes: Any) -> Request:
    plain = Request(data=(SAMPLES,), preset="tiny", steps=3, folder=folder / "mine")
    return dataclasses.replace(plain, **changes)


def told(asked: Request, **options: Any) -> tuple[dict[str, Outcome], list[Any]]:
    messages: list[Any] = []
    outcomes = session.train(
        asked, Group(), tell=lambda name, message: messages.append((name, message)), **options
    )
    return outcomes, messages


def test_the_streaming_model_learns_from_its_twin(
    tmp_path: Path, exported: list[dict[str, Any]]
) -> None:
    outcomes, messages = told(request(tmp_path, distill=0.5, shifts={0: 2}, heads=(0, 3)))
    assert list(outcomes) == ["bidirectional", "streaming"]
    assert all(outcome.done for outcome in outcomes.values())
    assert [head for head, *_ in outcomes["streaming"].rates] == [0, 3]
    assert "8 recordings that were trained on" in outcomes["streaming"].watched
    _, twin = load_model(tmp_path / "mine" / "bidirectional" / "checkpoint.safetensors")
    _, about = load_model(tmp_path / "mine" / "streaming" / "checkpoint.safetensors")
    assert (twin["distill"], twin["teacher"], twin["shift_frames"]) == (0.0, None, {})
    assert (about["distill"], about["shift_frames"]) == (0.5, {"0": 2})
    assert len(about["teacher"]) == 64
    steps = [(name, m.step) for name, m in messages if isinstance(m, Progress)]
    assert steps == [(name, n) for name in outcomes for n in (1, 2, 3)]
    assert [about["name"] for about in exported] == ["mine-bidirectional", "mine-streaming"]
    assert exported[1]["training"]["task"] == "manifest.tsv"
    assert exported[1]["training"]["best_step"] == outcomes["streaming"].step
    reports = [m.reports for _, m in messages if isinstance(m, Note) and m.reports]
    assert [len(report.cuts) for (report,) in reports] == [8]


def test_epochs_say_how_many_steps(tmp_path: Path) -> None:
    asked = request(tmp_path, steps=None, epochs=2, batch_seconds=6.0, models=("bidirectional",))
    _, messages = told(asked)
    (steps,) = [m.steps for _, m in messages if isinstance(m, Note) and m.steps]
    seen = [m.epoch for _, m in messages if isinstance(m, Progress)]
    assert len(seen) == steps > 4
    assert sorted(set(seen)) == [0, 1]


def test_a_small_training_is_recorded_as_often_as_a_large_one(tmp_path: Path) -> None:
    def records(steps: int) -> int:
        return steps // request(tmp_path).options("bidirectional", steps).report_every

    assert records(30) == 30
    assert 50 < records(159) < 100
    assert records(6000) == 120


def test_recordings_may_be_as_long_as_one_says(tmp_path: Path) -> None:
    asked = request(tmp_path, models=("bidirectional",), steps=1, longest=2.5)
    _, messages = told(asked)
    (loaded,) = [m for _, m in messages if isinstance(m, Note) and m.skipped]
    assert all("over the limit of 2.5 s" in one.reason for one in loaded.skipped)
    with pytest.raises(NearfutureError, match=r"longest: 2\.5 → 40\.0"):
        told(request(tmp_path, models=("bidirectional",), steps=1))


def test_a_finished_session_goes_on_with_more_steps(tmp_path: Path) -> None:
    told(request(tmp_path, distill=1.0))
    outcomes, messages = told(request(tmp_path, distill=1.0, steps=5))
    assert [outcome.done for outcome in outcomes.values()] == [True, True]
    said = [(name, line) for name, m in messages if isinstance(m, Note) for line in m.said]
    steps = [name for name, line in said if line.startswith("steps 3 → 5: the learning rate")]
    assert steps == ["bidirectional", "streaming"]
    done = [(name, m.step) for name, m in messages if isinstance(m, Progress)]
    assert done == [(name, step) for name in outcomes for step in (4, 5)]


def test_an_interruption_ends_it_before_the_next_model(tmp_path: Path) -> None:
    @contextmanager
    def at_once() -> Iterator[Any]:
        yield lambda: True

    outcomes, _ = told(request(tmp_path), interruption=at_once)
    assert list(outcomes) == ["bidirectional"]
    assert not outcomes["bidirectional"].done
    assert (
        load_model(tmp_path / "mine" / "bidirectional" / "checkpoint.safetensors")[1]["step"] == 0
    )
    assert not (tmp_path / "mine" / "streaming").exists()
    outcomes, _ = told(request(tmp_path))
    assert [outcome.done for outcome in outcomes.values()] == [True, True]


def test_an_interrupted_session_is_the_one_that_was_not(tmp_path: Path) -> None:
    @contextmanager
    def soon() -> Iterator[Any]:
        asked = iter((False, False, True))
        yield lambda: next(asked)

    straight, cut = tmp_path / "straight", tmp_path / "cut"
    told(request(straight, distill=1.0))
    told(request(cut, distill=1.0), interruption=soon)  # in the twin
    told(request(cut, distill=1.0), interruption=soon)  # in what is left of the streaming model
    told(request(cut, distill=1.0))
    for name in ("bidirectional", "streaming"):
        for kind in ("checkpoint", "best"):
            files = [f / "mine" / name / f"{kind}.safetensors" for f in (straight, cut)]
            one, two = (load_file(path) for path in files)
            assert one.keys() == two.keys()
            assert [key for key, value in one.items() if not torch.equal(two[key], value)] == []


def test_other_recordings_are_another_training(tmp_path: Path) -> None:
    told(request(tmp_path, models=("bidirectional",)))
    lines = SAMPLES.read_text(encoding="utf-8").splitlines()
    rows = [f"{SAMPLES.parent}/{line}" for line in lines[1:-1]]
    fewer = tmp_path / "fewer.tsv"
    fewer.write_text("\n".join([lines[0], *rows]) + "\n", encoding="utf-8")
    with pytest.raises(NearfutureError, match="recordings_sha256"):
        told(request(tmp_path, models=("bidirectional",), data=(fewer,)))


def test_without_its_twin_a_streaming_model_cannot_learn_from_it(tmp_path: Path) -> None:
    with pytest.raises(NearfutureError, match=r"no bidirectional model .*best\.safetensors: train"):
        told(request(tmp_path, models=("streaming",), distill=1.0))
    outcomes, _ = told(request(tmp_path, models=("streaming",)))
    assert outcomes["streaming"].done


def test_options_without_effect_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NearfutureError, match="shift_frames has no effect"):
        told(request(tmp_path, models=("streaming",), shifts={0: 1}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"distill": 1.0, "shifts": {7: 1}}, "for heads of 7 frames; the model has heads of 0, 3"),
        ({"delay_penalty": -1.0}, r"delay_penalty is at least 0\.0"),
        ({"shifts": {0: 1}}, "shift_frames has no effect"),
    ],
)
def test_what_the_second_model_cannot_have_is_refused_before_the_first(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(NearfutureError, match=message):
        told(request(tmp_path, heads=(0, 3), **changes))
    assert not list(tmp_path.rglob("*"))


def test_bfloat16_is_passed_on(tmp_path: Path) -> None:
    told(request(tmp_path, models=("bidirectional",), bfloat16=True))
    _, about = load_model(tmp_path / "mine" / "bidirectional" / "checkpoint.safetensors")
    assert about["bfloat16"] is True


def test_the_seed_decides_weights_and_batches(tmp_path: Path) -> None:
    def learnt(folder: str, seed: int) -> dict[str, torch.Tensor]:
        told(request(tmp_path / folder, models=("streaming",), steps=2, seed=seed))
        path = tmp_path / folder / "mine" / "streaming" / "checkpoint.safetensors"
        return load_model(path)[0].encoder.state_dict()

    first, second, other = learnt("a", 0), learnt("b", 0), learnt("c", 1)
    assert all(torch.equal(first[name], value) for name, value in second.items())
    assert any(not torch.equal(first[name], value) for name, value in other.items())


def test_a_bundle_is_trained_on_with_all_that_it_knows(tmp_path: Path) -> None:
    still = {"learning_rate": 0.0, "matrix_rate": 0.0}  # what it ends with is what it began with
    asked = request(tmp_path, preset=None, models=("streaming",), steps=1, **still)
    told(dataclasses.replace(asked, begin_with="digits", regularise=False))
    model, about = load_model(tmp_path / "mine" / "streaming" / "best.safetensors")
    begun = best.recognizer_of("digits")
    assert model.config == dataclasses.replace(begun.config, dropout=0.0)
    assert about["begin_with"] == fingerprint(begun)
    for name, value in begun.state_dict().items():
        assert torch.equal(model.state_dict()[name], value)
    with pytest.raises(NearfutureError, match="begin_with"):  # another beginning, another training
        told(dataclasses.replace(asked, preset="small", heads=(0, 4, 8, 19), regularise=False))


@pytest.mark.parametrize(
    ("changes", "symbols", "message"),
    [
        ({}, ("e", "q", "ü"), r"cannot write, 'q' 'ü'; it writes ' efghinorstuvwxz'\. Spell"),
        ({"rate": 16000}, (), "--rate: the model of digits has 8000, and keeps it"),
        ({"heads": (0, 4)}, (), "--heads: the model of digits has 0, 4, 8, 19, and keeps it"),
        ({"models": ("bidirectional",)}, (), "digits is a streaming model, which is trained on al"),
    ],
)
def test_a_bundle_keeps_what_it_is(
    tmp_path: Path, changes: dict[str, Any], symbols: tuple[str, ...], message: str
) -> None:
    plain = request(tmp_path, preset=None, begin_with="digits", models=("streaming",))
    with pytest.raises(NearfutureError, match=message):
        dataclasses.replace(plain, **changes).configs(symbols)


@pytest.mark.parametrize("fast", [False, True])
def test_bfloat16_is_warned_of_where_the_processor_has_none(
    tmp_path: Path, fast: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "multiplies_bfloat16", lambda device: fast)
    _, messages = told(request(tmp_path, models=("streaming",), steps=1, bfloat16=True))
    said = [line for _, m in messages if isinstance(m, Note) for line in m.said]
    assert any("no instructions for bfloat16" in line for line in said) is not fast
