"""Two small exported models, committed, so that only the tests of exporting export.

`python -m tests.bundles` makes them anew, for when what an export writes has changed.
"""

import shutil
from pathlib import Path
from typing import Any

from safetensors.torch import load_file

from nearfuture.model import Recognizer
from tests.waveform import tiny_model

FOLDER = Path(__file__).parent / "bundles"

ABOUT: dict[str, dict[str, Any]] = {
    name: {"name": name, "description": "Random weights, for tests.", "training": {"data": []}}
    for name in ("tiny", "tiny-bidirectional")
}


def committed(name: str, folder: Path) -> Path:
    """A copy of the bundle, for the tests to do with as they like."""
    return shutil.copytree(FOLDER / name, folder / name)


def trained(name: str) -> Recognizer:
    """The model that the bundle was exported from: to the last bit, wherever the tests run."""
    model = tiny_model(bidirectional=name.endswith("bidirectional"))
    model.load_state_dict(load_file(FOLDER / name / "weights.safetensors"))
    return model


def export(model: Recognizer, name: str, folder: Path) -> Path:
    """The bundle as it is exported now."""
    from nearfuture.export import ModelCard, export_bundle

    return export_bundle(model, folder / name, ModelCard(**ABOUT[name]), trainable=True)


if __name__ == "__main__":
    for name in ABOUT:
        export(tiny_model(bidirectional=name.endswith("bidirectional")), name, FOLDER)
