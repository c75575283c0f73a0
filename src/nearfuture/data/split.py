"""Which recordings are held out from training, where the source has no splits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from nearfuture.data.cut import Cut
from nearfuture.error import NearfutureError

SplitBy = Literal["speaker", "random"]


def assign_splits(
    cuts: Sequence[Cut], *, by: SplitBy, dev: float = 0.1, test: float = 0.1, seed: int = 0
) -> list[Cut]:
    """Assign a split to each cut: about so much audio to dev and to test, the rest to train.

    Args:
        cuts: with their durations, and without splits.
        by: "speaker": no speaker is in two splits; "random": each recording by itself.
        dev: share of the audio for validation while training.
        test: share of the audio for the final evaluation.
        seed: everything random follows from it.

    Raises:
        NearfutureError: where cuts have splits or lack speakers, for shares that leave nothing to
            train on, or where there are too few to give each split one.
    """
    if not (dev >= 0 and test >= 0 and dev + test < 1):
        raise NearfutureError(
            f"`dev` of {dev:g} and `test` of {test:g} leave nothing to train on: together they are "
            f"below 1",
            code="out_of_range",
            parameter="dev",
        )
    if splits := sorted({cut.split for cut in cuts if cut.split}):
        raise NearfutureError(
            f"the source has splits of its own ({', '.join(splits)}), which are kept: do not ask "
            f"to split it by {by}",
            code="conflict",
            parameter="by",
        )
    groups: dict[object, list[int]] = defaultdict(list)
    for number, cut in enumerate(cuts):
        if by == "speaker" and not cut.speaker:
            raise NearfutureError(
                f"{cut.name} has no speaker, so that a split by speaker would be none: name the "
                f"speakers (`speaker_folders` where folders do), or split at random",
                parameter="by",
            )
        groups[cut.speaker if by == "speaker" else number].append(number)
    wanted = [(name, share) for name, share in (("test", test), ("dev", dev)) if share > 0]
    if len(groups) <= len(wanted):
        raise NearfutureError(
            f"{len(groups)} {'speakers' if by == 'speaker' else 'recordings'} cannot be split into "
            f"{', '.join(['train', *(name for name, _ in reversed(wanted))])}: more are needed, or "
            f"fewer splits (a share of 0)",
            code="unsupported",
            parameter="by",
        )
    seconds = {key: sum(cuts[i].duration_s or 0.0 for i in group) for key, group in groups.items()}
    order = np.random.default_rng(seed).permutation(len(groups))
    remaining = [list(groups)[i] for i in order]
    split_of: dict[object, str] = {}
    total = sum(seconds.values())
    for position, (name, share) in enumerate(wanted):
        taken, spare = 0.0, len(remaining) - (len(wanted) - position)
        chosen: list[object] = []
        for key in remaining:
            # Pass over a group with which the share would be missed by more than without it.
            if len(chosen) < spare and taken < share * total >= taken + seconds[key] / 2:
                taken += seconds[key]
                chosen.append(key)
        chosen = chosen or [min(remaining, key=lambda key: seconds[key])]
        split_of |= dict.fromkeys(chosen, name)
        remaining = [key for key in remaining if key not in split_of]
    by_number = {i: split_of.get(key, "train") for key, group in groups.items() for i in group}
    return [replace(cut, split=by_number[number]) for number, cut in enumerate(cuts)]


def shared_speakers(cuts: Sequence[Cut]) -> str:
    """A sentence about a random split: how many speakers are in more than one of its splits.

    >>> from pathlib import Path
    >>> cut = Cut(name="1", path=Path("1.wav"), text="a", split="train", speaker="anna")
    >>> print(shared_speakers([cut, replace(cut, name="2", split="test")]))
    split at random: 1 of 1 speakers is in more than one split, so that errors are those of known
    voices; --split-by speaker keeps people apart
    """
    splits: dict[str, set[str]] = defaultdict(set)
    for cut in cuts:
        splits[cut.speaker].add(cut.split)
    if splits.pop("", None):
        return (
            "split at random: the source does not name all speakers, so that the same voices may "
            "be in train and in test, and errors are those of known voices; name the speakers and "
            "split by speaker to keep people apart"
        )
    both = sum(len(names) > 1 for names in splits.values())
    return (
        f"split at random: {both} of {len(splits)} speakers {'is' if both == 1 else 'are'} in more "
        f"than one split, so that errors are those of known voices; --split-by speaker keeps "
        f"people apart"
    )
