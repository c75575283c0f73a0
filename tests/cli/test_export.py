"""`nearfuture export`: the bundle of what has been learnt so far, and training on from it."""

from pathlib import Path

import onnx
import pytest
import torch
from safetensors.torch import load_file

from nearfuture.budget import tiny
from nearfuture.cli import main
from nearfuture.export import bundle as export_bundle
from nearfuture.model import Recognizer
from nearfuture.runtime import Bundle, load
from nearfuture.training import Checkpoint, OptimizerOptions, load_model
from nearfuture.training.bundle import recognizer_of
from nearfuture.training.ema import EMA
from nearfuture.training.optimizer import Optimizer
from tests.bundles import FOLDER


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


def with_other_graphs(patch: pytest.MonkeyPatch) -> None:
    """Let an export write committed graphs, for to make its own takes nearly all of its time."""

    def committed(model: Recognizer) -> dict[str, onnx.ModelProto]:
        folder = FOLDER / ("tiny-bidirectional" if model.lookahead is None else "tiny")
        return {path.name: onnx.load(path) for path in folder.glob("*.onnx")}

    patch.setattr(export_bundle, "recognizer_graphs", committed)
    patch.setattr(export_bundle, "verify", lambda model, folder: 0.0)


@pytest.mark.parametrize("own_graphs", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_an_interrupted_training_becomes_a_bundle_that_can_be_trained_on(
    own_graphs: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not own_graphs:
        with_other_graphs(monkeypatch)
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
    manifest = (load(folder) if own_graphs else Bundle.open(folder)).manifest
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
    with_other_graphs(monkeypatch)
    average = begun(tmp_path / "bidirectional", step=7, both_ways=True)
    ran(str(tmp_path), "--out", str(tmp_path / "there"))
    assert capsys.readouterr().out.startswith("weights of step 7\n")
    assert Bundle.open(tmp_path / "there").manifest.kind == "bidirectional"
    assert load_model(tmp_path / "bidirectional" / "checkpoint.safetensors")[1]["step"] == 7
    exported = load_file(tmp_path / "there" / "weights.safetensors")
    for name, value in average.state_dict().items():
        assert torch.equal(exported[name], value)


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
