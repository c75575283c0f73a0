"""Checkpoints: what is written comes back, and what is none is refused in one line."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from nearfuture.error import NearfutureError
from nearfuture.model import Recognizer
from nearfuture.training import Checkpoint, OptimizerOptions, load_model
from nearfuture.training.ema import EMA
from nearfuture.training.optimizer import Optimizer
from nearfuture.training.resumption import OtherTrainingError
from tests.errors import refuses
from tests.training.tones import CONFIG


def checkpoint(*, steps: int = 2, run: dict[str, Any] | None = None, **data: Any) -> Checkpoint:
    torch.manual_seed(0)
    model = Recognizer(CONFIG)
    ema = EMA(model, 0.9)
    optimizer = Optimizer(model, OptimizerOptions())
    for _ in range(steps):
        outputs, _ = model(torch.randn(2, 20, 20), torch.tensor([20, 9]))
        model.zero_grad()
        sum(output.square().mean() for output in outputs).backward()
        optimizer.step(1.0)
        ema.update()
    return Checkpoint(
        ema=ema,
        optimizer=optimizer,
        step=steps,
        options={"optimizer": {"clip": 1.0}, "seed": 3},
        data=data,
        run=run or {},
        history=[{"step": 50, "loss": 1.5}],
        skipped=4,
        validated_step=2,
        best={"cer": 0.25, "step": 2},
    )


def moments(of: Checkpoint) -> dict[str, torch.Tensor]:
    return of.optimizer.state()


def test_what_is_saved_comes_back(tmp_path: Path) -> None:
    saved, path = checkpoint(), tmp_path / "checkpoint.safetensors"
    saved.model.features.fit(torch.randn(30, 20))
    saved.save(path)
    fresh = checkpoint(steps=0)
    fresh.history, fresh.skipped, fresh.validated_step, fresh.best = [], 0, 0, {}
    fresh.restore(path)
    assert (fresh.step, fresh.history, fresh.skipped) == (2, saved.history, 4)
    assert (fresh.validated_step, fresh.best) == (2, {"cer": 0.25, "step": 2})
    assert fresh.ema.updates == 2
    for one, two in ((saved.model, fresh.model), (saved.ema.model, fresh.ema.model)):
        for name, value in one.state_dict().items():
            assert torch.equal(two.state_dict()[name], value)
    weights = saved.model.state_dict().items()
    assert any(not torch.equal(saved.ema.model.state_dict()[n], v) for n, v in weights)
    before, after = moments(saved), moments(fresh)
    assert before.keys() == after.keys()
    assert all(torch.equal(after[name], value) for name, value in before.items())
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_whoever_may_read_the_folder_may_read_the_file(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    checkpoint().save(tmp_path / "a.safetensors")
    assert (tmp_path / "a.safetensors").stat().st_mode & 0o777 == 0o644


def test_a_training_that_has_not_begun_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    checkpoint(steps=0).save(path)
    fresh = checkpoint(steps=2)
    fresh.restore(path)
    assert fresh.step == 0
    assert moments(fresh) == {}


def test_the_file_is_safetensors_and_json(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    checkpoint(task="tones").save(path)
    assert b"pickle" not in path.read_bytes()
    assert path.read_bytes()[8:9] == b"{"
    with safe_open(path, framework="np") as file:
        about = json.loads(file.metadata()["nearfuture"])
        names = set(file.keys())
        for name in names:
            file.get_tensor(name)
    assert about["model"]["symbols"] == ["a", "b", "c", "d"]
    assert about["options"] == {"optimizer": {"clip": 1.0}, "seed": 3}
    assert about["data"] == {"task": "tones"}
    assert {name.split(".")[0] for name in names} == {"model", "ema", "optimizer"}


def test_an_interrupted_write_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "checkpoint.safetensors"
    checkpoint().save(path)
    before = path.read_bytes()

    def broken(tensors: object, file: Path, **_: object) -> None:
        file.write_bytes(b"half")
        raise OSError("no space left on device")

    monkeypatch.setattr("nearfuture.training.checkpoint.save_file", broken)
    with pytest.raises(OSError, match="no space"):
        checkpoint(steps=4).save(path)
    assert path.read_bytes() == before


def test_a_restored_optimiser_does_not_hold_the_file(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    checkpoint().save(path)
    fresh = checkpoint(steps=0)
    fresh.restore(path)
    kept = {name: value.clone() for name, value in moments(fresh).items()}
    path.write_bytes(bytes(path.stat().st_size))
    assert all(torch.equal(value, kept[name]) for name, value in moments(fresh).items())


def test_a_model_is_loaded_ready_to_use(tmp_path: Path) -> None:
    saved, path = checkpoint(task="tones"), tmp_path / "checkpoint.safetensors"
    saved.save(path)
    model, about = load_model(path)
    assert not model.training
    assert model.config == CONFIG
    assert about == {
        "options": {"optimizer": {"clip": 1.0}, "seed": 3},
        "data": {"task": "tones"},
        "run": {},
        "step": 2,
        "history": saved.history,
        "skipped": 4,
        "validated_step": 2,
        "best": {"cer": 0.25, "step": 2},
    }
    for name, value in saved.ema.model.state_dict().items():
        assert torch.equal(model.state_dict()[name], value)


# What is none


def write(path: Path, about: object, tensors: dict[str, torch.Tensor] | None = None) -> None:
    metadata = {"nearfuture": about if isinstance(about, str) else json.dumps(about)}
    save_file(tensors or {"model.x": torch.zeros(1)}, path, metadata=metadata)


ABOUT = {
    "schema": 3,
    "model": json.loads(json.dumps(CONFIG.to_json())),
    "step": 1,
    "options": {"optimizer": {"clip": 1.0}, "seed": 3},
    "data": {},
    "run": {},
    "history": [],
    "skipped": 0,
    "ema_updates": 1,
    "validated_step": 0,
    "best": {},
}


def spoil(path: Path, kind: str) -> None:
    checkpoint().save(path)
    data = path.read_bytes()
    if kind == "gone":
        path.unlink()
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "text":
        path.write_text("a letter\n" * 100, encoding="utf-8")
    elif kind == "cut":
        path.write_bytes(data[: len(data) // 2])
    elif kind == "header cut":
        path.write_bytes(data[:100])
    elif kind == "pickle":
        torch.save({"model": torch.zeros(3)}, path)
    elif kind == "folder":
        path.unlink()
        path.mkdir()
    elif kind == "foreign":
        save_file({"weight": torch.zeros(2)}, path)
    elif kind == "no JSON":
        write(path, "{")
    elif kind == "a list":
        write(path, [1, 2])
    elif kind == "a number":
        write(path, "3")
    elif kind == "no schema":
        write(path, {})
    elif kind == "incomplete":
        write(path, {"schema": 3, "step": 3})
    elif kind == "other weights":
        write(path, ABOUT)
    elif kind == "other shapes":
        names = checkpoint().model.state_dict()
        kinds = ("model", "ema")
        write(path, ABOUT, {f"{kind}.{k}": torch.zeros(3) for kind in kinds for k in names})
    elif kind == "newer":
        write(path, {**ABOUT, "schema": 99})
    elif kind == "older":
        write(path, {**ABOUT, "schema": 2})


REASONS = {
    "gone": "there is no checkpoint",
    "empty": "is no checkpoint of nearfuture",
    "text": "is no checkpoint of nearfuture",
    "cut": "is no checkpoint of nearfuture",
    "header cut": "is no checkpoint of nearfuture",
    "pickle": "is no checkpoint of nearfuture",
    "folder": "is no checkpoint of nearfuture",
    "foreign": "is no checkpoint of nearfuture",
    "no JSON": "is no checkpoint of nearfuture",
    "a list": "is no checkpoint of nearfuture",
    "a number": "is no checkpoint of nearfuture",
    "no schema": "has schema None, this version reads 3",
    "incomplete": "it lacks best, data, ema_updates, history, model, options, run, skipped, val",
    "other weights": "does not hold the weights of its model",
    "other shapes": "does not hold the weights of its model",
    "newer": "has schema 99, this version reads 3",
    "older": "has schema 2, this version reads 3",
}


@pytest.mark.parametrize("kind", REASONS)
def test_what_is_no_checkpoint_is_refused_in_one_line(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "checkpoint.safetensors"
    spoil(path, kind)
    for read in (load_model, checkpoint().restore):
        with pytest.raises(NearfutureError, match=REASONS[kind]) as error:
            read(path)
        assert str(path) in str(error.value)
        assert "\n" not in str(error.value)


def test_a_training_with_other_options_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    checkpoint(rate=0.5, words=("a", "b")).save(path)
    checkpoint(rate=0.5, words=("a", "b")).restore(path)  # tuples come back as lists
    for data, name, values in (
        ({"rate": 0.25, "words": ["a", "b"]}, "rate", "`rate` 0.5 → 0.25"),
        ({"rate": 0.5}, "words", "`words` ['a', 'b'] → None"),
        ({"rate": 0.5, "words": ["a", "b"], "noise": "c" * 31}, "noise", "`noise` changed"),
    ):
        with refuses("conflict", name, values) as error:
            checkpoint(**data).restore(path)
        assert "seed" not in str(error.value)
        assert "\n" not in str(error.value)


def test_a_training_of_another_model_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    saved = checkpoint()
    saved.save(path)
    model = Recognizer(CONFIG.twin())
    optimizer = Optimizer(model, OptimizerOptions())
    other = Checkpoint(ema=EMA(model, 0.9), optimizer=optimizer, options=saved.options)
    with pytest.raises(OtherTrainingError, match="`bidirectional` False → True") as error:
        other.restore(path)
    assert {"bidirectional", "heads"} <= set(error.value.changes)
    assert "symbols" not in error.value.changes  # which are the same


def test_what_may_change_is_returned_and_what_may_not_is_refused_with_it(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    checkpoint(run={"threads": 4}).save(path)
    fresh = checkpoint(steps=0, run={"threads": 1})
    assert fresh.restore(path) == {"threads": (4, 1)}
    assert fresh.step == 2
    fresh = checkpoint(steps=0, run={"threads": 1})
    fresh.options = {"optimizer": {"clip": 2.0}, "seed": 3}
    with pytest.raises(OtherTrainingError, match=r"`clip` 1\.0 → 2\.0") as error:
        fresh.restore(path)
    assert set(error.value.changes) == {"clip"}
    assert fresh.step == 0


def test_a_model_alone_is_loaded_but_not_resumed(tmp_path: Path) -> None:
    saved, path = checkpoint(), tmp_path / "best.safetensors"
    saved.save_model(path)
    model, about = load_model(path)
    assert about["best"] == {"cer": 0.25, "step": 2}
    for name, value in saved.ema.model.state_dict().items():
        assert torch.equal(model.state_dict()[name], value)
    before = {name: value.clone() for name, value in saved.model.state_dict().items()}
    with pytest.raises(NearfutureError, match="holds a model alone") as error:
        saved.restore(path)
    assert "\n" not in str(error.value)
    assert all(torch.equal(saved.model.state_dict()[name], value) for name, value in before.items())
