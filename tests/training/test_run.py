"""A training of both models: what is reported, what is kept, what it refuses."""

import dataclasses
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from nearfuture.data import CutFilter
from nearfuture.export import ModelCard
from nearfuture.runtime.bundle import MODELS
from nearfuture.training import (
    ArchitectureOptions,
    DataOptions,
    Group,
    ProgressEvent,
    ProgressReporter,
    StepProgress,
    TrainingResult,
    architectures,
    bundle,
    load_model,
    read_training_data,
    run,
    train,
)
from nearfuture.training.bundle import recognizer_of
from nearfuture.training.run import check_options
from nearfuture.training.teacher import fingerprint
from tests.errors import refuses
from tests.training.settings import training_options

pytestmark = pytest.mark.usefixtures("no_corpora")
SAMPLES = MODELS.parent / "samples" / "manifest.tsv"
MODEL, DATA = ArchitectureOptions(preset="tiny"), DataOptions(data=(SAMPLES,))
BIDIRECTIONAL = dataclasses.replace(MODEL, models="bidirectional")
STREAMING = dataclasses.replace(MODEL, models="streaming")


@pytest.fixture(autouse=True)
def exported(monkeypatch: pytest.MonkeyPatch) -> list[ModelCard]:
    """The cards of what is exported; that takes seconds, and has tests of its own."""
    cards: list[ModelCard] = []

    def export(model: object, folder: Path, card: ModelCard, **_: Any) -> Path:
        cards.append(card)
        return folder

    monkeypatch.setattr(bundle, "export_bundle", export)
    return cards


class Recorder(ProgressReporter):
    """Keeps what is reported, and interrupts before the step after so many."""

    def __init__(self, steps: int | None = None) -> None:
        self.events: list[tuple[str, Any]] = []
        self._steps = steps

    def report(self, model: str, event: ProgressEvent | StepProgress) -> None:
        self.events.append((model, event))

    def interruption(self) -> AbstractContextManager[Any]:
        return self._stop()

    @contextmanager
    def _stop(self) -> Iterator[Any]:
        remaining = iter([] if self._steps is None else [False] * self._steps + [True])
        yield lambda: next(remaining, False)

    @property
    def steps(self) -> list[tuple[str, int]]:
        return [(name, e.step) for name, e in self.events if isinstance(e, StepProgress)]

    @property
    def notes(self) -> list[tuple[str, str]]:
        events = [(name, e) for name, e in self.events if isinstance(e, ProgressEvent)]
        return [(name, note) for name, event in events for note in event.notes]


def trained(
    folder: Path,
    model: ArchitectureOptions = MODEL,
    *,
    data: DataOptions = DATA,
    recorder: Recorder | None = None,
    **fields: Any,
) -> dict[str, TrainingResult]:
    """Three steps of the bundled samples, in the folder "mine"."""
    recorder = recorder or Recorder()
    fields = {"steps": 3, "threads": 1, **fields}
    if fields.get("epochs"):
        del fields["steps"]
    options = training_options(**fields)
    name, config = next(iter(check_options(model, options, folder / "mine").items()))
    report = lambda event: recorder.report(name, event)  # noqa: E731
    found = read_training_data(data, config, seed=options.seed, group=Group(), report=report)
    return train(found, model, options, folder / "mine", progress=recorder)


def test_the_streaming_model_learns_from_its_twin(
    tmp_path: Path, exported: list[ModelCard]
) -> None:
    recorder = Recorder()
    model = dataclasses.replace(MODEL, heads=(0, 3))
    results = trained(tmp_path, model, distill=0.5, shifts={0: 2}, recorder=recorder)
    assert list(results) == ["bidirectional", "streaming"]
    assert all(result.finished for result in results.values())
    assert [head for head, *_ in results["streaming"].error_rates] == [0, 3]
    assert "8 recordings that were trained on" in results["streaming"].validation_name
    _, twin = load_model(tmp_path / "mine" / "bidirectional" / "checkpoint.safetensors")
    _, header = load_model(tmp_path / "mine" / "streaming" / "checkpoint.safetensors")
    assert twin["options"]["distillation"] == {"distill": 0.0, "shifts": [], "delay_penalty": 0.0}
    assert twin["run"]["teacher"] is None
    assert header["options"]["distillation"]["shifts"] == [[0, 2]]
    assert len(header["run"]["teacher"]) == 64
    assert recorder.steps == [(name, n) for name in results for n in (1, 2, 3)]
    assert [card.name for card in exported] == ["mine-bidirectional", "mine-streaming"]
    assert exported[1].training["task"] == "manifest.tsv"
    assert exported[1].training["best_step"] == results["streaming"].step
    reports = [e.reports for _, e in recorder.events if isinstance(e, ProgressEvent) and e.reports]
    assert [len(report.cuts) for (report,) in reports] == [8]


