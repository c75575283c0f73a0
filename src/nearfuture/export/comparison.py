"""A low-precision twin beside float32: how far it is, and that its rows are strangers.

Shapes: `T` frames, `V` vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nearfuture.decoding import greedy_text
from nearfuture.error import NearfutureError
from nearfuture.export.listening import heard
from nearfuture.export.sounds import Sounds
from nearfuture.runtime import Bundle, Engine
from nearfuture.runtime.manifest import Manifest
from nearfuture.runtime.precision import Precision
from nearfuture.runtime.processor import UnsupportedPrecision
from nearfuture.text import ErrorRate, character_errors

Heads = dict[int, NDArray[np.float32]]


def compare(bundle: Bundle, precision: str, sounds: Sounds) -> Precision:
    """Measure the error of a twin, over all heads.

    Args:
        bundle: with the twin.
        precision: its name.
        sounds: `measuring` is streamed through both.

    Raises:
        UnsupportedPrecision: where a row's bits depend on its batch on this processor.
        NearfutureError: where the twin gives no finite log-probabilities.
    """
    expected = heard(Engine(bundle), sounds.measuring)
    twin = Engine(bundle, precision=precision)
    found = heard(twin, sounds.measuring)
    pairs = [
        (theirs[tau], ours[tau])
        for theirs, ours in zip(expected, found, strict=True)
        for tau in twin.heads
    ]
    difference = np.concatenate([np.abs(ours - theirs).ravel() for theirs, ours in pairs])
    if not np.isfinite(difference).all():
        raise NearfutureError(
            f"the {precision} twin gives log-probabilities that are not finite: its weights are "
            f"damaged, or its scales are"
        )
    _refuse_company(twin, precision, sounds.measuring, found)
    changed = np.concatenate(
        [ours.argmax(axis=1) != theirs.argmax(axis=1) for theirs, ours in pairs]
    )
    manifest = bundle.manifest
    return Precision(
        worst=float(difference.max(initial=0.0)),
        mean=float(difference.mean()) if difference.size else 0.0,
        changed_percent=100 * float(changed.mean()) if changed.size else 0.0,
        frames=len(changed),
        cer=_error_rate(manifest, found, sounds.texts),
        float32_cer=_error_rate(manifest, expected, sounds.texts),
        audio=sounds.described,
    )


def _refuse_company(
    engine: Engine,
    precision: str,
    recordings: Sequence[NDArray[np.float32]],
    together: Sequence[Heads],
) -> None:
    """The shortest recording again, alone: the same bits."""
    if not recordings:
        return
    b = min(range(len(recordings)), key=lambda i: len(recordings[i]))
    (alone,) = heard(engine, [recordings[b]])
    for tau, values in alone.items():
        if not np.array_equal(values, together[b][tau]):
            raise UnsupportedPrecision(
                f"in {precision} a stream's results depend on the streams beside it on this "
                f"processor: ONNX Runtime has no kernel here that keeps rows apart; leave "
                f"{precision} out"
            )


def _error_rate(manifest: Manifest, heard: Sequence[Heads], texts: Sequence[str]) -> float | None:
    """Of the largest lookahead."""
    if not texts:
        return None
    total = ErrorRate.of([])
    for heads, said in zip(heard, texts, strict=True):
        wrote = greedy_text(heads[max(heads)], manifest.vocabulary, frame_ms=manifest.frame_ms)
        total += character_errors(said, wrote)
    return total.rate if total.reference else None
