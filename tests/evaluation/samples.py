"""The synthetic voices that come with the package, as recordings to evaluate."""

import dataclasses

import numpy as np
from numpy.typing import NDArray

from nearfuture.data import Cut, read_source
from nearfuture.runtime.bundle import MODELS

FOLDER = MODELS.parent / "samples"

ITEMS = [
    dataclasses.replace(cut, speaker=cut.fields["voice"])
    for cut in read_source(FOLDER / "manifest.tsv").cuts
]


def samples_of(item: Cut) -> NDArray[np.float32]:
    """At 8 kHz; one of the files is not."""
    return item.load(8000).samples