def test_both_models_trained_distil_unless_told_otherwise(tmp_path: Path) -> None:
    trained(tmp_path, steps=1)
    _, header = load_model(tmp_path / "mine" / "streaming" / "checkpoint.safetensors")
    assert header["options"]["distillation"]["distill"] == 3.0


def test_epochs_say_how_many_steps(tmp_path: Path) -> None:
    recorder, data = Recorder(), dataclasses.replace(DATA, batch_seconds=6.0)
    trained(tmp_path, BIDIRECTIONAL, data=data, epochs=2, recorder=recorder)
    events = [event for _, event in recorder.events]
    (steps,) = [e.steps for e in events if isinstance(e, ProgressEvent) and e.steps]
    seen = [e.epoch for e in events if isinstance(e, StepProgress)]
    assert len(seen) == steps > 4
    assert sorted(set(seen)) == [0, 1]


def test_recordings_may_be_as_long_as_one_says(tmp_path: Path) -> None:
    recorder, data = Recorder(), dataclasses.replace(DATA, longest=2.5)
    trained(tmp_path, BIDIRECTIONAL, data=data, steps=1, recorder=recorder)
    (loaded,) = [e for _, e in recorder.events if isinstance(e, ProgressEvent) and e.skipped]
    assert all("over the limit of 2.5 s" in recording.reason for recording in loaded.skipped)
    with refuses("conflict", "recordings_sha256", "`longest` 2.5 → 40.0"):
        trained(tmp_path, BIDIRECTIONAL, steps=1)


def test_the_default_limit_is_that_of_the_data() -> None:
    assert DataOptions().longest == CutFilter().longest_s


def test_a_finished_training_goes_on_with_more_steps(tmp_path: Path) -> None:
    trained(tmp_path, distill=1.0)
    recorder = Recorder()
    results = trained(tmp_path, distill=1.0, steps=5, recorder=recorder)
    assert [result.finished for result in results.values()] == [True, True]
    more = [name for name, note in recorder.notes if note.startswith("steps 3 → 5: the learning")]
    assert more == ["bidirectional", "streaming"]
    assert recorder.steps == [(name, step) for name in results for step in (4, 5)]


def test_an_interruption_ends_it_before_the_next_model(tmp_path: Path) -> None:
    results = trained(tmp_path, recorder=Recorder(steps=0))
    assert list(results) == ["bidirectional"]
    assert not results["bidirectional"].finished
    path = tmp_path / "mine" / "bidirectional" / "checkpoint.safetensors"
    assert load_model(path)[1]["step"] == 0
    assert not (tmp_path / "mine" / "streaming").exists()
    results = trained(tmp_path)
    assert [result.finished for result in results.values()] == [True, True]


def test_an_interrupted_training_is_the_one_that_was_not(tmp_path: Path) -> None:
    straight, cut = tmp_path / "straight", tmp_path / "cut"
    trained(straight, distill=1.0)
    trained(cut, distill=1.0, recorder=Recorder(steps=2))  # in the bidirectional model
    trained(cut, distill=1.0, recorder=Recorder(steps=2))  # in what remains of the streaming one
    trained(cut, distill=1.0)
    for name in ("bidirectional", "streaming"):
        for kind in ("checkpoint", "best"):
            files = [f / "mine" / name / f"{kind}.safetensors" for f in (straight, cut)]
            one, two = (load_file(path) for path in files)
            assert one.keys() == two.keys()
            assert [key for key, value in one.items() if not torch.equal(two[key], value)] == []


def test_other_recordings_are_another_training(tmp_path: Path) -> None:
    trained(tmp_path, BIDIRECTIONAL)
    lines = SAMPLES.read_text(encoding="utf-8").splitlines()
    rows = [f"{SAMPLES.parent}/{line}" for line in lines[1:-1]]
    fewer = tmp_path / "fewer.tsv"
    fewer.write_text("\n".join([lines[0], *rows]) + "\n", encoding="utf-8")
    with refuses("conflict", "task", "`recordings_sha256` changed"):
        trained(tmp_path, BIDIRECTIONAL, data=DataOptions(data=(fewer,)))


