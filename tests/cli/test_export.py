"""`nearfuture export`: the bundle of what has been learnt so far, and training on from it."""

from pathlib import Path

import pytest
import torch

from nearfuture.budget import tiny
from nearfuture.cli import main
from nearfuture.export import ModelCard
from nearfuture.model import Recognizer
from nearfuture.runtime import load
from nearfuture.training import Checkpoint, OptimizerOptions, bundle, load_model
from nearfuture.training.bundle import recognizer_of
from nearfuture.training.ema import EMA
from nearfuture.training.optimizer import Optimizer


def begun(folder: Path, *, step: int, both_ways: bool = False, best: bool = False) -> Recognizer:
    """What a training of the model leaves in its folder; the average that is kept."""
    torch.manual_seed(step)
    config = tiny(symbols=("a", "b")).replace(heads=(0,), layers=1)  # exported in less time
    model = Recognizer(config.twin() if both_ways else config)
    checkpoint = Checkpoint(
        ema=EMA(model, 0.9),
        optimizer=Optimizer(model, OptimizerOptions()),
        options={"seed": 3},
        data={"task": "mine", "data": ["eight"]},
        step=step,
        best={"cer": 0.25, "step": step} if best else {},
    )
    folder.mkdir(parents=True, exist_ok=True)
    checkpoint.save(folder / "checkpoint.safetensors")
    if best:
        checkpoint.save_model(folder / "best.safetensors")
    return model


def ran(*arguments: str) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["export", *arguments])
    assert stopped.value.code == 0


def test_an_interrupted_training_becomes_a_bundle_that_can_be_trained_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "runs" / "mine"
    model = begun(run / "streaming", step=40, best=True)
    begun(run / "streaming", step=60)  # and it went on, to no good
    begun(run / "bidirectional", step=100, both_ways=True)
    ran(str(run))
    said = capsys.readouterr().out
    assert "weights of step 40, 25.00 % of characters in error" in said
    assert f"the other model: nearfuture export {run}/bidirectional" in said
    folder = run / "streaming" / "bundle"
    assert f"nearfuture transcribe --model {folder} FILE" in said
    manifest = load(folder).manifest
    assert (manifest.name, manifest.kind) == ("mine-streaming", "streaming")
    assert manifest.training == {
        "task": "mine",
        "data": ["eight"],
        "steps": 60,
        "best_step": 40,
        "seed": 3,
    }
    again = recognizer_of(folder)
    assert again.config == model.config
    for name, value in model.state_dict().items():
        assert torch.equal(again.state_dict()[name], value)


def test_where_nobody_has_looked_yet_it_is_the_average_of_the_checkpoint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    exported: list[Recognizer] = []

    def keep(model: Recognizer, folder: Path, card: ModelCard, *, trainable: bool) -> Path:
        assert (card.name, card.training["steps"], trainable) == (
            f"{tmp_path.name}-bidirectional",
            7,
            True,
        )
        exported.append(model)
        return folder

    monkeypatch.setattr(bundle, "export_bundle", keep)
    average = begun(tmp_path / "bidirectional", step=7, both_ways=True)
    ran(str(tmp_path), "--out", str(tmp_path / "there"))
    said = capsys.readouterr().out
    assert said.startswith("weights of step 7\n")
    assert f"--model {tmp_path}/there" in said
    assert exported[0].lookahead is None
    for name, value in average.state_dict().items():
        assert torch.equal(exported[0].state_dict()[name], value)
    assert load_model(tmp_path / "bidirectional" / "checkpoint.safetensors")[1]["step"] == 7


@pytest.mark.parametrize(
    ("step", "told"), [(None, "holds no training: it is the folder"), (0, "no step has been done")]
)
def test_what_holds_nothing_is_refused_in_one_line(
    step: int | None, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if step is not None:
        begun(tmp_path / "streaming", step=step)
    with pytest.raises(SystemExit) as stopped:
        main(["export", str(tmp_path)])
    assert stopped.value.code == 2
    err = capsys.readouterr().err
    assert told in err
    assert err.count("\n") == 1
