"""Which recordings are kept away from training, where nobody has said so yet."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from nearfuture.data.item import Item
from nearfuture.error import NearfutureError

SplitBy = Literal["speaker", "random"]


def assign_splits(
    items: Sequence[Item], *, by: SplitBy, dev: float = 0.1, test: float = 0.1, seed: int = 0
) -> list[Item]:
    """The items with a split each: about so much of the audio for dev and test, the rest to train.

    Args:
        items: with their durations, and without splits.
        by: "speaker": nobody is heard in two splits; "random": each recording by itself.
        dev: share of the audio that is watched while training.
        test: share of the audio for judging at the end.
        seed: everything random follows from it.

    Raises:
        NearfutureError: where items have splits or lack speakers, for shares that leave nothing to
            train on, or where there are too few to give each split one.
    """
    if not (dev >= 0 and test >= 0 and dev + test < 1):
        raise NearfutureError(
            f"shares of {dev:g} for dev and {test:g} for test leave nothing to train on: together "
            f"they are below 1"
        )
    if told := sorted({item.split for item in items if item.split}):
        raise NearfutureError(
            f"the source has splits of its own ({', '.join(told)}), which are kept: do not ask to "
            f"split it by {by}"
        )
    groups: dict[object, list[int]] = defaultdict(list)
    for number, item in enumerate(items):
        if by == "speaker" and not item.speaker:
            raise NearfutureError(
                f"{item.name} has no speaker, so that a split by speaker would be none: name the "
                f"speakers (speaker_folders where folders do), or split at random"
            )
        groups[item.speaker if by == "speaker" else number].append(number)
    wanted = [(name, share) for name, share in (("test", test), ("dev", dev)) if share > 0]
    if len(groups) <= len(wanted):
        raise NearfutureError(
            f"{len(groups)} {'speakers' if by == 'speaker' else 'recordings'} cannot be split into "
            f"{', '.join(['train', *(name for name, _ in reversed(wanted))])}: more are needed, or "
            f"fewer splits (a share of 0)"
        )
    seconds = {key: sum(items[i].duration_s or 0.0 for i in group) for key, group in groups.items()}
    order = np.random.default_rng(seed).permutation(len(groups))
    left = [list(groups)[i] for i in order]
    splits: dict[object, str] = {}
    total = sum(seconds.values())
    for position, (name, share) in enumerate(wanted):
        taken, spare = 0.0, len(left) - (len(wanted) - position)
        chosen: list[object] = []
        for key in left:
            # Pass over a group with which the share would be missed by more than without it.
            if len(chosen) < spare and taken < share * total >= taken + seconds[key] / 2:
                taken += seconds[key]
                chosen.append(key)
        chosen = chosen or [min(left, key=lambda key: seconds[key])]
        splits |= dict.fromkeys(chosen, name)
        left = [key for key in left if key not in splits]
    by_number = {i: splits.get(key, "train") for key, group in groups.items() for i in group}
    return [replace(item, split=by_number[number]) for number, item in enumerate(items)]


def voices_on_both_sides(items: Sequence[Item]) -> str:
    """What a split at random means, in a sentence: known voices are what it is judged by.

    >>> from pathlib import Path
    >>> one = Item(name="1", path=Path("1.wav"), text="a", split="train", speaker="anna")
    >>> print(voices_on_both_sides([one, replace(one, name="2", split="test")]))
    split at random: 1 of 1 speakers is heard in more than one split, so that errors are those of
    known voices; --split-by speaker keeps people apart
    """
    heard: dict[str, set[str]] = defaultdict(set)
    for item in items:
        heard[item.speaker].add(item.split)
    unknown = heard.pop("", None)
    if unknown:
        return (
            "split at random: speakers are not told, so that the same voices are in train and in "
            "test as far as anybody knows, and errors are those of known voices; name the "
            "speakers and split by speaker to keep people apart"
        )
    both = sum(len(splits) > 1 for splits in heard.values())
    return (
        f"split at random: {both} of {len(heard)} speakers {'is' if both == 1 else 'are'} heard in "
        f"more than one split, so that errors are those of known voices; --split-by speaker keeps "
        f"people apart"
    )
