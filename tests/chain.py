"""What tests of the whole chain share."""

import numpy as np


def cuts(samples: int, rng: np.random.Generator) -> list[int]:
    """Sizes of chunks that add up to so many samples: empty, single, odd and huge ones."""
    sizes = []
    left = samples
    while left:
        largest = int(rng.choice([0, 1, 7, 119, 321, 1000, 20_000]))
        size = min(left, int(rng.integers(0, largest + 1)))
        sizes.append(size)
        left -= size
    return sizes
