"""The example of one's own batches in docs/training.md trains, as it is written there."""

import re
from pathlib import Path

import pytest

from nearfuture.training import bundle, load_model
from tests.cli.without_export import export_nothing

PAGE = Path(__file__).parents[2] / "docs" / "training.md"


def test_the_example_trains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "export_bundle", export_nothing)
    monkeypatch.chdir(tmp_path)
    found = re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    code = found[1].replace("steps=300", "steps=2")
    assert code != found[1]
    names: dict[str, object] = {}
    exec(code, names)
    assert [len(result.error_rates) for result in names["results"].values()] == [1, 4]  # type: ignore[attr-defined]
    _, header = load_model(tmp_path / "runs" / "tones" / "streaming" / "checkpoint.safetensors")
    assert header["step"] == 2