def test_without_its_twin_a_streaming_model_cannot_learn_from_it(tmp_path: Path) -> None:
    with refuses("not_found", "distill", "best.safetensors"):
        trained(tmp_path, STREAMING, distill=1.0)
    assert trained(tmp_path, STREAMING)["streaming"].finished


def test_options_without_effect_are_refused(tmp_path: Path) -> None:
    with refuses("conflict", "shifts"):
        trained(tmp_path, STREAMING, shifts={0: 1})


def test_what_the_second_model_cannot_have_is_refused_before_the_first(tmp_path: Path) -> None:
    with refuses("not_found", "shifts", "heads of 7 frames", "0, 3"):
        trained(tmp_path, dataclasses.replace(MODEL, heads=(0, 3)), distill=1.0, shifts={7: 1})
    assert not list(tmp_path.rglob("*"))


def test_bfloat16_is_passed_on(tmp_path: Path) -> None:
    trained(tmp_path, BIDIRECTIONAL, bfloat16=True)
    _, header = load_model(tmp_path / "mine" / "bidirectional" / "checkpoint.safetensors")
    assert header["options"]["hardware"] == {"bfloat16": True}


def test_the_seed_decides_weights_and_batches(tmp_path: Path) -> None:
    def learnt(folder: str, seed: int) -> dict[str, torch.Tensor]:
        trained(tmp_path / folder, STREAMING, steps=2, seed=seed)
        path = tmp_path / folder / "mine" / "streaming" / "checkpoint.safetensors"
        return load_model(path)[0].encoder.state_dict()

    first, second, other = learnt("a", 0), learnt("b", 0), learnt("c", 1)
    assert all(torch.equal(first[name], value) for name, value in second.items())
    assert any(not torch.equal(first[name], value) for name, value in other.items())


def test_a_bundle_is_trained_on_with_all_that_it_knows(tmp_path: Path) -> None:
    still = {"learning_rate": 0.0, "muon_lr": 0.0}  # what it ends with is what it began with
    options = {**still, "steps": 1, "regularise": False}
    trained(tmp_path, ArchitectureOptions(init_from="digits"), **options)
    model, header = load_model(tmp_path / "mine" / "streaming" / "best.safetensors")
    begun = recognizer_of("digits")
    assert model.config == begun.config.replace(dropout=0.0)
    assert header["data"]["init_from"] == fingerprint(begun)
    for name, value in begun.state_dict().items():
        assert torch.equal(model.state_dict()[name], value)
    afresh = ArchitectureOptions(preset="small", heads=(0, 4, 8, 19), models="streaming")
    with refuses("conflict", "init_from"):  # another beginning, another training
        trained(tmp_path, afresh, **options)


@pytest.mark.parametrize(
    ("changes", "symbols", "code", "parameter", "values"),
    [
        ({}, ("e", "q", "ü"), "unsupported", "init_from", ("'q' 'ü'", "' efghinorstuvwxz'")),
        ({"rate": 16000}, (), "conflict", "rate", (8000,)),
        ({"heads": (0, 4)}, (), "conflict", "heads", ((0, 4, 8, 19),)),
        ({"models": "bidirectional"}, (), "conflict", "models", ("streaming",)),
        ({"preset": "tiny"}, (), "conflict", "preset", ("digits",)),
    ],
)
def test_a_bundle_keeps_what_it_is(
    changes: dict[str, Any],
    symbols: tuple[str, ...],
    code: str,
    parameter: str,
    values: tuple[object, ...],
) -> None:
    with refuses(code, parameter, *values):
        architectures(
            ArchitectureOptions(init_from="digits", **changes), training_options(), symbols
        )


@pytest.mark.parametrize("fast", [False, True])
def test_bfloat16_is_warned_of_where_the_processor_has_none(
    tmp_path: Path, fast: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "multiplies_bfloat16", lambda device: fast)
    recorder = Recorder()
    trained(tmp_path, STREAMING, steps=1, bfloat16=True, recorder=recorder)
    warned = any("no instructions for bfloat16" in note for _, note in recorder.notes)
    assert warned is not fast
