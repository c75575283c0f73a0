"""Turn finished trainings into the bundled models.

python -m recipes.digits train --preset small --out runs/digits
python tools/publish_models.py runs/digits
"""

import sys
from pathlib import Path

from nearfuture.export import ModelCard, export_bundle
from nearfuture.runtime.bundle import MODELS
from nearfuture.training import load_model

LICENCE = "CC BY-SA 4.0, since trained on the Free Spoken Digit Dataset (CC BY-SA 4.0)"
MODELS_BY_RUN = {
    "streaming": ("digits", "Connected English digits, live, at any of four budgets."),
    "bidirectional": (
        "digits-bidirectional",
        "The twin of digits, which needs the whole recording.",
    ),
}


def main(runs: Path) -> None:
    """Export both models of a training folder under their bundled names."""
    for run, (name, description) in MODELS_BY_RUN.items():
        model, about = load_model(runs / run / "best.safetensors")
        training = {
            **about["data"],
            "options": about["options"],
            "best": about["best"],
            "step": about["step"],
        }
        export_bundle(
            model,
            MODELS / name,
            ModelCard(
                name=name,
                description=description,
                training={**training, "licence": LICENCE},
            ),
            trainable=run == "streaming",
        )
        print(f"{name}: {about['step']} steps")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
