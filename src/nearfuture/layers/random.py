"""Seeding torch at the price of seeding."""

import torch


def manual_seed(seed: int) -> None:
    """Seed torch's generators; without an accelerator that of the CPU alone.

    `torch.manual_seed` notes for each kind of device that is missing, with a trace of the whole
    stack, what to seed once it is there: hundreds of times the seeding itself, at every call.

    >>> manual_seed(0)
    >>> one = torch.rand(1)
    >>> manual_seed(0)
    >>> bool(torch.rand(1) == one)
    True
    """
    if torch.accelerator.is_available():
        torch.manual_seed(seed)
    else:
        torch.default_generator.manual_seed(seed)
