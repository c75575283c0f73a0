"""What every benchmark says about itself, by `recipes.report`, and where the recordings lie."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the recipes are
CORPORA = Path(__file__).parents[2] / "shared" / "data"  # beside the project, where it is
if CORPORA.is_dir():
    os.environ.setdefault("NEARFUTURE_CORPORA", str(CORPORA))

from recipes.report import about, emit  # noqa: E402 - found by the path above

__all__ = ["CORPORA", "about", "emit"]
