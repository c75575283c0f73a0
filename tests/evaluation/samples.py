"""The synthetic voices that come with the package, as recordings to evaluate."""

import numpy as np
from numpy.typing import NDArray

from nearfuture.audio import read, resample
from nearfuture.data import Item, read_manifest
from nearfuture.runtime.bundle import MODELS

FOLDER = MODELS.parent / "samples"

ITEMS = [
    Item(
        name=str(entry.path),
        path=entry.path,
        text=entry.transcript,
        speaker=entry.fields["voice"],
    )
    for entry in read_manifest(FOLDER / "manifest.tsv")
]


def samples_of(item: Item) -> NDArray[np.float32]:
    """At 8 kHz; one of the files is not."""
    audio = read(item.path)
    return resample(audio.samples, audio.rate, 8000)
