"""The error of quantized graphs beside float32, and whether their rows are independent.

Shapes: `T` frames, `V` vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nearfuture.decoding import greedy_text
from nearfuture.error import NearfutureError
from nearfuture.export.quantization.calibration_data import CalibrationData
from nearfuture.export.streams import Heads, run_streams
from nearfuture.runtime import Bundle, Engine, Manifest, Precision, UnsupportedPrecision
from nearfuture.text import ErrorRate, character_errors


def measure_error(bundle: Bundle, precision: str, data: CalibrationData) -> Precision:
    """Measure the error of quantized graphs, over all heads.

    Args:
        bundle: with the graphs in this precision.
        precision: its name.
        data: `evaluation` is streamed through both.

    Raises:
        UnsupportedPrecision: where a row's bits depend on its batch on this processor.
        NearfutureError: where a log-probability is not finite.
    """
    quantized = Engine(bundle, precision=precision)
    expected = run_streams(Engine(bundle), data.evaluation)
    outputs = run_streams(quantized, data.evaluation)
    pairs = [
        (reference[tau], output[tau])
        for reference, output in zip(expected, outputs, strict=True)
        for tau in quantized.heads
    ]
    difference = np.concatenate([np.abs(output - reference).ravel() for reference, output in pairs])
    if not np.isfinite(difference).all():
        raise NearfutureError(
            f"the {precision} graphs give log-probabilities that are not finite: their weights are "
            f"damaged, or their scales are",
            code="damaged",
        )
    _check_row_independence(quantized, data.evaluation, outputs)
    changed = np.concatenate(
        [output.argmax(axis=1) != reference.argmax(axis=1) for reference, output in pairs]
    )
    return Precision(
        worst=float(difference.max(initial=0.0)),
        mean=float(difference.mean()) if difference.size else 0.0,
        changed_percent=100 * float(changed.mean()) if changed.size else 0.0,
        frames=len(changed),
        cer=_character_error_rate(bundle.manifest, outputs, data.transcripts),
        float32_cer=_character_error_rate(bundle.manifest, expected, data.transcripts),
        audio=data.description,
    )


def _check_row_independence(
    engine: Engine, recordings: Sequence[NDArray[np.float32]], outputs: Sequence[Heads]
) -> None:
    """Stream the shortest recording again, alone: its bits must be those of the batch."""
    if not recordings:
        return
    b = min(range(len(recordings)), key=lambda i: len(recordings[i]))
    (alone,) = run_streams(engine, [recordings[b]])
    if any(not np.array_equal(values, outputs[b][tau]) for tau, values in alone.items()):
        raise UnsupportedPrecision(
            f"in {engine.precision} a stream's results depend on the streams beside it on this "
            f"processor: ONNX Runtime has no kernel here that keeps rows apart; choose another "
            f"precision"
        )


def _character_error_rate(
    manifest: Manifest, outputs: Sequence[Heads], transcripts: Sequence[str]
) -> float | None:
    """The rate of the head with the largest lookahead; None without a reference."""
    if not transcripts:
        return None
    total = ErrorRate()
    for heads, reference in zip(outputs, transcripts, strict=True):
        hypothesis = greedy_text(heads[max(heads)], manifest.vocabulary, frame_ms=manifest.frame_ms)
        total += character_errors(reference, hypothesis)
    return total.rate if total.reference else None
